async def say(ctx, text):
    return await ctx.run("text.generate", {"prompt": str(text)})


async def each(ctx, texts):
    for text in texts:  # R03
        await say(ctx, text)


async def never_called(ctx, texts):
    for text in texts:  # R03
        await say(ctx, text)


def numbers(n):
    for number in range(n):
        yield number


async def orchestrate(ctx, args):
    items, n = args["items"], args["n"]
    for item in items:  # R03
        await say(ctx, item)
    for number in range(n):  # R03
        await say(ctx, number)
    for item in items[:n]:  # R03
        await say(ctx, item)
    for item in items[: min(n, 5)]:  # R03
        await say(ctx, item)
    for item in items[:-1]:  # R03
        await say(ctx, item)
    for item in items[2:]:  # R03
        await say(ctx, item)
    for item in items[::-1]:  # R03
        await say(ctx, item)
    for item in items[n : 2 * n]:  # R03
        await say(ctx, item)
    for number, item in enumerate(items, 1):  # R03
        await say(ctx, item)
    for item in items[:5] + args["more"]:  # R03
        await say(ctx, item)
    for item in items or ["a"]:  # R03
        await say(ctx, item)
    for key in args:  # R03
        await say(ctx, key)
    for word in args["text"].split(" ", n):  # R03
        await say(ctx, word)
    for number in numbers(n):  # R03
        await say(ctx, number)
    await each(ctx, items[:3])
    await each(ctx, items)
    answers = [await say(ctx, item) for item in items]  # R03
    for answer in answers:  # R03
        await say(ctx, answer)
    tasks = [say(ctx, item) for item in items]  # R03
    for task in tasks:  # R03
        await task
    shared = items[:2]
    for item in shared:
        for other in args["others"]:  # R03
            await ctx.parallel([say(ctx, item)])
    return {key: await say(ctx, key) for key in args}  # R03
