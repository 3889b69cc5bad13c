async def orchestrate(ctx, args):
    by_name, board, names, groups = {}, [], set(), {}
    count = 0

    async def picture(aspect):
        nonlocal count
        own = {}
        own["image"] = await ctx.run("image.generate", {"prompt": aspect})
        by_name[aspect] = own
        board.append((aspect, own))
        names.add(aspect)
        count += 1
        groups.setdefault(aspect[0], []).append(aspect)
        return own

    images = await ctx.parallel([picture(a) for a in ("a", "b")])

    async def column(prompt):
        rows = []

        async def cell(number):
            return await ctx.run("text.generate", {"prompt": f"{prompt} {number}"})

        for number in range(2):
            rows.append(await cell(number))
        return rows

    columns = await ctx.parallel([column(p) for p in ("x", "y")])
    ordered = sorted(board, key=lambda pair: pair[0])
    done = []
    for image in images:
        done.append(image)
    first = by_name["a"]
    rest = [by_name[name] for name in ("b",) if name in by_name]
    return [ordered, len(board), sorted(names), count, columns, done, first, rest, by_name.get("c"), by_name]
