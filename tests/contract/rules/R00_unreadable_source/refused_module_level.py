LIMITS = {"draft": 3}
for name in ("draft", "final"):  # R00
    LIMITS[name] = 3
LIMITS["final"] = 4  # R00
LIMITS.update(draft=1)  # R00
SEED, STEP = compute(), 2  # R00
SIZES: list = [double(n) for n in (1, 2)]  # R00
if LIMITS:  # R00
    STYLE = "ink"
COUNT = 1
COUNT += 1  # R00
del COUNT  # R00
try:  # R00
    TONE = "calm"
except Exception:
    TONE = "loud"


def double(n):
    return 2 * n


async def orchestrate(ctx, args):
    return LIMITS
