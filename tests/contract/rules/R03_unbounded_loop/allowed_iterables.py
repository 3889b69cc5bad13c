MAX = 4
NAMES = ("front", "back")
ANGLES = {"front": ["left", "right"], "back": ["top"]}
PLAN = [("intro", 2), ("middle", 3)]
LIMITS = {"gold": 5, "silver": 3}


def top(items, count):
    return sorted(items, key=lambda item: item["score"], reverse=True)[:count]


def numbered(count):
    out = []
    for number in range(count):
        out.append(f"take {number}")
    return out


def pairs():
    for first in "ab":
        for second in "cd":
            yield first, second


async def say(ctx, text):
    return await ctx.run("text.generate", {"prompt": str(text)})


async def each(ctx, texts):
    for text in texts:
        await say(ctx, text)


async def orchestrate(ctx, args):
    items, n = args["items"], args["n"]
    for item in ["a", "b", *NAMES]:
        await say(ctx, item)
    for number in range(MAX):
        await say(ctx, number)
    for number in range(len(NAMES)):
        await say(ctx, NAMES[number])
    for number in range(min(n, 6)):
        await say(ctx, number)
    for number in range(0, 40, 4):
        await say(ctx, items[number : number + 4])
    for item in items[:8]:
        await say(ctx, item)
    for item in items[-3:]:
        await say(ctx, item)
    for item in items[n : n + 5]:
        await say(ctx, item)
    for number, item in enumerate(reversed(items[: MAX * 2 - 1]), start=1):
        await say(ctx, (number, item))
    for item, name in zip(items, NAMES):
        await say(ctx, (item, name))
    for item in sorted(list(tuple(items[:3]))):
        await say(ctx, item)
    for name, angles in ANGLES.items():
        for angle in angles:
            await say(ctx, (name, angle))
    for part, count in PLAN:
        for number in range(count):
            await say(ctx, (part, number))
    for number in range(LIMITS["gold"]):
        await say(ctx, number)
    for number in range(LIMITS.get(args["tier"], 2)):
        await say(ctx, number)
    for word in args["text"].split(" ", 3):
        await say(ctx, word)
    for item in top(items, 3):
        await say(ctx, item)
    for text in numbered(4):
        await say(ctx, text)
    for first, second in pairs():
        await say(ctx, first + second)
    for chunk in (items[i : i + 3] for i in range(0, 12, 3)):
        for item in chunk:
            await say(ctx, item)
    for item in [x for x in items[:5] if x]:
        for other in items[:2]:
            await say(ctx, (item, other))
    await each(ctx, items[:3])
    await each(ctx, ["x"])
    rows = await ctx.parallel([say(ctx, item) for item in items[:6]])
    for row in [r["text"] for r in rows if r]:
        await say(ctx, row)
    return [await say(ctx, name) for name in NAMES for _ in range(2)]
