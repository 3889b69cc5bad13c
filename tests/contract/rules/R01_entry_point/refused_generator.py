async def orchestrate(ctx, args):
    for shot in args["shots"]:
        yield shot  # R01
