class Shot:  # R00
    prompt = "a lighthouse"


def cached(function):
    return function


@cached  # R00
async def draw(ctx, prompt):
    return await ctx.run("image.generate", {"prompt": prompt})


def twice(a, a):  # R00
    return a


async def orchestrate(ctx, args):
    try:  # R00
        return await draw(ctx, args["prompt"])
    except* ValueError:
        return None
