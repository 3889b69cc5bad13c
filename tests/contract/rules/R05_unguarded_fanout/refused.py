async def draw(ctx, prompt):
    return await ctx.run("image.generate", {"prompt": prompt})


def cleaned(items):
    return [item.strip() for item in items]


async def every(ctx, *prompts):
    return await ctx.parallel([draw(ctx, p) for p in prompts])  # R05


async def orchestrate(ctx, args):
    items = args["items"]
    a = await ctx.parallel([draw(ctx, item) for item in items])  # R05
    b = await ctx.pipeline(items, lambda item: draw(ctx, item))  # R05
    c = await ctx.race([draw(ctx, item) for item in cleaned(items)])  # R05
    d = await ctx.dag({item: ([], lambda deps: draw(ctx, "x")) for item in items})  # R05
    branches = [draw(ctx, item) for item in items]  # R03
    e = await ctx.parallel(branches)  # R05
    collected = []
    for item in items:  # R03
        collected.append(draw(ctx, item))
    f = await ctx.parallel(collected)  # R05
    g = await every(ctx, *items)
    h = await ctx.parallel(draw(ctx, item) for item in items if item)  # R05
    i = await ctx.parallel([draw(ctx, item) for item in items[:3] + args["more"]])  # R05
    j = await ctx.parallel([draw(ctx, item) for item in items[: len(args["more"])]])  # R05
    k = await ctx.parallel(list(map(lambda item: draw(ctx, item), items)))  # R05
    return [a, b, c, d, e, f, g, h, i, j, k]
