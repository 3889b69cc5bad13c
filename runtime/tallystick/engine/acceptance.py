"""The acceptance of a driver with a whole engine round it: what the host refuses, whatever its guest sends.

``tallystick.sandbox.acceptance`` tries the walls; here the guest is taken for lost. The engine is a real one with a
journal in memory; the scripts that it checks are innocent, and where a check says so, another one runs in the guest.
"""

import hashlib
from collections.abc import Awaitable, Callable, Sequence

import anyio
import anyio.lowlevel

from tallystick.contract.errors import TallyError
from tallystick.contract.runtime_rule import OVER_BUDGET
from tallystick.engine.acceptance_bench import Bench, bench
from tallystick.engine.messages import BudgetRequest, Limits, RunReport, RunRequest
from tallystick.engine.steps import BREACH
from tallystick.sandbox import acceptance
from tallystick.sandbox.acceptance import Check, frame
from tallystick.sandbox.protocol import Driver

#: Seconds that one episode may take.
PATIENCE = 60.0
_WIDTH, _AT_ONCE = 8, 2

ONE = """
async def orchestrate(ctx, args):
    return await ctx.run("text.generate", {"prompt": "hello"})
"""
_CALL = 'id=1, site="orchestrate/#1", capability="text.generate", payload={"prompt": "hello"}'

#: What a guest sends in place of the script that was checked, and how many provider calls it may come to.
FORGERIES = {
    "a call at a site that the script does not have": ('call(**{**CALL, "site": "orchestrate/#2"})', 0),
    "another capability at a site": ('call(**{**CALL, "capability": "image.generate"})', 0),
    "an occurrence that the host does not count": ("call(**{**CALL, 'occurrence': 1})", 0),
    "a call id that is not the next": ("call(**{**CALL, 'id': 7})", 0),
    "a call id used twice": ("call(**CALL); call(**{**CALL, 'path': (1,)})", 1),
    "a second call at a site while the first is in flight": (
        "say(made(**CALL), made(**{**CALL, 'id': 2, 'occurrence': 1}))",
        1,
    ),
    "more calls than may be in flight": (
        "[call(**{**CALL, 'id': n + 1, 'path': (n,), 'payload': {'prompt': 'x' * n}}) for n in range(2000)]",
        2000,
    ),
}

PICTURES = """
async def orchestrate(ctx, args):
    made = []
    for number in range(4):
        made.append(await ctx.run("image.generate", {"prompt": f"picture {number}"}))
        if number == 1 and args["fail"]:
            raise ValueError("this far and no further")
    return made
"""
FANOUT = """
async def orchestrate(ctx, args):
    async def one(number):
        return await ctx.run("text.generate", {"prompt": f"text {number}"})
    return await ctx.parallel([one(number) for number in range(8)])
"""


async def run(driver: Driver) -> list[Check]:
    """Run the whole acceptance of a driver: its walls, then what the host holds when they do not.

    Raises:
        SandboxError: the driver cannot start a guest.
    """
    walls = await acceptance.run(driver)
    return [*walls, *await episodes(driver)]


async def episodes(driver: Driver) -> list[Check]:
    """Run the checks that need an engine."""
    found: list[Check] = []
    async with bench(driver) as engine:
        tries: Sequence[Callable[[Bench], Awaitable[list[Check]]]] = (
            _grants,
            _forgeries,
            _artifacts,
            _budget,
            _lowered,
            _concurrency,
        )
        for episode in tries:
            with anyio.move_on_after(PATIENCE) as patience:
                found += await episode(engine)
            if patience.cancelled_caught:
                found.append(_check("RPC authorization", "an answer in time", ok=False, detail=episode.__name__))
        found += await _audit(engine)
    return found


async def _grants(at: Bench) -> list[Check]:
    before = len(at.provider.hits)
    try:
        said = str(await at.run(ONE, grants=("image.generate",)))
        refused = False
    except TallyError as error:
        said, refused = f"{error.code}: {error.message}", True
    ok = refused and len(at.provider.hits) == before
    return [_check("RPC authorization", "a capability that was not granted", ok=ok, detail=said)]


async def _forgeries(at: Bench) -> list[Check]:
    found = []
    for name, (code, allowed) in FORGERIES.items():
        before = len(at.provider.hits)
        at.driver.source = frame.script(f"CALL = dict({_CALL}); {code}")
        report = await at.run(ONE, grants=("text.generate",))
        at.driver.source = ""
        hits = len(at.provider.hits) - before
        ok = report.reason == BREACH and hits <= allowed
        found.append(_check("RPC authorization", name, ok=ok, detail=_told(report, hits)))
    return found


async def _artifacts(at: Bench) -> list[Check]:
    made = await at.run(PICTURES, {"fail": False}, grants=("image.generate",))
    reference = made.result[0]["images"][0] if made.status == "completed" else {}
    digest = str(reference.get("$artifact", "")).removeprefix("sha256:")
    data = at.store.get_file(digest) if digest else b""
    kept = data.startswith(b"\x89PNG") and hashlib.sha256(data).hexdigest() == digest
    told = set(reference) == {"$artifact", "media_type", "bytes"} and reference["bytes"] == len(data)
    return [
        _check("artifact export", "a picture is kept by its content", ok=kept, detail=f"{len(data):,} bytes"),
        _check("artifact export", "a script gets a reference, never the bytes", ok=told, detail=str(reference)[:80]),
    ]


async def _budget(at: Bench) -> list[Check]:
    before = len(at.provider.hits)
    failed = await at.run(PICTURES, {"fail": True}, grants=("image.generate",), budget_usd=1.0)
    lowered = await at.resume(failed.run, {"fail": False}, budget_usd=failed.spend.usd + 0.001)
    attempts = len((await at.host.service.library.history(failed.run)).attempts)
    hits = len(at.provider.hits) - before
    held = lowered.status == "stopped" and lowered.calls.denied == 1 and attempts == hits == 2  # noqa: PLR2004 - it failed after the second
    raised = await at.resume(failed.run, {"fail": False}, budget_usd=1.0)
    went_on = raised.status == "completed" and (raised.calls.replayed, raised.calls.executed) == (2, 2)
    return [
        _check("budget downgrade", "a budget lowered on resume holds", ok=held, detail=_told(lowered, hits)),
        _check("budget downgrade", "raised again, the run goes on", ok=went_on, detail=_told(raised, 4)),
    ]


async def _lowered(at: Bench) -> list[Check]:
    before = len(at.provider.hits)
    at.provider.answers = anyio.Event()
    limits = Limits(grants=("image.generate",), budget_usd=1.0)
    run = await at.submit(RunRequest(source=PICTURES, args={"fail": False}, limits=limits))
    try:
        while len(at.provider.hits) == before:
            await anyio.lowlevel.checkpoint()
        await at.host.budgets.change(run, BudgetRequest(budget_usd=0.001))
    finally:
        at.provider.answers.set()
    lowered = await at.end(run)
    hits = len(at.provider.hits) - before
    attempts = len((await at.host.service.library.history(run)).attempts)
    held = lowered.reason == OVER_BUDGET and lowered.calls.executed == attempts == hits == 1
    name = "a budget lowered while the run lives holds from the next call on"
    return [_check("budget downgrade", name, ok=held, detail=_told(lowered, hits))]


async def _concurrency(at: Bench) -> list[Check]:
    at.provider.peak = 0
    report = await at.run(FANOUT, grants=("text.generate",), concurrency=_AT_ONCE)
    peak = at.provider.peak
    wide = isinstance(report.result, list) and len(report.result) == _WIDTH
    ok = report.status == "completed" and wide and peak == _AT_ONCE
    return [_check("concurrency", "calls in flight", ok=ok, detail=f"{peak} at once of {_WIDTH}, {_AT_ONCE} allowed")]


async def _audit(at: Bench) -> list[Check]:
    """Compare the journal with what the provider saw, over all of the above."""
    histories = [await at.host.service.library.history(run) for run in at.runs]
    attempts = [attempt for history in histories for attempt in history.attempts.values()]
    # The local provider refuses nothing here: what failed was written down and, after a stop, never sent.
    sent = sum(attempt.state != "failed" for attempt in attempts)
    open_ones = sum(attempt.state == "in_flight" for attempt in attempts)
    denials = sum(len(history.denials) for history in histories)
    unended = sum(launch.ended is None for history in histories for launch in history.launches.values())
    hits = len(at.provider.hits)
    return [
        _check(
            "capability audit",
            "every provider call has its attempt, and every attempt its end",
            ok=sent == hits and open_ones == 0,
            detail=f"{hits} calls, {sent} attempts sent, {open_ones} without an end",
        ),
        _check("capability audit", "denials are in the journal", ok=denials > 0, detail=f"{denials} denials"),
        _check("capability audit", "every launch has its end", ok=unended == 0, detail=f"{unended} without"),
    ]


def _told(report: RunReport, hits: int) -> str:
    return f"{report.status} ({report.reason or 'no reason'}), {hits} provider calls"


def _check(check: str, name: str, *, ok: bool, detail: str) -> Check:
    return Check(check=check, name=name, ok=ok, detail=detail)
