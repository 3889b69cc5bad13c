def pairs(names):
    for first in names:
        yield first, first.upper()
    yield from ()


async def orchestrate(ctx, args):
    plan = await ctx.run("storyboard.plan", {"brief": args["brief"], "shots": 3})
    if (shots := plan["shots"][:3]) and not (1 < len(shots) <= 2):
        ctx.log(f"{len(shots):>3} of {args!r}")
    first, *rest = shots or [None]
    match args:
        case {"kind": "a" | "b" as kind, **others} if kind:
            label = kind
        case [x, *_] | (x, _):
            label = str(x)
        case str(label) | int(label):
            pass
        case None | True:
            label = "none"
        case _:
            label = ""
    total = 0
    while total < 3:
        total += 1
    else:
        total = -total if total else +total
    try:
        value = int(args["n"])
    except (KeyError, ValueError) as error:
        raise RuntimeError("no number") from error
    else:
        value **= 2
    finally:
        total //= 2
    assert value is not None, "a value"
    table = {**args, "rest": rest, "first": first, "label": label}
    del table["label"]
    low = min(shots, key=lambda s: s["duration_s"], default=None)
    return [table, low, [a + b for a, b in pairs(("x", "y"))], {*"ab"} & {"a"}, shots[::2], 1 if total else 2, ~value]
