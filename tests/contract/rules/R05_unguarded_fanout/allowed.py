# grants: image.generate; max_width: 12
NAMES = ("front", "back")


async def draw(ctx, prompt):
    return await ctx.run("image.generate", {"prompt": prompt})


def cleaned(items):
    return [item.strip() for item in items[:4]]


async def every(ctx, *prompts):
    return await ctx.parallel([draw(ctx, p) for p in prompts])


async def orchestrate(ctx, args):
    items = args["items"]
    a = await ctx.parallel([draw(ctx, item) for item in items[:12]])
    b = await ctx.pipeline(NAMES, lambda item: draw(ctx, item))
    c = await ctx.race([draw(ctx, item) for item in cleaned(items)])
    d = await ctx.dag({"x": ([], lambda deps: draw(ctx, "x")), "y": (["x"], lambda deps: draw(ctx, deps["x"]))})
    branches = [draw(ctx, item) for item in items[:3]]
    branches += [draw(ctx, name) for name in NAMES]
    branches.append(draw(ctx, "last"))
    e = await ctx.parallel(branches)
    f = await every(ctx, "a", "b", *NAMES)
    g = await ctx.parallel([draw(ctx, name) for name, item in zip(NAMES, items)] + [draw(ctx, "x")])
    h = []
    for start in range(0, len(items[:20]), 5):
        h += await ctx.parallel([draw(ctx, item) for item in items[start : start + 5]])
    i = await ctx.parallel([])
    return [a, b, c, d, e, f, g, h, i]
