CAUGHT = (ValueError, BaseException)


async def orchestrate(ctx, args):
    try:
        first = await ctx.run("image.generate", {"prompt": "a"})
    except:  # R07
        first = None
    try:
        second = await ctx.run("image.generate", {"prompt": "b"})
    except BaseException as error:  # R07
        second = str(error)
    try:
        third = await ctx.run("image.generate", {"prompt": "c"})
    except (KeyError, SystemExit):  # R07
        third = None
    try:
        fourth = await ctx.run("image.generate", {"prompt": "d"})
    except CAUGHT:  # R07
        fourth = None
    for shot in args["shots"][:3]:
        try:
            ctx.log(shot)
        finally:
            await ctx.run("text.generate", {"prompt": "bye"})  # R07
            if shot:
                continue  # R07
            break  # R07
    try:
        ctx.log("x")
    finally:
        return [first, second, third, fourth]  # R07
