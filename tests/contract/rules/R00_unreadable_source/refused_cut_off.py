async def orchestrate(ctx, args):
    return await ctx.run("text.generate", {"prompt": args["prompt"],  # R00
