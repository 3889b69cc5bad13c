async def draw(ctx, prompt, tries=3):
    try:
        return await ctx.run("image.generate", {"prompt": prompt})
    except CapabilityError:
        return await draw(ctx, prompt, tries - 1)  # R06


def even(n):
    return n == 0 or odd(n - 1)  # R06


def odd(n):
    return n != 0 and even(n - 1)  # R06


fact = lambda n: n and n * fact(n - 1)  # R06


def forever():
    while True:  # R03
        yield 1  # R06


async def orchestrate(ctx, args):
    async def step(x):
        return await ctx.pipeline([x], lambda y: step(y))  # R06 R06

    return [await draw(ctx, "a"), even(2), fact(3), next(forever()), await step(1)]
