async def orchestrate(ctx, args):
    names = set(args["names"][:8])
    names |= {"a"}
    names.add("b")
    count = sum(len(name) for name in names) + len(names) + max(len(n) for n in names)
    longest = max(names)
    has = "a" in names and any(n == "b" for n in names)
    others = {n.lower() for n in names} - {"x"}
    for name in sorted(others):
        ctx.log(name)
    names = sorted(names)
    for name in names:
        ctx.log(name)
    text = ", ".join(sorted(n for n in others))
    unique = list(dict.fromkeys(args["names"]))
    for key in args.keys():
        ctx.log(key)
    return [count, longest, has, text, unique, sorted([n for n in others])]
