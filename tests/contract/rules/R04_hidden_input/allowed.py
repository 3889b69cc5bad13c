DEFAULTS = {"size": "512x512", "tags": ["a"]}
NAMES = ("front", "back")


def describe(name, extra=(), size=None, options={}, tags=list()):
    id = name.lower()
    hash = f"{id}-{len(extra)}"
    return hash, size or options.get("size"), [*tags]


async def orchestrate(ctx, args):
    input = args["input"]
    open = input.get("open", [])
    options = {**DEFAULTS, "name": describe("x")}
    options["size"] = "256x256"
    tags = list(DEFAULTS["tags"])
    tags.append("b")
    NAMES_HERE = NAMES
    NAMES_HERE = [*NAMES_HERE, "side"]
    DEFAULTS_HERE = dict(DEFAULTS)
    DEFAULTS_HERE.update(size=1)
    open.append("time.time() and random are words here")
    return [options, tags, NAMES_HERE, open]
