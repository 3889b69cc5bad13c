NAME = "image.generate"


async def orchestrate(ctx, args):
    a = await ctx.run(NAME, {})  # R02
    b = await ctx.run(f"image.{args['what']}", {})  # R02
    c = await ctx.run(*args["call"])  # R02
    d = await ctx.run("image.generate", **args["payload"])  # R02
    e = await ctx.run("image.generate")  # R02
    f = await ctx.run(capability="image.generate", payload={})  # R02 R02
    g = await ctx.run("image.generate", {}, retries=3)  # R02
    h = await ctx.run()  # R02
    i = await ctx.parallel(*[x for x in "ab"])  # R02
    j = await ctx.parallel(a, b)  # R02 R05
    k = await ctx.race()  # R02
    return [a, b, c, d, e, f, g, h, i, j, k]
