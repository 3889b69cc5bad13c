def tags_of(rows):
    return {row["tag"] for row in rows}


async def orchestrate(ctx, args):
    names = set(args["names"][:8])
    for name in names:  # R12
        ctx.log(name)
    for name in {"a", "b"} | names:  # R12
        ctx.log(name)
    both = [n for n in names.union(args["more"])]  # R12
    table = {n: 1 for n in tags_of(args["rows"])}  # R12
    text = ", ".join(names)  # R12
    first, *rest = names  # R12
    listed = list(names)  # R12
    numbered = [*enumerate(names)]  # R12
    shown = f"{names}"  # R12
    one = names.pop()  # R12
    kept = names if args["all"] else None
    spread = [*kept]  # R12
    for key in args.keys() & names:  # R12
        ctx.log(key)
    group = {"tags": names}
    for tag in group["tags"]:  # R12
        ctx.log(tag)
    return [both, table, text, first, rest, listed, numbered, shown, one, spread]
