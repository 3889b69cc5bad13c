def total(rows):
    result = 0
    for row in rows:
        for value in row:
            result += value
    return result


def letters(text):
    for letter in text:
        text += letter
    return text


async def orchestrate(ctx, args):
    names = [row["name"] for row in args["rows"]]
    groups = {}
    for row in args["rows"]:
        groups.setdefault(row["kind"], []).append(row)
    for line in args["text"].splitlines():
        ctx.log(line)
    answer = await ctx.run("text.generate", {"prompt": f"{total(args['rows'])} {letters('ab')} {names}"})
    top = args["rows"][:4]
    for row in top:
        await ctx.run("text.generate", {"prompt": row["name"]})
    for kind in sorted(groups)[:5]:
        await ctx.run("text.generate", {"prompt": kind})
    return [answer, [row for row in args["rows"] if row]]
