async def orchestrate(ctx, args):
    done = False
    while not done:  # R03
        answer = await ctx.run("text.generate", {"prompt": "again"})
        done = answer["data"]["ok"]

    while True:  # R03
        ctx.log("for ever")

    tries = 0
    while tries < 3:  # R03
        answer = await ctx.run("text.generate", {"prompt": "again"})
        if answer["data"]["ok"]:
            tries += 1

    tries = 0
    while tries < 3:  # R03
        if args["skip"]:
            continue
        tries += 1

    tries = 0
    while tries < 3:  # R03
        tries += 1
        if args["again"]:
            tries = 0

    tries = 0
    while tries < args["most"]:  # R03
        tries += 1

    tries = args["first"]
    while tries < 3:  # R03
        tries += 1

    odd = 0
    while odd != 5:  # R03
        odd += 2

    left = 5
    while left:  # R03
        left -= 2

    queue = args["queue"][:5]
    while queue:  # R03
        queue.append(queue.pop())

    tries = 0
    while tries < 3 or args["more"]:  # R03
        tries += 1

    tries, done = 0, False
    while not done:  # R03
        tries += 1
        if tries > 3:
            done = True
        if args["again"]:
            done = False

    step = 0

    def reset():
        nonlocal step
        step = 0

    while step < 3:  # R03
        step += 1
        reset()

    seen = []
    while len(seen) < 3:  # R03
        seen.append(1)
        seen.clear()

    count = 0
    for item in args["items"]:  # R03
        if args["stop"] and count >= 3:
            break
        count += 1
        await ctx.run("text.generate", {"prompt": item})

    for number, item in enumerate(args["items"]):  # R03
        number = 0
        if number >= 3:
            break
        await ctx.run("text.generate", {"prompt": item})
    return None
