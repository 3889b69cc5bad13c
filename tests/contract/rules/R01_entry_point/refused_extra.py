async def orchestrate(ctx, args, *, retries=3):  # R01
    return retries
