async def note(ctx, log, text):
    log.append(text)  # R09
    return await ctx.run("text.generate", {"prompt": text})


async def orchestrate(ctx, args):
    cache = {}
    spent = 0
    log = []

    async def cached(aspect):
        nonlocal spent
        if aspect not in cache:
            cache[aspect] = await ctx.run("text.generate", {"prompt": aspect})  # R09
        spent += cache[aspect]["cost"]  # R09
        await note(ctx, log, aspect)
        return aspect

    await ctx.dag({"a": ([], lambda deps: cached("a")), "b": ([], lambda deps: cached("b"))})
    return {"spent": spent, "log": log}
