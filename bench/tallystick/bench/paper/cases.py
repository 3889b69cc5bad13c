"""The paper's cases, rebuilt: scripts and their repairs. Its own are not published.

SCOUT is the fanout of its Fig. 1 (e388, a425), LOOP the loop of picture and review (5698), SEQUENCE the sequential run
with a bad last call (e5, s1), V1 to V3 the three submissions of E3; the rest are its shifts (Table II, VI.C.c).
"""

from typing import NamedTuple

SCOUT = """
async def orchestrate(ctx, args):
    async def gen(s):
        return await ctx.run("image.generate", {"prompt": s})

    return await ctx.parallel([gen(s) for s in args["scout_shots"][:4]])
"""
SCOUT_CAUSE_REPAIRED = """
async def orchestrate(ctx, args):
    async def gen(s):
        if "refused" in s:
            s = s.replace("refused", "plain")
        return await ctx.run("image.generate", {"prompt": s})

    return await ctx.parallel([gen(s) for s in args["scout_shots"][:4]])
"""
SCOUT_MOVED_TO_HELPER = """
async def gen_one(ctx, s):
    return await ctx.run("image.generate", {"prompt": s})


async def orchestrate(ctx, args):
    return await ctx.parallel([gen_one(ctx, s) for s in args["scout_shots"][:4]])
"""
SHOTS = {"scout_shots": ["harbour", "refused pier", "crane", "ferry"]}

LOOP = """
async def orchestrate(ctx, args):
    kept = []
    for shot in args["shots"][:2]:
        image = await ctx.run("image.generate", {"prompt": shot})
        review = await ctx.run("review.visual", {"image": image["images"][0], "criteria": shot})
        kept.append(review["score"])
    return kept
"""
LOOP_REPAIRED = """
async def orchestrate(ctx, args):
    kept = []
    for shot in args["shots"][:2]:
        if not shot:
            continue
        image = await ctx.run("image.generate", {"prompt": shot})
        review = await ctx.run("review.visual", {"image": image["images"][0], "criteria": shot})
        kept.append(round(review["score"], 1))
    return kept
"""
LOOP_ARGS = {"shots": ["dawn", "dusk"]}

SEQUENCE = """
OPENING = "a kiln"


async def orchestrate(ctx, args):
    first = await ctx.run("image.generate", {"prompt": OPENING})
    rest = []
    for shot in args["shots"][:3]:
        rest.append(await ctx.run("image.generate", {"prompt": shot}))
    return [first, *rest]
"""
SEQUENCE_ARGS = {"shots": ["clay", "wheel", "glaze"]}
SEQUENCE_ARGS_REPAIRED = {"shots": ["clay", "wheel", "slip"]}
SEQUENCE_EDITED = SEQUENCE.replace('"a kiln"', '"a kiln at night"')
SEQUENCE_SUPERSEDED = SEQUENCE.replace(
    "    return [first, *rest]",
    """\
    night = await ctx.run("image.generate", {"prompt": "a kiln at night"})
    return [night, *rest]""",
)

V1 = """
async def orchestrate(ctx, args):
    one = await ctx.run("image.generate", {"prompt": "1"})
    two = await ctx.run("image.generate", {"prompt": "2"})
    raise ValueError("here it ends")
"""
V2 = V1.replace('raise ValueError("here it ends")', 'return await ctx.run("image.generate", {"prompt": "3"})')
V3 = V2.replace('{"prompt": "1"}', '{"prompt": "9"}')

FOUR = """
async def orchestrate(ctx, args):
    kept = []
    for number in range(4):
        size = args["sizes"][number]
        picture = await ctx.run("image.generate", {"prompt": f"shot {number}", "size": size})
        kept.append(picture["images"][0])
    return kept
"""
FOUR_REPAIRED = FOUR.replace(
    """        size = args["sizes"][number]
""",
    """        size = args["sizes"][number]
        if size == "9999x9999":
            size = "64x48"
""",
)
FOUR_ARGS = {"sizes": ["64x48", "64x48", "64x48", "9999x9999"]}
TWO = """
async def orchestrate(ctx, args):
    first = await ctx.run("image.generate", {"prompt": "a kiln"})
    subject, count = "a wheel", 1
    second = await ctx.run("image.generate", {"prompt": subject, "n": count})
    return [first["images"][0], second["images"][0]]
"""
FANOUT_OF_SIX = """
async def orchestrate(ctx, args):
    async def shot(prompt):
        return await ctx.run("image.generate", {"prompt": prompt, "size": "64x48"})

    return await ctx.parallel([shot(prompt) for prompt in args["prompts"][:6]])
"""
FANOUT_OF_SIX_REPAIRED = FANOUT_OF_SIX.replace(
    """    async def shot(prompt):
""",
    """    async def shot(prompt):
        prompt = prompt or "a glaze"
""",
)
SIX_PROMPTS = ["clay", "", "a wheel", "a kiln", "ash", "a shelf"]

WIDE = """
async def orchestrate(ctx, args):
    async def shot(number):
        return await ctx.run("image.generate", {"prompt": f"shot <{number}>"})

    images = await ctx.parallel([shot(number) for number in range(WIDTH)])
    return [image["images"][0]["$artifact"] for image in images]
"""

RETRY_LOOP = """
async def orchestrate(ctx, args):
    kept = []
    for number in range(3):
        image = await ctx.run("image.generate", {"prompt": "a logo"})
        kept.append(image["images"][0]["$artifact"])
    return kept
"""
RETRY_LOOP_WIDENED = RETRY_LOOP.replace("range(3)", "range(6)")
RETRY_LOOP_SHRUNK = RETRY_LOOP.replace("range(3)", "range(1)")
NUMBERED = RETRY_LOOP.replace('{"prompt": "a logo"}', '{"prompt": f"a logo {number}"}')
FANOUT = """
SHOTS = ["harbour", "pier", "crane"]


async def orchestrate(ctx, args):
    async def shot(prompt):
        image = await ctx.run("image.generate", {"prompt": prompt})
        return image["images"][0]["$artifact"]

    return await ctx.parallel([shot(prompt) for prompt in SHOTS])
"""
FANOUT_INSERTED_AHEAD = FANOUT.replace('"harbour", ', '"ferry", "harbour", ')
EQUAL = FANOUT.replace('["harbour", "pier", "crane"]', '["harbour", "harbour", "crane"]')
ONE = """
async def orchestrate(ctx, args):
    image = await ctx.run("image.generate", {"prompt": "a kiln"})
    return image["images"][0]["$artifact"]
"""


class Shift(NamedTuple):
    """A candidate that no look at the source stops, and what becomes of it: its code (None: completed), its hits."""

    script: str
    candidate: str
    code: str | None
    hits: int


#: The rows of Table II; the last is its residual one.
SHIFTS = {
    "omega grows, same payload": Shift(RETRY_LOOP, RETRY_LOOP.replace("range(3)", "range(4)"), "TS-P005", 0),
    "omega grows, new payload": Shift(NUMBERED, NUMBERED.replace("range(3)", "range(5)"), None, 2),
    "pi shifts, other payload": Shift(
        FANOUT, FANOUT.replace('["harbour", "pier",', '["pier", "harbour",'), "TS-D001", 0
    ),
    "pi shifts, same payload": Shift(
        EQUAL, EQUAL.replace("for prompt in SHOTS", "for prompt in [SHOTS[1], SHOTS[0], SHOTS[2]]"), None, 0
    ),
    "new callsite": Shift(
        ONE,
        ONE.replace("    return", '    await ctx.run("image.generate", {"prompt": "a kiln at night"})\n    return'),
        None,
        1,
    ),
    "duplicate insertion": Shift(
        ONE,
        ONE.replace("    image =", '    await ctx.run("image.generate", {"prompt": "a kiln"})\n    image ='),
        "TS-P005",
        0,
    ),
}
