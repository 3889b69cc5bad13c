"""The skill document: what a model has to know to write a script, made of the rules, the catalogue and the context.

It is printed by `tally skill` and stands in every prompt, so that its size is part of the product: a test holds it
under ``TOKEN_LIMIT``. Its worked examples run as tests.
"""

import inspect
import math
import re
from collections.abc import Mapping
from typing import Any

from tallystick.contract.capability import CapabilitySpec, usd
from tallystick.contract.rules.pages import RulePage, pages
from tallystick.providers import catalogue
from tallystick.sandbox.guest.context import Context

TOKEN_LIMIT = 2_500
#: Characters that a token has at least, in English with code: tokenizers in use have 3.6 to 4.3 for this document.
CHARACTERS_PER_TOKEN = 3.5

STORYBOARD = """
MAX_SHOTS = 6

async def orchestrate(ctx, args):
    plan = await ctx.run("storyboard.plan", {"brief": args["brief"], "shots": MAX_SHOTS})

    async def shot(s):
        return await ctx.run("image.generate", {"prompt": s["prompt"], "size": "1024x1024"})

    shots = plan["shots"][:MAX_SHOTS]
    images = await ctx.parallel([shot(s) for s in shots])
    picks = []
    for s, image in zip(shots, images):
        review = await ctx.run("review.visual", {"image": image["images"][0], "criteria": s["prompt"]})
        if review["ok"]:
            picks.append(image["images"][0])
    return {"picks": picks}
"""

RETRIES = """
async def orchestrate(ctx, args):
    async def reply(ticket):
        for attempt in range(3):
            try:
                answer = await ctx.run("text.generate", {"prompt": f"Reply to: {ticket}"})
                return answer["text"]
            except CapabilityError as e:
                if e.kind != "rate_limited":
                    raise
        return None

    replies = await ctx.parallel([reply(t) for t in args["tickets"][:20]], tolerate=True)
    return {"replies": [r for r in replies if r], "open": sum(1 for r in replies if not r)}
"""

EXAMPLES: Mapping[str, str] = {"storyboard": STORYBOARD, "retries": RETRIES}
"""The worked examples, by what they show."""

_HEAD = """# Writing a workflow script

Write one Python module. Its entry point is `async def orchestrate(ctx, args)`; what that returns must be JSON-like and
is the result of the run. The only way to reach the world is `await ctx.run("<capability>", {payload})`: the name is a
literal string, the payload plain JSON-like data. Every call is written down and paid for once; when a script is
repaired, calls that are committed replay for free as long as they stand where and as they stood.
"""

_CONTEXT: Mapping[str, str] = {
    "run": "one call; `take` names a second, different sample of the very same payload",
    "parallel": "coroutines side by side, results in order",
    "pipeline": "each item through the stages, items side by side",
    "dag": '`{"name": (["dependency"], async_function)}`: each function gets a dict of its dependencies\' results',
    "race": "the first success",
    "log": "a line for people",
}

_ERRORS = """All of them but `log` are awaited. A failed call raises `CapabilityError` with `.kind` (`invalid_request`,
`unauthorized`, `content_policy`, `rate_limited`, `unavailable`, `unusable`, and `timeout` of read-only calls) and
`.text`; the name is built in. Budget, grants and unknown outcomes cannot be caught: they stop the run, which is resumed
later. With `tolerate=True` a failed branch is a `Failed` value: falsy, with `.kind` and `.text`.
"""

_BOUNDS = """Bounded means that the source proves a limit: `range(6)`, `xs[:8]`, `range(min(n, 8))`, a literal, a list
built in bounded loops, the result of a bounded fanout. A `for` without calls over any data is fine, and so are helpers
that take ctx, nested async functions, lambdas, comprehensions, f-strings, `match`, `try/except`, `sorted(key=...)`.
"""

_REPAIR = """## Repairing a script

Committed calls are listed with their sites. Leave those call expressions exactly as and where they are: same function,
same block, same order. Do not change the constants, defaults or data that they read, nor the nesting or order of the
fanouts and helper calls that lead to them. Change the code around them, and append new calls after them. To replace a
committed result, append a new call and use its result. To skip work, keep the call and ignore its result.
"""

#: Characters of what a rule refuses, beyond its first clause; `tally rules` has all of it.
_RULE_LENGTH = 250
_STOP = re.compile(r"(?<=[\w`)])[;.](?: |$)")

_PRICES = 'A price is an estimate for one call. An artifact is what an earlier call gave, `image["images"][0]` say.'


def skill(specs: Mapping[str, CapabilitySpec] | None = None, *, repairing: bool = True) -> str:
    """Return the document.

    Args:
        specs: capabilities with configured prices; those of the catalogue by default. Others than these are left out
            when it is given.
        repairing: whether the part on repairs stands in it.
    """
    served = specs if specs is not None else {name: catalogue.spec(name) for name in catalogue.CATALOGUE}
    parts = [
        _HEAD,
        _fenced(STORYBOARD),
        "## Context",
        "\n".join(f"- {_signature(name)}: {words}" for name, words in _CONTEXT.items()),
        _ERRORS,
        "## Rules",
        "Refused are:\n" + "\n".join(map(_rule, pages())),
        _BOUNDS,
        _fenced(RETRIES),
        *([_REPAIR] if repairing else []),
        "## Capabilities",
        "\n".join(_capability(name, served[name]) for name in catalogue.CATALOGUE if name in served),
        _PRICES,
    ]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def estimated_tokens(text: str) -> int:
    """Return how many tokens a text has at most, counted locally and cautiously."""
    return math.ceil(len(text) / CHARACTERS_PER_TOKEN)


def _fenced(code: str) -> str:
    return f"```python\n{code.strip()}\n```"


def _signature(name: str) -> str:
    """Write a method of the context as a script calls it, read off the context itself."""
    found = inspect.signature(getattr(Context, name))
    shown = [
        _parameter(one) for one in found.parameters.values() if one.name != "self" and not one.name.startswith("_")
    ]
    return f"`ctx.{name}({', '.join(shown)})`"


def _parameter(one: inspect.Parameter) -> str:
    star = "*" if one.kind is inspect.Parameter.VAR_POSITIONAL else ""
    default: Any = one.default
    return f"{star}{one.name}" if default is inspect.Parameter.empty else f"{one.name}={default!r}"


def _capability(name: str, spec: CapabilitySpec) -> str:
    shape = catalogue.shape(name)
    effect = "side effect" if spec.side_effecting else "read-only"
    return f"- `{name}` ({effect}, {usd(spec.estimate)}): `{shape.payload}` -> `{shape.result}`"


def _rule(page: RulePage) -> str:
    """Say what a rule refuses: the beginning of its page, as many clauses as there is room for."""
    clauses = [clause for clause in _STOP.split(page.refuses) if clause]
    kept = clauses[:1]
    for clause in clauses[1:]:
        if len("; ".join([*kept, clause])) > _RULE_LENGTH:
            break
        kept.append(clause)
    return f"- {page.code}: {'; '.join(kept).rstrip('.')}"
