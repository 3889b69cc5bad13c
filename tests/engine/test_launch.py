"""The host's side of one launch: whatever a guest sends, it is checked here, and decided here."""

from typing import Any

import pytest

from tallystick.contract.capability import Envelope
from tallystick.contract.checker import check
from tallystick.contract.events import AnyEvent, AttemptEnded, AttemptStarted, Committed, Record, RunCreated, Stored
from tallystick.contract.history import History
from tallystick.contract.identity import Identity
from tallystick.contract.payload import digest
from tallystick.contract.runtime_rule import Allowance, Stop
from tallystick.engine.launch import LOG_LIMIT, Launch
from tallystick.engine.resumes import revision_of
from tallystick.engine.steps import (
    CANCELLED,
    INTERRUPTED,
    CommittedCall,
    Dispatch,
    DroppedCall,
    Fail,
    FailedCall,
    Finished,
    Halt,
    Note,
    Serve,
    StoppedCall,
)
from tallystick.engine.tree import payload_fault
from tallystick.providers import catalogue
from tallystick.sandbox.frames import WINDOW, Call, Crash, Done, Log, Ready
from tallystick.sandbox.protocol import Exit

SCRIPT = """
async def orchestrate(ctx, args):
    async def shot(number):
        return await ctx.run("image.generate", {"prompt": f"shot {number}"})

    plan = await ctx.run("storyboard.plan", {"brief": "x", "shots": 4})
    return await ctx.parallel([shot(number) for number in range(4)])
"""
SHOT, PLAN = "orchestrate.shot/#1", "orchestrate/#1"
STOP = Stop(CANCELLED, "cancelled", "resume")
IDENTITY = Identity(SHOT, (0,), 0)


class Table:
    """A launch of the script, its history, and the frames of its guest with their ids counted."""

    def __init__(self, *events: AnyEvent, allowance: Allowance | None = None, number: int = 1, **limits: Any) -> None:
        script = check(SCRIPT).script
        assert script is not None
        self.history = History("r")
        self.revision = revision_of(self.history, script, None, 0.0)
        self.fingerprints = {fact.site: fact.fingerprint for fact in script.sites}
        envelope = Envelope(**{"grants": tuple(catalogue.CATALOGUE), **limits})
        for event in (RunCreated(run="r", at=0.0, name="r", envelope=envelope), self.revision, *events):
            self.history.apply(event)
        self.launch = Launch(
            number=number,
            revision=self.revision,
            envelope=envelope,
            allowance=allowance or Allowance(),
            history=self.history,
            specs={name: catalogue.spec(name) for name in catalogue.CATALOGUE},
            validate=payload_fault,
        )
        self.sent = 0

    def call(self, path: tuple[int | str, ...] = (0,), **changes: Any) -> Any:
        self.sent += 1
        fields: dict[str, Any] = {
            "id": self.sent,
            "site": SHOT,
            "path": path,
            "occurrence": 0,
            "capability": "image.generate",
            "payload": {"prompt": "shot"},
        }
        return self.launch.on_frame(Call(nonce="n", **{**fields, **changes}))

    def plan(self, **changes: Any) -> Any:
        told = {"site": PLAN, "capability": "storyboard.plan", "payload": {"brief": "x", "shots": 4}, **changes}
        return self.call((), **told)

    def start(self, number: int, identity: Identity = IDENTITY, payload: Any = None, **changes: Any) -> AttemptStarted:
        """Apply and return the attempt at an identity of the script."""
        facts = {fact.site: fact for fact in self.revision.sites}
        capability = facts[identity.site].capability
        fields: dict[str, Any] = {
            "effect": catalogue.spec(capability).effect,
            "payload": payload or {"prompt": "shot"},
            "launch": 1,
            **changes,
        }
        event = AttemptStarted(
            run="r",
            at=1.0,
            attempt=number,
            revision=0,
            identity=identity,
            capability=capability,
            fingerprint=self.fingerprints[identity.site],
            digest=digest(fields["payload"]),
            effect_key=f"key-{number}",
            reserved=5,
            **fields,
        )
        self.history.apply(event)
        return event

    def commit(self, number: int, identity: Identity = IDENTITY, payload: Any = None, cost: int | None = 7) -> Record:
        """Apply an attempt and its record."""
        record = record_of(self.start(number, identity, payload), cost)
        self.history.apply(Committed(run="r", at=2.0, record=record))
        return record


def record_of(started: AttemptStarted, cost: int | None = 7) -> Record:
    return Record(
        identity=started.identity,
        capability=started.capability,
        fingerprint=started.fingerprint,
        digest=started.digest,
        take=started.take,
        result=Stored(inline={"width": 1}),
        cost=cost,
        revision=0,
        launch=started.launch,
        attempt=started.attempt,
    )


def assert_breach(step: Any, launch: Launch, said: str) -> None:
    assert isinstance(step, Halt)
    assert step.stop.code == "TS-R004"
    assert said in step.stop.message
    assert not launch.accepts_work
    assert launch.ending().status == "failed"


# The wall.


@pytest.mark.parametrize(
    ("forged", "said"),
    [
        ({"site": "orchestrate/#9"}, "orchestrate/#9"),
        ({"site": PLAN}, "where the script calls 'storyboard.plan'"),
        ({"capability": "video.generate"}, "where the script calls 'image.generate'"),
        ({"occurrence": 1}, "the host counts occurrence 0"),
        ({"id": 2}, "call id 2 after 0"),
        ({"id": 3}, "call id 3 after 0"),
    ],
)
def test_a_forged_call_is_a_breach_and_not_dispatched(forged: dict[str, Any], said: str) -> None:
    table = Table()
    assert_breach(table.call(**forged), table.launch, said)
    assert (table.launch.pending, table.launch.invoked) == ({}, set())


def test_an_id_may_not_come_twice() -> None:
    table = Table()
    assert isinstance(table.call((0,)), Dispatch)
    assert_breach(table.call((1,), id=1), table.launch, "call id 1 after 1")


def test_a_site_and_path_serve_one_call_at_a_time() -> None:
    table = Table()
    table.call((0,))
    assert_breach(table.call((0,), occurrence=1), table.launch, "their order would be chance")


def test_occurrences_are_counted_for_each_path_on_the_hosts_side() -> None:
    table = Table()
    for path in ((0,), (1,)):
        for occurrence in range(3):
            step = table.call(path, occurrence=occurrence)
            assert isinstance(step, Dispatch)
            assert step.request.identity == Identity(SHOT, path, occurrence)
            table.launch.on_settled(step.call, FailedCall("unavailable", "no"))
    assert_breach(table.call((0,), occurrence=2), table.launch, "the host counts occurrence 3")


def test_an_identity_is_invoked_once_per_launch_though_it_replays() -> None:
    table = Table()
    table.commit(1)
    assert isinstance(table.call((0,)), Serve)
    assert_breach(table.call((0,), occurrence=0), table.launch, "the host counts occurrence 1")


def test_no_more_calls_than_the_window_are_in_flight() -> None:
    table = Table()
    for number in range(WINDOW):
        assert isinstance(table.call((number,)), Dispatch)
    assert_breach(table.call((WINDOW,)), table.launch, f"more than {WINDOW} calls")


@pytest.mark.parametrize("last", [Done(nonce="n", value=1), Crash(nonce="n", kind="ValueError", text="x")])
def test_nothing_may_come_after_the_last_word(last: Done | Crash) -> None:
    table = Table()
    assert isinstance(table.launch.on_frame(last), Finished)
    assert not table.launch.accepts_work
    assert_breach(table.call(), table.launch, "after the guest's last word")


def test_the_last_word_may_not_come_while_a_call_is_in_flight() -> None:
    table = Table()
    table.call()
    assert_breach(table.launch.on_frame(Done(nonce="n", value=1)), table.launch, "with 1 calls in flight")


def test_a_guest_is_ready_once() -> None:
    table = Table()
    assert_breach(table.launch.on_frame(Ready(nonce="n")), table.launch, "Ready")


def test_a_payload_that_cannot_be_hashed_is_a_failed_call() -> None:
    table = Table()
    step = table.call(payload={"prompt": "x", "seed": float("nan")})
    assert isinstance(step, Fail)
    assert (step.kind, table.launch.pending) == ("invalid_request", {})
    assert "payload.seed" in step.text
    assert isinstance(table.call((0,), occurrence=1), Dispatch)


# The runtime rule.


def test_what_is_committed_is_served() -> None:
    table = Table()
    record = table.commit(1)
    step = table.call()
    assert step == Serve(1, record, replayed=True)
    assert (table.launch.counts, table.launch.saved) == ({"replayed": 1}, 7)


@pytest.mark.parametrize(
    ("changes", "said"),
    [({"payload": {"prompt": "other"}}, "payload.prompt: 'shot' -> 'other'"), ({"take": "two"}, "take: None -> 'two'")],
)
def test_what_is_committed_diverges_for_another_call(changes: dict[str, Any], said: str) -> None:
    table = Table()
    table.commit(1)
    step = table.call(**changes)
    assert isinstance(step, Halt)
    assert (step.stop.code, step.stop.identity) == ("TS-D001", IDENTITY)
    assert said in step.stop.message
    assert table.launch.ending().status == "stopped"


def test_after_a_divergence_nothing_is_served_or_dispatched() -> None:
    table = Table()
    table.commit(1)
    table.commit(2, Identity(SHOT, (1,), 0))
    table.call(payload={"prompt": "other"})
    assert table.call((1,)) is None
    assert table.call((2,)) is None
    assert (table.launch.pending, table.launch.counts["replayed"]) == ({}, 0)


def test_an_unresolved_attempt_stops_the_launch() -> None:
    table = Table()
    started = table.start(1)
    table.history.apply(AttemptEnded(run="r", at=2.0, attempt=1, outcome="unknown", text="reset"))
    step = table.call()
    assert isinstance(step, Halt)
    assert step.stop.code == "TS-A001"
    assert started.effect_key in step.stop.hint


def test_an_unusable_answer_is_the_same_failure_again() -> None:
    table = Table()
    table.start(1)
    table.history.apply(AttemptEnded(run="r", at=2.0, attempt=1, outcome="unusable", kind="unusable", text="half"))
    assert table.call() == Fail(1, IDENTITY, "image.generate", "unusable", "half")
    assert table.launch.counts == {"replayed": 1}
    assert isinstance(Table().call(), Dispatch)


def test_new_work_is_dispatched_with_what_the_broker_needs() -> None:
    table = Table()
    step = table.call(take="second")
    assert isinstance(step, Dispatch)
    request = step.request
    assert (request.identity, request.capability, request.take) == (IDENTITY, "image.generate", "second")
    assert request.fingerprint == table.fingerprints[SHOT]
    assert request.digest == digest({"prompt": "shot"})
    assert step.execute.estimate == catalogue.spec("image.generate").estimate


@pytest.mark.parametrize(
    ("limits", "code"),
    [({"grants": ()}, "TS-P001"), ({"max_calls": 2}, "TS-P003"), ({"max_calls_per_site": 2}, "TS-P003")],
)
def test_a_limit_denies_the_call_and_the_others_go_on_settling(limits: dict[str, Any], code: str) -> None:
    table = Table(**limits)
    steps = [table.call((number,)) for number in range(3)]
    denied = next(step for step in steps if isinstance(step, Halt))
    assert (denied.stop.code, table.launch.counts["denied"]) == (code, 1)
    assert table.launch.ending().status == "stopped"


def test_replays_do_not_count_towards_a_ceiling() -> None:
    table = Table(max_calls=1)
    table.commit(1)
    assert isinstance(table.call((0,)), Serve)
    assert isinstance(table.call((1,)), Dispatch)
    assert isinstance(table.call((2,)), Halt)


def test_a_payload_against_the_schema_fails_without_an_attempt() -> None:
    table = Table()
    step = table.call(payload={"prompt": 1})
    assert isinstance(step, Fail)
    assert (step.kind, table.launch.counts, table.launch.pending) == ("invalid_request", {"failed": 1}, {})


# Settlements.


def dispatched(table: Table) -> int:
    step = table.call()
    assert isinstance(step, Dispatch)
    return step.call


def test_a_committed_call_is_served_and_its_place_is_free_again() -> None:
    table = Table()
    call = dispatched(table)
    record = record_of(table.start(1))
    assert table.launch.on_settled(call, CommittedCall(record)) == Serve(call, record, replayed=False)
    assert (table.launch.counts, table.launch.pending) == ({"executed": 1}, {})
    assert isinstance(table.call((0,), occurrence=1), Dispatch)


def test_a_failed_call_is_told() -> None:
    table = Table()
    call = dispatched(table)
    step = table.launch.on_settled(call, FailedCall("rate_limited", "later"))
    assert step == Fail(call, IDENTITY, "image.generate", "rate_limited", "later")
    assert table.launch.accepts_work


@pytest.mark.parametrize(("unresolved", "code"), [(True, "TS-A002"), (False, "TS-P002"), (False, "TS-S002")])
def test_a_stopped_call_ends_the_launch_and_is_counted_for_what_it_is(unresolved: bool, code: str) -> None:
    table = Table()
    call = dispatched(table)
    stop = Stop(code, "because", "do", IDENTITY)
    assert table.launch.on_settled(call, StoppedCall(stop, unresolved=unresolved)) == Halt(stop)
    counts = table.launch.counts
    assert (counts["unresolved"], counts["denied"]) == (unresolved, code.startswith("TS-P"))


def test_a_dropped_call_was_not_reached() -> None:
    table = Table()
    call = dispatched(table)
    table.launch.halt(STOP)
    assert table.launch.on_settled(call, DroppedCall()) is None
    assert table.launch.invoked == set()


def test_of_several_stops_the_gravest_is_the_reason_whatever_the_order() -> None:
    codes = ["TS-N006", "TS-R009", "TS-S002", "TS-P002", "TS-A002", "TS-D001"]
    for order in (codes, codes[::-1], [*codes[3:], *codes[:3]]):
        table = Table()
        for code in order:
            assert table.launch.halt(Stop(code, "m", "h")).stop.code == code
        assert table.launch.stop is not None
        assert table.launch.stop.code == "TS-D001"


def test_failures_that_a_branch_has_seen_are_marked_until_an_attempt_has_done_it() -> None:
    table = Table()
    first = dispatched(table)
    table.start(1)
    table.history.apply(AttemptEnded(run="r", at=2.0, attempt=1, outcome="failed", kind="unavailable", text="no"))
    table.launch.on_settled(first, FailedCall("unavailable", "no", 1))
    for path in ((1,), (2,)):
        step = table.call(path, seen=(first,))
        assert isinstance(step, Dispatch)
        assert step.survived == (1,)  # the one before may never be sent
    table.start(2, Identity(SHOT, (1,), 0), survived=(1,))
    step = table.call((3,), seen=(first,))
    assert isinstance(step, Dispatch)
    assert step.survived == ()


def test_a_forged_list_of_seen_failures_marks_nothing() -> None:
    table = Table()
    step = table.call(seen=(1, 2, 99))
    assert isinstance(step, Dispatch)
    assert step.survived == ()


# Endings.


def test_a_result_completes_the_run_and_names_what_was_skipped() -> None:
    table = Table()
    table.commit(1)
    table.launch.on_frame(Done(nonce="n", value={"a": 1}))
    ending = table.launch.ending()
    assert (ending.status, ending.result, ending.orphans, ending.not_reached) == (
        "completed",
        {"a": 1},
        (IDENTITY,),
        (),
    )


def test_orphans_fail_the_run_where_the_policy_says_so() -> None:
    table = Table(orphan_policy="stop")
    table.commit(1)
    table.launch.on_frame(Done(nonce="n", value=1))
    ending = table.launch.ending()
    assert ending.error is not None
    assert (ending.status, ending.error.code, ending.orphans, ending.result) == ("failed", "TS-R003", (IDENTITY,), 1)


@pytest.mark.parametrize(
    ("stop", "status"),
    [(STOP, "cancelled"), (Stop(INTERRUPTED, "m", "h"), "interrupted"), (Stop("TS-P007", "m", "h"), "stopped")],
)
def test_a_launch_that_is_stopped_reports_what_was_not_reached(stop: Stop, status: str) -> None:
    table = Table()
    table.commit(1)
    table.launch.halt(stop)
    ending = table.launch.ending()
    assert (ending.status, ending.orphans, ending.not_reached, ending.has_result) == (status, (), (IDENTITY,), False)


@pytest.mark.parametrize(
    ("crash", "code", "said"),
    [
        (
            Crash(nonce="n", kind="ValueError", text="bad", where=((3, "orchestrate"),)),
            "TS-R001",
            "ValueError at line 3 in orchestrate: bad",
        ),
        (
            Crash(nonce="n", kind="CapabilityError", text="unavailable: no", capability_error=1),
            "TS-R002",
            "unavailable: no",
        ),
    ],
)
def test_a_script_that_raises_fails_the_run_with_its_line(crash: Crash, code: str, said: str) -> None:
    table = Table()
    table.launch.on_frame(crash)
    error = table.launch.ending().error
    assert error is not None
    assert error.code == code
    assert said in error.message


@pytest.mark.parametrize(
    ("last", "exit_", "code"),
    [
        (Done(nonce="n"), Exit(cause="exit", code=0), None),
        (Done(nonce="n"), Exit(cause="exit", code=1), "TS-R004"),
        (Done(nonce="n"), Exit(cause="killed"), "TS-R004"),
        (Done(nonce="n"), Exit(cause="memory", code=3), "TS-R005"),
        (Crash(nonce="n", kind="ValueError", text=""), Exit(cause="exit", code=1), None),
        (Crash(nonce="n", kind="MemoryError", text=""), Exit(cause="memory", code=3), "TS-R005"),
        (None, Exit(cause="exit", code=0), "TS-R004"),
        (None, Exit(cause="cpu", signal=24), "TS-R005"),
    ],
)
def test_how_a_guest_exits_is_judged_with_what_it_said(
    last: Done | Crash | None, exit_: Exit, code: str | None
) -> None:
    table = Table()
    if last is not None:
        table.launch.on_frame(last)
    table.launch.on_exit(exit_)
    assert (table.launch.stop.code if table.launch.stop else None) == code


def test_an_exit_does_not_cover_the_reason_that_the_guest_was_killed_for() -> None:
    table = Table()
    table.launch.halt(STOP)
    table.launch.on_exit(Exit(cause="killed"))
    assert table.launch.stop == STOP


def test_prints_are_kept_up_to_a_limit() -> None:
    table = Table()
    assert table.launch.on_frame(Log(nonce="n", text="one")) == Note("one")
    table.launch.on_frame(Log(nonce="n", text="two"))
    assert table.launch.logs == "one\ntwo"
    for _ in range(LOG_LIMIT // 10_000 + 2):
        table.launch.on_frame(Log(nonce="n", text="x" * 10_000))
    assert len(table.launch.logs) <= LOG_LIMIT
    assert table.launch.on_frame(Log(nonce="n", text="more")) is None
