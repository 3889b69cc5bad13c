"""A provider that bears witness, and the invariants that hold after every story an engine test tells.

The oracle is the provider: what it was asked, what it billed, and whether the journal had the attempt by then. None of
that is the product's own word.
"""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from typing import Any

import anyio
import pytest

from engine_support import House, house
from scripted_provider import Hit, ScriptedProvider
from tallystick.contract.attempts import Attempt
from tallystick.contract.capability import MICROS_PER_USD
from tallystick.contract.errors import DivergenceError
from tallystick.contract.events import AttemptStarted
from tallystick.contract.history import History
from tallystick.contract.payload import digest
from tallystick.engine.messages import RunReport
from tallystick.providers.protocol import Outcome
from tallystick.store.memory import MemoryDisk, MemoryStore

NOT_SENT = "not sent"


class Witness(ScriptedProvider):
    """A scripted provider that looks into the journal at the moment of each hit, and keeps the bill.

    Attributes:
        disk: what the engine's store writes to.
        broken: what calls answer whose payload contains the key, whenever they come.
        at_first: what they answer before that, one after another, each once.
        unannounced: hits whose attempt was not durable when they came.
        billed: micro-dollars of all its answers, ``unbilled`` how many of them came without a cost.
    """

    def __init__(self, disk: MemoryDisk | None = None, **options: Any) -> None:
        super().__init__(**options)
        self.disk = disk or MemoryDisk()
        self.broken: dict[str, Outcome] = {}
        self.at_first: dict[str, list[Outcome]] = {}
        self.unannounced: list[Hit] = []
        self.billed = 0
        self.unbilled = 0
        self._durable: Counter[str] = Counter()
        self._looked_at = 0
        self._news = anyio.Event()

    def times(self, key: str) -> int:
        """Return how often a call with this effect key came."""
        return sum(hit.key == key for hit in self.hits)

    async def has_answered(self, calls: int) -> None:
        """Wait until so many calls have their answers."""
        while len(self.answered) < calls:
            await self._news.wait()

    def calm(self) -> None:
        super().calm()
        self.broken.clear()
        self.at_first.clear()

    def reshuffle(self, seed: int) -> None:
        """Answer in another order from now on."""
        self._shuffle = seed

    def _note(self, hit: Hit) -> None:
        super()._note(hit)
        events = self.disk.events
        while self._looked_at < len(events):
            event = events[self._looked_at]
            self._looked_at += 1
            if isinstance(event, AttemptStarted):
                self._durable[event.effect_key] += 1
        self._durable[hit.key] -= 1
        if self._durable[hit.key] < 0:
            self.unannounced.append(hit)

    def _answer(self, hit: Hit) -> Outcome:
        first = (outcomes for text, outcomes in self.at_first.items() if text in hit.text and outcomes)
        broken = (outcome for text, outcome in self.broken.items() if text in hit.text)
        outcomes = next(first, None)
        outcome = outcomes.pop(0) if outcomes else next(broken, None) or super()._answer(hit)
        if outcome.cost is None:
            self.unbilled += 1
        else:
            self.billed += outcome.cost
        self._news.set()
        self._news = anyio.Event()
        return outcome


@asynccontextmanager
async def witnessed(provider: Witness | None = None, **options: Any) -> AsyncIterator[tuple[House, Witness]]:
    """Run an engine on the disk of a witness; the house is to be asked, the witness to be believed."""
    witness = provider or Witness()
    with closing(options.pop("store", None) or MemoryStore(witness.disk)) as store:
        async with house(witness, store=store, **options) as engine:
            yield engine, witness


async def assert_diverges(engine: House, run: str, source: str, said: str) -> None:
    """Assert that a resume with a rewrite stops at a committed call with no hit: before the launch, and in one."""
    hits = engine.provider.count()
    with pytest.raises(DivergenceError) as refused:
        await engine.resume(run, source, preflight=True)
    assert said in refused.value.message
    stopped = await engine.resume(run, source, preflight=False)
    assert (stopped.status, stopped.reason, stopped.result) == ("stopped", "TS-D001", None)
    assert stopped.error is not None
    assert said in stopped.error.message
    assert engine.provider.count() == hits


async def assert_standing(engine: House, run: str, *, lossy: bool = False) -> RunReport:
    """Assert the standing invariants I1 to I4 of a run that is not live, and return its report.

    Args:
        engine: the engine that has the run.
        run: its id.
        lossy: True when an engine died, or a store refused, on the way: then an attempt whose outcome is unknown may
            never have been sent, and an answer may have been billed that nobody could write down.
    """
    provider = engine.provider
    assert isinstance(provider, Witness)
    history = await engine.history(run)
    History.fold(run, [event for event in provider.disk.events if event.run == run])  # or the next start refuses it
    attempts = list(history.attempts.values())
    _hits_are_attempts(provider, attempts, lossy=lossy)
    _records_have_attempts(history)
    assert provider.unannounced == [], "I3: a hit came before its attempt was durable"
    report = await engine.host.service.report(run)
    _report_agrees(report, history, lossy=lossy)
    if not lossy and len({event.run for event in provider.disk.events}) == 1 and not history.decisions:
        assert round(report.spend.usd * MICROS_PER_USD) == provider.billed, "I4: the spend is not the bill"
        assert report.spend.unpriced == provider.unbilled, "I4: what came without a cost is not zero"
    return report


def _hits_are_attempts(provider: Witness, attempts: list[Attempt], *, lossy: bool) -> None:
    """I1: every attempt that was sent is one hit, and there is no other."""
    sent = [attempt for attempt in attempts if not was_not_sent(attempt)]
    for key in {attempt.started.effect_key for attempt in attempts}:
        most = sum(attempt.started.effect_key == key for attempt in sent)
        unsure = sum(attempt.started.effect_key == key and is_unsure(attempt) for attempt in sent) if lossy else 0
        assert most - unsure <= provider.times(key) <= most, f"I1: {provider.times(key)} hits, {most} attempts sent"
    asked = {attempt.started.effect_key: attempt.started for attempt in attempts}
    for hit in provider.hits:
        started = asked.get(hit.key)
        if started is not None:
            assert (hit.capability, digest(hit.payload)) == (started.capability, started.digest)


def _records_have_attempts(history: History) -> None:
    """I2: no record without its attempt, no attempt without its end."""
    for identity, record in history.records.items():
        attempt = history.attempts[record.attempt]
        assert attempt.started.identity == identity == record.identity
        assert attempt.committed is record
    committed = Counter(attempt.started.identity for attempt in history.attempts.values() if attempt.committed)
    assert set(committed.values()) <= {1}, "I1: an identity has two commits"
    states = {attempt.state for attempt in history.attempts.values()}
    assert "in_flight" not in states, "I2: an attempt has no end"


def _report_agrees(report: RunReport, history: History, *, lossy: bool) -> None:
    """I4: what the user is told is what the journal holds."""
    by_hand = {
        attempt.started.attempt
        for attempt in history.attempts.values()
        if attempt.decided is not None and attempt.decided.decision == "commit"
    }
    for launch in report.launches:
        committed = [
            one for one in history.records.values() if (one.launch, one.attempt in by_hand) == (launch.launch, False)
        ]
        # Of the tries of one call the last one is what became of it, unless the next one was denied.
        latest = {one.started.identity: one for one in history.attempts.values() if one.started.launch == launch.launch}
        attempts = list(latest.values())
        failed = [one for one in attempts if one.state in ("failed", "unusable", "unknown") and not was_not_sent(one)]
        if launch.status not in ("running", "interrupted"):
            assert launch.calls.executed == len(committed), "I4: executed calls"
            assert lossy or launch.calls.failed + launch.calls.denied >= len(failed), "I4: failed calls"
    unresolved = {one.attempt for one in report.unresolved}
    assert unresolved == {one.started.attempt for one in history.unresolved}
    assert report.calls.unresolved == len(unresolved)
    assert round(report.spend.usd * MICROS_PER_USD) == sum(one.cost or 0 for one in history.attempts.values())
    assert report.spend.unpriced == sum(one.cost is None for one in history.attempts.values())
    if report.status == "completed":
        assert report.reason is None
        assert report.error is None
    else:
        assert report.error is not None
        assert report.error.code == report.reason


def was_not_sent(attempt: Attempt) -> bool:
    """Whether an attempt says of itself that it never reached the provider."""
    return attempt.ended is not None and attempt.ended.outcome == "failed" and attempt.ended.text.startswith(NOT_SENT)


def is_unsure(attempt: Attempt) -> bool:
    """Whether only the provider can say if an attempt reached it."""
    decided = attempt.decided is not None
    return decided or attempt.state in ("unresolved", "unknown", "abandoned")
