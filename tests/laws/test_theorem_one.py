"""Theorem 1: a candidate that the gate accepts never executes a committed identity (contract.md, section 12).

Scripts, failures, edits and crashes are drawn. The oracle is the provider, which counts what it was asked, and a
stand-in that works out on its own which identities a completed launch must have invoked.
"""

import asyncio
import logging
from collections import Counter
from typing import Any, NamedTuple

import anyio
import pytest
from anyio.abc import TaskGroup
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import laws_scripts as drawn
from conftest import LONG
from engine_stores import RefusingStore
from engine_support import House
from engine_witness import Witness, assert_standing, was_not_sent, witnessed
from laws_scripts import EDITS, Part, Parts
from laws_standin import Retelling
from scripted_provider import Gate
from tallystick.contract.errors import (
    AttemptUnresolvedError,
    DivergenceError,
    GateStoppedError,
    PolicyDeniedError,
    TallyError,
)
from tallystick.contract.events import Record
from tallystick.contract.history import History
from tallystick.contract.identity import Identity
from tallystick.contract.payload import digest
from tallystick.contract.prefix import is_losers
from tallystick.engine.messages import ResumeRequest, RunReport
from tallystick.providers.protocol import Outcome, Refused, Unknown, Unusable

EXAMPLES = 20_000 if LONG else 300
TROUBLE: dict[str, Outcome] = {
    "refused": Refused(kind="invalid_request", text="no"),
    "lost": Unknown(reason="reset"),
    "unusable": Unusable(raw={}, text="empty", cost=700),
}
REFUSALS = (GateStoppedError, AttemptUnresolvedError, DivergenceError, PolicyDeniedError)
KNOWN = {
    "image.generate": {"images": [{"$base64": "iVBORw0KGgo=", "media_type": "image/png"}], "width": 1024, "height": 8},
    "speech.generate": {"audio": {"$base64": "SUQz", "media_type": "audio/mpeg"}, "duration_s": 4},
}


class Place(NamedTuple):
    """Some call of a script: the round ``number`` of one of its parts, or all rounds when None."""

    part: int
    number: int | None

    def text(self, script: Parts) -> str:
        """Return what its prompt holds."""
        calls = [part for part in drawn.all_parts(script) if part.kind == "call"]
        tag = calls[self.part % len(calls)].tag if calls else 0
        return f"<{tag}:{'' if self.number is None else self.number}"


class Step(NamedTuple):
    """One resume of a story."""

    edit: str | None
    at: int
    new: Part
    trouble: list[tuple[Place, str]]
    crash: Place | None
    settle: str
    preflight: bool


class Story(NamedTuple):
    """A run from its submission on."""

    script: Parts
    trouble: list[tuple[Place, str]]
    crash: Place | None
    concurrency: int
    seed: int
    steps: list[Step]


places = st.builds(Place, st.integers(0, 5), st.none() | st.integers(0, 2))
troubles = st.lists(st.tuples(places, st.sampled_from(sorted(TROUBLE))), min_size=1, max_size=2)
crashes = st.integers(0, 4).flatmap(lambda drawn_: places if drawn_ == 4 else st.none())
steps = st.builds(
    Step,
    edit=st.sampled_from([None, *sorted(EDITS)]),
    at=st.integers(0, 5),
    new=drawn.parts,
    trouble=st.just([]) | troubles,
    crash=crashes,
    settle=st.sampled_from(["leave", "commit", "abandon"]),
    preflight=st.booleans(),
)
stories = st.builds(
    Story,
    drawn.scripts,
    trouble=troubles,
    crash=crashes,
    concurrency=st.integers(1, 4),
    seed=st.integers(0, 99),
    steps=st.lists(steps, min_size=2, max_size=4),
)


class Telling:
    """A story while it is told, with what must hold after each of its launches."""

    def __init__(self, story: Story, seen: Counter[str]) -> None:
        self.story = story
        self.seen = seen
        self.script = story.script
        self.run = ""
        self.lossy = False
        self.paid: dict[Identity, int] = {}
        self.witness = Witness(shuffle=story.seed)

    async def tell(self) -> None:
        """Submit, and resume step by step, in one engine after another."""
        steps = iter([None, *self.story.steps])
        ended = False
        while not ended:
            store = RefusingStore(self.witness.disk)
            async with witnessed(self.witness, store=store, daemon={"auto_resume": False}) as (engine, _):
                while not (ended or store.dead):
                    if self.run:
                        await self.stands(engine)
                    try:
                        step = next(steps)
                    except StopIteration:
                        ended = True
                    else:
                        await (self.submit(engine, store) if step is None else self.resume(engine, store, step))

    async def submit(self, engine: House, store: RefusingStore) -> None:
        self.prepare(self.script, self.story.trouble)
        gate = self.hold(self.script, self.story.crash)
        source, limits = drawn.source_of(self.script), {"concurrency": self.story.concurrency, "max_calls": 400}
        self.run = await engine.submit(source, limits=limits)
        await self.finish(engine, store, gate, {}, 0)

    def prepare(self, script: Parts, trouble: list[tuple[Place, str]]) -> None:
        self.witness.calm()
        for place, kind in trouble:
            self.witness.broken[place.text(script)] = TROUBLE[kind]

    def hold(self, script: Parts, crash: Place | None) -> Gate | None:
        return self.witness.hold(containing=crash.text(script)) if crash else None

    async def resume(self, engine: House, store: RefusingStore, step: Step) -> None:
        """Make an edit and resume with it."""
        await self.settle(engine, step.settle)
        edit = EDITS[step.edit] if step.edit is not None else None
        made = drawn.edited(self.script, edit, step.at, step.new) if edit is not None else None
        candidate, chosen = made or (self.script, None)
        before, hits = await engine.history(self.run), self.witness.count()
        records = dict(before.records)
        verdict = self.expected_verdict(before, edit.verdict, chosen) if edit and chosen else True
        self.prepare(candidate, step.trouble)
        gate = self.hold(candidate, step.crash)
        source = drawn.source_of(candidate)
        refusal = await refused(engine, self.run, ResumeRequest(source=source, preflight=step.preflight))
        stopped = isinstance(refusal, GateStoppedError)
        assert verdict is None or stopped is not verdict, f"{step.edit} of {chosen}: {refusal}"
        if verdict is False:
            self.seen[f"stopped: {step.edit}"] += 1
        if refusal is not None:
            if gate is not None:
                gate.release()
            self.seen[type(refusal).__name__] += 1
            assert self.witness.count() == hits, "a refused candidate caused a hit"
            return
        if chosen is not None:
            self.seen[f"let pass: {step.edit}"] += 1
        self.script = candidate
        await self.finish(engine, store, gate, records, hits)

    async def finish(
        self, engine: House, store: RefusingStore, gate: Gate | None, before: dict[Identity, Record], hits: int
    ) -> None:
        """Wait for the end of a launch, or let its engine die where the gate holds a call or the launch has ended."""
        if gate is None:
            await self.ended_well(engine, await engine.end(self.run), before, hits)
            return
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_finishing, tasks, gate.reached)
            tasks.start_soon(_finishing, tasks, engine.end, self.run)
        store.die()
        gate.release()
        self.lossy = True
        self.seen["crashed in flight" if gate.waiting else "crashed"] += 1

    async def settle(self, engine: House, how: str) -> None:
        """Decide what is unresolved, as an operator would."""
        for attempt in await engine.attempts(self.run):
            if how != "leave" and attempt.state == "unresolved":
                decision: dict[str, Any] = {"abandon": True}
                if how == "commit":
                    decision = {"result": KNOWN[attempt.capability]}
                await engine.reconcile(self.run, attempt.attempt, **decision)

    def expected_verdict(self, history: History, verdict: bool | None, chosen: Part) -> bool | None:
        """Return the gate's verdict as the law has it: an edit of a call matters where the call is committed."""
        if verdict is not False:
            return verdict
        prompts = [str(history.attempts[record.attempt].started.payload) for record in history.records.values()]
        return False if any(f"<{chosen.tag}:" in prompt for prompt in prompts) else None

    async def ended_well(self, engine: House, report: RunReport, before: dict[Identity, Record], hits: int) -> None:
        """Hold a launch that ended by itself against the records before it and the hits since."""
        history = await engine.history(self.run)
        self.seen[report.reason or report.status] += 1
        if report.status != "completed":
            assert report.orphans == ()
            if report.status == "failed":
                hidden = sum(is_losers(history, identity, history.races.keys()) for identity in before)
                assert len(before) - hidden <= report.calls.replayed + len(report.not_reached)
            return
        told = Retelling(drawn.source_of(self.script), history)
        assert report.result == told.result
        for identity, (capability, payload) in told.asked.items():
            if identity in before:
                assert (capability, digest(payload)) == (before[identity].capability, before[identity].digest)
        skipped = [
            identity
            for identity in before
            if identity not in told.asked and not is_losers(history, identity, told.races)
        ]
        assert report.orphans == tuple(sorted(skipped, key=lambda identity: identity.sort_key))
        self.seen["orphans"] += bool(skipped)
        self.seen["replayed"] += any(identity in before for identity in told.asked)
        self.only_new_work_was_paid(history, told, report.launch, hits)

    def only_new_work_was_paid(self, history: History, told: Retelling, launch: int, hits: int) -> None:
        """Assert that the hits of a completed launch are the new calls of its script, and calls of losers."""
        new = Counter(
            (capability, digest(payload))
            for identity, (capability, payload) in told.asked.items()
            if history.latest_attempt[identity].started.launch == launch
        )
        losers = Counter(
            (attempt.started.capability, attempt.started.digest)
            for attempt in history.attempts.values()
            if attempt.started.launch == launch and is_losers(history, attempt.started.identity, told.races)
            if not was_not_sent(attempt)
        )
        paid = Counter((hit.capability, digest(hit.payload)) for hit in self.witness.hits[hits:])
        assert paid == new + losers

    async def stands(self, engine: House) -> None:
        """Assert what holds between launches: above all that no committed identity was asked for again."""
        await assert_standing(engine, self.run, lossy=self.lossy)
        history = await engine.history(self.run)
        keys: dict[Identity, set[str]] = {}
        for attempt in history.attempts.values():
            keys.setdefault(attempt.started.identity, set()).add(attempt.started.effect_key)
        times = Counter(hit.key for hit in self.witness.hits)
        for identity in history.records:
            hits = sum(times[key] for key in keys[identity])
            assert hits == self.paid.setdefault(identity, hits), f"{identity} is committed and was asked for again"


async def refused(engine: House, run: str, request: ResumeRequest) -> TallyError | None:
    """Start the next launch; return the error that it was refused with, if it was."""
    try:
        await engine.host.service.resume(run, request)
    except REFUSALS as error:
        return error
    return None


async def _finishing(tasks: TaskGroup, operation: Any, *args: Any) -> None:
    await operation(*args)
    tasks.cancel_scope.cancel()


@pytest.mark.timeout(0 if LONG else 120)
def test_a_candidate_that_the_gate_accepts_never_executes_a_committed_identity() -> None:
    seen: Counter[str] = Counter()

    @settings(max_examples=EXAMPLES, deadline=None, derandomize=not LONG, phases=[Phase.generate])
    @given(stories)
    def every_story(story: Story) -> None:
        seen["stories"] += 1
        runner.run(Telling(story, seen).tell())

    with asyncio.Runner() as runner:
        every_story()
    logging.getLogger(__name__).info("%d stories: %s", seen["stories"], dict(seen.most_common()))
    assert seen["stories"] >= EXAMPLES
    ends = {"completed", "TS-R002", "TS-D001", "TS-P005", "TS-A002", "orphans", "replayed", "crashed in flight"}
    stopped = {f"stopped: {name}" for name, edit in EDITS.items() if edit.verdict is False}
    passed = {f"let pass: {name}" for name, edit in EDITS.items() if edit.verdict is True}
    before = {error.__name__ for error in REFUSALS if error is not PolicyDeniedError}
    missed = (ends | stopped | passed | before) - seen.keys()
    assert not missed, "the stories are too tame to say anything"
