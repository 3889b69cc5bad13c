async def orchestrate(ctx, args):
    return args


async def orchestrate(ctx, args):  # R01
    return {}
