"""Six pictures for a brief: one storyboard, then the shots side by side."""

SHOTS = 6
SIZES = ["1024x1024", "1024x1024", "1024x1024", "1792x1024", "1024x1024", "1024x1024"]


async def orchestrate(ctx, args):
    plan = await ctx.run("storyboard.plan", {"brief": args["brief"], "shots": SHOTS})

    async def shot(number, scene):
        size = SIZES[number]
        image = await ctx.run("image.generate", {"prompt": scene["prompt"], "size": size})
        return image["images"][0]

    scenes = plan["shots"][:SHOTS]
    return {"shots": await ctx.parallel([shot(number, scene) for number, scene in enumerate(scenes)])}
