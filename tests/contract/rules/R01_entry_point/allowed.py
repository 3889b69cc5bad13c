async def orchestrate(ctx, args, /) -> dict:
    async def orchestrate_shot(shot):
        return shot

    return {"first": await orchestrate_shot(args)}
