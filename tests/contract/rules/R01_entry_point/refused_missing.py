async def main(ctx, args):  # R01
    return await ctx.run("text.generate", {"prompt": args["prompt"]})
