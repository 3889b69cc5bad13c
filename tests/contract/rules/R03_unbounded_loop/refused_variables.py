async def say(ctx, text):
    return await ctx.run("text.generate", {"prompt": str(text)})


def fill(target, source):
    for item in source:
        target.append(item)


async def orchestrate(ctx, args):
    collected = []
    for item in args["items"]:
        collected.append(item)
    for item in collected:  # R03
        await say(ctx, item)

    rebound = args["items"][:5]
    if args["all"]:
        rebound = args["items"]
    for item in rebound:  # R03
        await say(ctx, item)

    alias = short = args["items"][:2]
    for item in args["items"]:
        alias.append(item)
    for item in short:  # R03
        await say(ctx, item)

    filled = []
    fill(filled, args["items"])
    for item in filled:  # R03
        await say(ctx, item)

    doubled = ["a"]
    for item in args["items"]:
        doubled = doubled + doubled
    for item in doubled:  # R03
        await say(ctx, item)

    late = []

    async def add(items):
        for item in items:
            late.append(item)

    await add(args["items"])
    for item in late:  # R03
        await say(ctx, item)

    growing = ["a"]
    for item in growing:  # R03
        growing.append(item)

    rows = {"a": []}
    for item in args["items"]:
        rows["a"].append(item)
    for item in rows["a"]:  # R03
        await say(ctx, item)

    maybe = args["maybe"]
    if len(maybe) > 5:
        ctx.log("many")
    for item in maybe:  # R03
        await say(ctx, item)

    caught = args["items"]
    try:
        caught = caught[:3]
    except Exception:
        ctx.log("as it was")
    for item in caught:  # R03
        await say(ctx, item)
    return None
