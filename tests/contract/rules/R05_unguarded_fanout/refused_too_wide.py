# grants: image.generate; max_width: 5
async def orchestrate(ctx, args):
    async def draw(prompt):
        return await ctx.run("image.generate", {"prompt": prompt})

    return await ctx.parallel([draw(p) for p in args["prompts"][:6]])  # R05
