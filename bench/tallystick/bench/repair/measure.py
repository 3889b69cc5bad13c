"""The measures: repaired within k rewrites, the share that the gate accepts, what it cost, and what was paid twice."""

import math
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from tallystick.bench.repair.corpus import Task, World, effect_of
from tallystick.contract.authoring.prompt import Arm
from tallystick.contract.errors import TallyError
from tallystick.contract.history import History
from tallystick.engine.assembly import running
from tallystick.engine.authoring.choices import ModelChoice
from tallystick.engine.authoring.messages import AuthorRequest, RepairRequest, WritingReport
from tallystick.engine.config import CapabilityPolicy, Config, DaemonSettings
from tallystick.engine.host import Host
from tallystick.engine.messages import Limits, ResumeRequest, RunRequest
from tallystick.kernel import SystemClock
from tallystick.providers.catalogue import CATALOGUE
from tallystick.sandbox.memory import MemoryDriver
from tallystick.store.memory import MemoryStore

#: The 97.5 % quantile of the normal distribution: intervals are of 95 %.
_Z = 1.959964


class Episode(msgspec.Struct, frozen=True, kw_only=True):
    """One failure in the hands of a model.

    ``valid`` counts candidates that the checker let pass, ``admitted`` those of them that the gate let pass as well;
    ``first_admitted`` is that of the first, None where none was valid. ``rewrites`` is how many it took until one was
    accepted, None where none was. See ``paid_again``.
    """

    task: str
    arm: Arm
    rewrites: int | None
    asked: int
    valid: int
    admitted: int
    first_admitted: bool | None
    final: str
    tokens: int
    model_usd: float
    provider_calls: int
    paid_again: int


class Rate(msgspec.Struct, frozen=True):
    """A share with its Wilson interval of 95 %."""

    hits: int
    of: int
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.hits}/{self.of} [{self.low:.2f}, {self.high:.2f}]"


def rate(hits: int, of: int) -> Rate:
    """Return a share with its Wilson score interval; without any trial it may be anything."""
    if of == 0:
        return Rate(0, 0, 0.0, 1.0)
    share, z2 = hits / of, _Z * _Z
    middle = (share + z2 / (2 * of)) / (1 + z2 / of)
    half = _Z * math.sqrt(share * (1 - share) / of + z2 / (4 * of * of)) / (1 + z2 / of)
    return Rate(hits, of, max(0.0, middle - half), min(1.0, middle + half))


def within(episodes: Sequence[Episode], k: int) -> Rate:
    """Return how many failures were repaired within k rewrites."""
    return rate(sum(one.rewrites is not None and one.rewrites <= k for one in episodes), len(episodes))


def gate_share(episodes: Iterable[Episode]) -> Rate:
    """Return how many of the candidates that the checker let pass the gate let pass."""
    found = list(episodes)
    return rate(sum(one.admitted for one in found), sum(one.valid for one in found))


def first_share(episodes: Iterable[Episode]) -> Rate:
    """Return how many of the first valid candidates the gate let pass: what a loop without it would have run."""
    found = [one.first_admitted for one in episodes if one.first_admitted is not None]
    return rate(sum(found), len(found))


@asynccontextmanager
async def workshop(config: Config) -> AsyncIterator[tuple[Host, World]]:
    """Run an engine in memory whose calls are served by a world; providers and models are those of ``config``."""
    world = World()
    policies = {name: CapabilityPolicy(provider=world.name) for name in CATALOGUE}
    config = msgspec.structs.replace(config, daemon=DaemonSettings(warm=0), capabilities=policies)
    async with running(
        MemoryStore(),
        config,
        MemoryDriver(),
        home=Path("/nowhere"),
        clock=SystemClock(),
        providers={world.name: world},
    ) as host:
        yield host, world


async def episode(host: Host, world: World, task: Task, *, arm: Arm, choice: ModelChoice, attempts: int) -> Episode:
    """Let a task fail, have it repaired, go on with the repair, and count.

    A task that the checker refuses never ran: it is corrected as a draft, and then launched.
    """
    world.become(task)
    service, limits = host.service, Limits(grants=task.grants)
    if task.refused:
        asked = AuthorRequest(
            task.request, task.args, limits=limits, model=choice, attempts=attempts, draft=task.script
        )
        run = (await service.authoring.author(asked)).run
    else:
        run = (await service.submit(RunRequest(source=task.script, args=task.args, limits=limits))).run
        await _ended(host, run)
        request = RepairRequest(model=choice, attempts=attempts, arm=arm)
        await service.authoring.repair(run, request)
    await _ended(host, run)
    written = await service.authoring.report(run)
    world.calm()
    final = await _go_on(host, run, written)
    valid = [one for one in written.candidates if one.source is not None and not one.violations]
    admitted = [not one.counterexamples for one in valid]
    return Episode(
        task=task.name,
        arm=arm,
        rewrites=len(written.candidates) if written.state == "accepted" else None,
        asked=len(written.candidates),
        valid=len(valid),
        admitted=sum(admitted),
        first_admitted=admitted[0] if admitted else None,
        final=final,
        tokens=sum(one.tokens or 0 for one in written.candidates),
        model_usd=sum(one.cost_usd or 0.0 for one in written.candidates),
        provider_calls=world.calls,
        paid_again=paid_again(world.done, await service.library.history(run)),
    )


def paid_again(done: Iterable[str], history: History) -> int:
    """Count the side effects that were carried out more often than the script's last launch asked for them.

    Equal payloads that a script draws on purpose are asked for as often as they are paid; a call that moved is asked
    for once and paid twice. What the last launch skipped was paid once, and is an orphan.
    """
    ended = history.launch.ended if history.launch is not None else None
    skipped = set(ended.orphans) if ended is not None else set()
    asked: Counter[str] = Counter()
    for identity, record in history.records.items():
        if identity not in skipped:
            started = history.attempts[record.attempt].started
            asked[effect_of(started.capability, started.payload)] += 1
    times = Counter(done)
    return sum(max(0, times[effect] - wanted) for effect, wanted in asked.items())


async def _go_on(host: Host, run: str, written: WritingReport) -> str:
    if written.source is None:
        return written.error.code if written.error is not None else "given up"
    try:
        await host.service.resume(run, ResumeRequest(source=written.source))
    except TallyError as error:
        return error.code
    await _ended(host, run)
    report = await host.service.report(run)
    return report.reason or report.status


async def _ended(host: Host, run: str) -> None:
    async for _ in host.service.watch(run):
        pass
