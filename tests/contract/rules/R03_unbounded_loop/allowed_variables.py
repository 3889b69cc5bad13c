MAX = 10


async def say(ctx, text):
    return await ctx.run("text.generate", {"prompt": str(text)})


async def orchestrate(ctx, args):
    items = args["items"]
    items = items[:6]
    for item in items:
        await say(ctx, item)

    rows = args["rows"]
    if len(rows) > MAX:
        rows = rows[:MAX]
    for row in rows:
        await say(ctx, row)

    checked = args["checked"]
    if len(checked) > MAX:
        raise ValueError("too many")
    for row in checked:
        await say(ctx, row)

    asserted = args["asserted"]
    assert len(asserted) <= 3
    for row in asserted:
        await say(ctx, row)

    count = args["count"]
    if count > 6:
        count = 6
    for number in range(count):
        await say(ctx, number)

    limit = max(1, min(int(args.get("limit", 4)), 8))
    for row in args["more"][:limit]:
        await say(ctx, row)

    match args["size"]:
        case "small":
            rounds = 2
        case _:
            rounds = 5
    for number in range(rounds if rounds else 3):
        await say(ctx, number)

    good, redo = [], []
    for item in items:
        if item:
            good.append(item)
        else:
            redo.append(item)
    good += redo[:3]
    good = good + ["last"]
    for item in [*good, *redo]:
        await say(ctx, item)

    by_name = {}
    for item in items:
        by_name[item] = await say(ctx, item)
    by_name["extra"] = None
    for name, value in by_name.items():
        await say(ctx, (name, value))

    picked = []
    for item in args["unbounded"]:
        if len(picked) >= 3:
            break
        picked.append(item)
    for item in picked:
        await say(ctx, item)

    batches = []
    for start in range(0, len(items), 2):
        batches.append(items[start : start + 2])
    for batch in batches:
        for item in batch:
            await say(ctx, item)

    first = second = items[:2]
    first.append("x")
    for item in second:
        await say(ctx, item)

    pending = list(items)
    for attempt in range(3):
        answers = await ctx.parallel([say(ctx, item) for item in pending], tolerate=True)
        pending = [item for item, answer in zip(pending, answers) if not answer]

    seen, unique = set(), []
    for word in args["text"].split()[:9]:
        if word not in seen:
            seen.add(word)
            unique.append(word)
    for word in unique:
        await say(ctx, word)

    frontier = [args["start"]]
    for depth in range(3):
        found = []
        for node in frontier:
            answer = await say(ctx, node)
            found.extend(answer["data"][:2])
        frontier = found[:4]

    async def add(item):
        noted.append(await say(ctx, item))

    noted = []
    for item in items:
        await add(item)
    for note in noted:
        await say(ctx, note)
    return noted
