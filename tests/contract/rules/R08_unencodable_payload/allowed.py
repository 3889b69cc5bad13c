SCALE = {1: "furious", 2: "calm"}
SCHEMA = {"type": "object", "required": ["a", "b"], "properties": {"a": {"type": ["string", "null"]}}}


async def orchestrate(ctx, args):
    tags = {"b", "a"}
    payload = {"prompt": f"{SCALE}", "schema": SCHEMA, "tags": sorted(tags), "scale": list(SCALE), "n": 3.5}
    payload["level"] = SCALE[1]
    if args:
        payload["note"] = None
    first = await ctx.run("text.generate", payload)
    second = await ctx.run("text.generate", {**payload, "at": [1, (2, True)], "x": args["x"] or -1})
    return await ctx.run("text.generate", {"prompt": first["text"], "more": {k: v for k, v in second.items()}})
