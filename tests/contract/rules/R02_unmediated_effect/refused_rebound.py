def ctx():  # R02
    return None


async def orchestrate(ctx, args):
    for ctx in args["contexts"]:  # R02
        pass
    ctx, other = args["pair"]  # R02
    with args["x"] as ctx:  # R02
        pass
    names = [ctx for ctx in args["xs"]]  # R02 R02
    return [other, names, lambda ctx: 1]  # R02
