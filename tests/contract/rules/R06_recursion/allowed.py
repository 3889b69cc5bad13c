def numbers():
    for number in range(3):
        yield number


async def draw(ctx, prompt):
    for attempt in range(3):
        try:
            return await ctx.run("image.generate", {"prompt": prompt})
        except CapabilityError:
            if attempt == 2:
                raise


async def both(ctx, prompt):
    return [await draw(ctx, prompt), await draw(ctx, prompt + "!")]


async def orchestrate(ctx, args):
    draw_all = [await both(ctx, p) for p in ("a", "b")]
    draw_all.sort(key=lambda pair: len(pair))
    return [draw_all, list(numbers())]
