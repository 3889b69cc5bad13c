"""A docstring with code: import os, eval("x"), x.__class__, {0.name}."""

TEMPLATE = "{name} at {size:>8} costs {price:.2f}, {row[a.b]} {{x.y}}"


def describe(row):
    type = row["type"]
    eval, vars = row["eval"], len(row)
    return f"{type} {eval} {vars} __class__"


async def orchestrate(ctx, args):
    prompt = 'import os; __import__("os"); eval("1"); while True: ctx.run( {0.name} """triple""" # noqa'
    format, id, input, hash = args["format"], args["id"], args["input"], args["hash"]
    text = TEMPLATE.format(name=describe(args), size="512", price=3.5, row={"a.b": 1})
    text += "{:.2f}".format(2.0) + "{}{}".format(1, 2) + args["template"].format(name="x")
    text += str.format("{} {name}", 1, name="x")
    cost = 1.25
    return [prompt, format, id, input, hash, text, f"{cost:.2f}", args["template"].format_map({"a": 1})]
