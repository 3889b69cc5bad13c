import random  # R10
from time import time  # R10

SEEN = []
COUNTS = {"a": [0]}
total = 0


def remember(items, name):
    items.append(name)  # R04


def add(name, items=[]):  # R04
    items.append(name)
    return items


def stamp(now=time()):  # R04 R04
    return now


async def orchestrate(ctx, args):
    global total
    total += 1  # R04
    SEEN.append(args["name"])  # R04
    COUNTS["a"].append(1)  # R04
    COUNTS["b"] = 2  # R04
    remember(SEEN, "x")
    same = SEEN
    same.extend("ab")  # R04
    a = hash(args["name"])  # R04
    b = id(args)  # R04
    c = input("name? ")  # R04
    d = open("notes.txt")  # R04
    e = random.random()  # R04
    f = sorted(args["xs"], key=hash)  # R04
    return [a, b, c, d, e, f, add("x"), stamp()]
