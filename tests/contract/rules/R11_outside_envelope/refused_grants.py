# grants: text.generate, image.generate
async def orchestrate(ctx, args):
    first = await ctx.run("image.genrate", {"prompt": "a"})  # R11
    second = await ctx.run("video.edit", {"video": first, "prompt": "b"})  # R11
    return await ctx.run("text.generate", {"prompt": second})
