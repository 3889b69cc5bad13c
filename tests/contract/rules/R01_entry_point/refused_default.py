async def orchestrate(ctx, args={}):  # R01
    return args
