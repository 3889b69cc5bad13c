import os, json  # R10 R10
from collections import *  # R10

TEMPLATE = "{x." + "__class__}"


def numbers():
    yield 1


async def orchestrate(ctx, args):
    a = eval("1 + 1")  # R10
    b = getattr(args, "x")  # R10
    c = args.__class__  # R10
    d = type(args)  # R10
    e = "{0.__class__}".format(args)  # R10
    f = TEMPLATE.format(x=1)  # R10
    g = "{a[0].b:{width.x}}".format_map(args)  # R10
    h = ("{x." + args["name"] + "}").format(x=1)  # R10
    i = numbers().gi_frame  # R10
    try:
        j = vars()["x"]  # R10
    except Exception as error:
        j = error.__traceback__  # R10
    match args:
        case object(__class__=k):  # R10
            pass
        case str(__doc__=k):  # R10
            pass
    l = await ctx.run("text.generate", {"prompt": "x"}, _site="orchestrate/#1")  # R10
    m = [globals, locals()]  # R10 R10
    n = __builtins__  # R10
    __hidden__ = 1  # R10
    o = map(setattr, args, args)  # R10
    p = "{:{0.x}}".format(1)  # R10
    q = str.format("{0.__class__}", args)  # R10
    r = map(str.format, args)  # R10
    s = "{0.__class__}".format  # R10
    t = numbers().send(None)  # R10
    u = args._order  # R10
    args.nodes = []  # R10
    match args:
        case object(_order=v):  # R10
            pass
    return [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v]
