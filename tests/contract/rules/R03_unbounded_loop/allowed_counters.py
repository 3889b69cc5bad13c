MAX = 3


async def say(ctx, text):
    return await ctx.run("text.generate", {"prompt": str(text)})


async def orchestrate(ctx, args):
    tries = 0
    while tries < MAX:
        tries += 1
        await say(ctx, tries)

    tries, done = 0, False
    while not done and tries < MAX:
        tries = tries + 1
        answer = await say(ctx, tries)
        if answer["data"]["ok"]:
            done = True
            continue
        await say(ctx, answer)

    tries = 0
    while True:
        try:
            await say(ctx, tries)
            break
        except CapabilityError:
            tries += 1
            if tries >= MAX:
                raise

    left = 5
    while left > 0:
        left -= 1
        await say(ctx, left)

    left = 4
    while left:
        await say(ctx, left)
        left -= 1

    page, more = 1, True
    while more:
        answer = await say(ctx, page)
        page += 1
        more = answer["data"]["more"] and page <= 5

    rounds, finished = 0, False
    while not finished:
        rounds += 1
        answer = await say(ctx, rounds)
        if answer["data"]["ok"] or rounds == 4:
            finished = True

    turn = 0
    while (turn := turn + 1) <= 3:
        await say(ctx, turn)

    step = 0
    while 0 <= step < 10:
        step += 2
        await say(ctx, step)

    queue, visited = [args["start"]], []
    while queue and len(visited) < 10:
        node = queue.pop(0)
        answer = await say(ctx, node)
        queue.extend(answer["data"])
        visited.append(node)

    short = args["items"][:7]
    while short:
        await say(ctx, short.pop())

    pending = args["items"][:9]
    while pending:
        batch, pending = pending[:4], pending[4:]
        await ctx.parallel([say(ctx, item) for item in batch])

    history = []
    while len(history) < 4:
        history.append(await say(ctx, history))
        if "done" in history[-1]["text"]:
            break

    stack, budget = [args["start"]], 20
    while stack and budget != 0:
        budget -= 1
        stack += stack.pop()["children"]
        await say(ctx, budget)

    count = 0
    for item in args["items"]:
        if count == 5:
            break
        await say(ctx, item)
        count += 1

    kept = []
    for item in args["items"]:
        kept.append(await say(ctx, item))
        if len(kept) == 3:
            break

    for number, item in enumerate(args["items"]):
        if number >= 5:
            break
        await say(ctx, item)

    for number in range(args["n"]):
        await say(ctx, number)
        if number == 3:
            break

    for item in args["items"]:
        return await say(ctx, item)
