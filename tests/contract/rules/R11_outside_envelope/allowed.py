# grants: text.generate, image.generate; max_calls: 20; max_calls_per_site: 10; max_width: 5
async def orchestrate(ctx, args):
    async def draw(shot):
        return await ctx.run("image.generate", {"prompt": shot})

    for round in range(2):
        await ctx.parallel([draw(s) for s in args["shots"][:5]])
    for word in args["words"][:10]:
        await ctx.run("text.generate", {"prompt": word})
    return None
