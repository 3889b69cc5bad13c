def orchestrate(ctx, args):  # R01
    return ctx.run("text.generate", {"prompt": args["prompt"]})
