# grants: text.generate, image.generate; max_calls: 20; max_calls_per_site: 10; max_width: 5
async def orchestrate(ctx, args):
    async def draw(shot):
        return await ctx.run("image.generate", {"prompt": shot})  # R11 R11

    await ctx.parallel([draw(s) for s in args["shots"][:6]])  # R05
    for round in range(3):
        await ctx.parallel([draw(s) for s in args["shots"][:5]])
    return None
