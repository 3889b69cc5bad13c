async def draw(ctx, prompt, *, size="512x512"):
    return await ctx.run("image.generate", {"prompt": prompt, "size": size})


def later(ctx, prompt):
    return draw(prompt=prompt, ctx=ctx)


async def every(ctx, *prompts):
    return await ctx.parallel([draw(ctx, p) for p in prompts[:3]], tolerate=True)


async def orchestrate(ctx, args):
    first = await ctx.run("image.generate", payload={"prompt": "a"}, take="second take")
    second = await ctx.run("image.generate", {"prompt": "a"}, "third take")
    task = ctx.run("text.generate", {"prompt": "later"})
    tasks = [draw(ctx, p) for p in ("x", "y")]
    chosen = draw(ctx, "x") if args["x"] else later(ctx, "y")
    table = {"a": draw(ctx, "a")}
    both = []
    both.append(ctx.run("text.generate", {"prompt": "1"}))
    both += [later(ctx, "2")]
    results = await ctx.parallel(branches=both)
    sheet = await ctx.pipeline(["a", "b"], lambda p: draw(ctx, p), lambda r: ctx.run("image.edit", {"image": r}))
    graph = {"a": ([], lambda deps: ctx.run("text.generate", {"prompt": "a"}))}
    parts = await ctx.dag(graph, tolerate=True)
    winner = await ctx.race([draw(ctx, p) for p in ("u", "v")])
    for one in tasks:
        results.append(await one)
    ctx.log("done")

    async def nested(prompt):
        return await draw(ctx, prompt)

    async def shadow(ctx):
        return await nested("n")

    return [first, second, await task, await chosen, await table["a"], sheet, parts, winner, await shadow(ctx)]
