"""A module of definitions and constants."""

COUNT = 6
STYLE: str = "soft light".strip()
NAMES, SIZES = ("front", "back"), [256 * n for n in range(1, 4)]
TABLE = {name: len(name) for name in NAMES}
LOWER = ", ".join(sorted(NAMES)).lower()
FIRST = NAMES[0] if NAMES else None
NOTE = f"{STYLE}, {COUNT} pictures"
slug = lambda text: text.lower().replace(" ", "-")
...
pass


def describe(name: str, *, size: int = 256) -> str:
    """Say what is drawn."""
    return f"{slug(name)} at {size}"


async def orchestrate(ctx, args):
    number: int = COUNT
    with_names = {describe(name): number for name in NAMES}
    for name in NAMES:
        if name in args:
            break
        continue
    return with_names
