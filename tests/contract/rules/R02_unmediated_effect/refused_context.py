async def draw(context, prompt):
    return prompt


async def review(ctx, image):
    return await ctx.run("review.visual", {"image": image, "criteria": "sharp"})


async def far(image):
    return await ctx.run("review.visual", {"image": image, "criteria": "sharp"})  # R02


async def orchestrate(ctx, args):
    run = ctx.run  # R02
    kept = [ctx]  # R02
    again = ctx  # R02
    await draw(ctx, "a lighthouse")  # R02
    await review(args, "a")  # R02
    await review("a")  # R02
    await ctx.pipeline(["a"], review)  # R02
    print(ctx)  # R02
    args["ctx"] = ctx  # R02
    note = f"{ctx}"  # R02
    await ctx.gather([])  # R02
    ctx.log.__call__("x")  # R02 R10
    ctx.seed = 3  # R02
    named = (lambda: ctx)()  # R02
    return run, kept, again, note, named

