SCHEMA = {"type": "object", "required": {"a", "b"}}  # R08
WORST = float("-inf")
ROWS = {1: "furious", 2: "calm"}  # R08 R08


def score(text):
    return len(text)


async def orchestrate(ctx, args):
    payload = {"prompt": "x"}
    payload["tags"] = {"a"}  # R08
    payload["limit"] = 1e999  # R08
    await ctx.run("text.generate", payload)
    await ctx.run("text.generate", {"prompt": "x", "schema": SCHEMA})
    await ctx.run("text.generate", {"prompt": b"x"})  # R08
    await ctx.run("text.generate", {"prompt": "x", "rate": score})  # R08
    await ctx.run("text.generate", {"prompt": "x", "rate": lambda t: len(t)})  # R08
    await ctx.run("text.generate", {"prompt": "x", "rows": (r for r in args["rows"])})  # R08
    await ctx.run("text.generate", {None: "x"})  # R08
    await ctx.run("text.generate", {"prompt": "x", "low": float("nan")})  # R08
    await ctx.run("text.generate", {"prompt": "x", "scale": ROWS})
    await ctx.run("text.generate", {"prompt": "x", "tags": set(args["tags"])})  # R08
    await ctx.run("text.generate", {"prompt": "x", "n": range(3)})  # R08
    await ctx.run("text.generate", {"prompt": "x", "keys": args.keys()})  # R08
    await ctx.run("text.generate", {"prompt": "x", "big": 2**1 or 99999999999999999999})  # R08
    await ctx.run("text.generate", payload={"prompt": "x", "c": [1, [2j]]})  # R08
    await ctx.run("text.generate", {"prompt": "x", "c": [{t} for t in args["tags"]]})  # R08
    await ctx.run("text.generate", {"prompt": "x", "end": ...})  # R08
    return WORST
