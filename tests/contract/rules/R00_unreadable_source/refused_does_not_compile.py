def plain(ctx):
    image = await ctx.run("image.generate", {"prompt": "a lighthouse"})  # R00
    return image


async def orchestrate(ctx, args):
    pick = lambda: await plain(ctx)  # R00
    for shot in args["shots"][:3]:
        continue
    else:
        break  # R00
    return pick


return 1  # R00
yield 2  # R00
continue  # R00


async def numbers():
    yield 1
    yield from (2, 3)  # R00
    return 4  # R00


def later():
    return [number async for number in numbers()]  # R00
