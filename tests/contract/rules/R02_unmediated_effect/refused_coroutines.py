async def draw(ctx, prompt):
    return await ctx.run("image.generate", {"prompt": prompt})


def later(ctx, prompt):
    return draw(ctx, prompt)


async def orchestrate(ctx, args):
    ctx.run("image.generate", {"prompt": "dropped"})  # R02
    draw(ctx, "dropped")  # R02
    later(ctx, "dropped")  # R02
    ctx.parallel([draw(ctx, p) for p in "ab"])  # R02
    [draw(ctx, p) for p in "ab"]  # R02
    kept = draw(ctx, "never used")  # R02
    several = [draw(ctx, p) for p in "ab"]  # R02
    collected = []
    for prompt in "ab":
        collected.append(draw(ctx, prompt))  # R02
    if draw(ctx, "always true"):  # R02
        ctx.log(ctx.run("image.generate", {}))  # R02
    text = f"{draw(ctx, 'a coroutine')}"  # R02
    images = draw(ctx, "a")["images"]  # R02
    total = len(draw(ctx, "a")) + 1  # R02
    while ctx.run("review.visual", {}):  # R02
        break
    for image in draw(ctx, "a"):  # R02
        break
    return [text, images, total, image]
