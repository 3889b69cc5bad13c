"""Any story of one run: whatever is submitted, fails, is rewritten, killed, settled by hand - the invariants hold.

The machine draws scripts of loops and fanouts, trouble for some calls, rewrites, crashes and decisions, and a provider
that can say what became of a call, or carries out a key once, or neither; what is refused for now is tried again. After
every step the provider's hits are held against the journal and the report, and no committed identity was asked for
again.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack, suppress
from typing import Any, NamedTuple

import anyio
from anyio.abc import TaskGroup
from anyio.from_thread import start_blocking_portal
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from conftest import LONG
from engine_stores import RefusingStore
from engine_support import House
from engine_witness import Witness, assert_standing, witnessed
from scripted_provider import COST, Hit
from tallystick.contract.errors import (
    AttemptUnresolvedError,
    DivergenceError,
    GateStoppedError,
    PolicyDeniedError,
    UsageError,
)
from tallystick.contract.history import History
from tallystick.contract.identity import Identity
from tallystick.contract.prefix import frozen_sites
from tallystick.engine.messages import ResumeRequest, RunReport
from tallystick.providers.protocol import Absent, Blob, Outcome, Profile, Refused, Succeeded, Unknown, Unusable

TROUBLE: dict[str, Outcome] = {
    "refused": Refused(kind="invalid_request", text="no"),
    "lost": Unknown(reason="reset"),
    "unusable": Unusable(raw={}, text="empty", cost=700),
}
BUSY = Refused(kind="rate_limited", text="not now")
#: How often a call is refused for now before it is carried out; the third try is the last.
PASSING = {"busy": 1, "busier": 2, "too busy": 3}
#: A lost call is the beginning of most stories, and drawn more often.
KINDS = [*TROUBLE, *PASSING, "lost", "lost", "lost"]
POLICY = {"retries": 2, "retry_pause": 1e-6}
CAPABILITIES = {"image.generate": '["width"]', "text.generate": '["text"]'}
MOST = 4
REFUSALS = (GateStoppedError, AttemptUnresolvedError, DivergenceError, PolicyDeniedError)
STOPPED, HELD = GateStoppedError.__name__, AttemptUnresolvedError.__name__
PICTURE = {"images": [Blob(b"late", "image/png")], "width": 8, "height": 8}
PICTURES = {"images": [{"$base64": "iVBORw0KGgo=", "media_type": "image/png"}], "width": 8, "height": 8}


class Block(NamedTuple):
    """A loop or a fanout of ``width`` calls; ``wording`` is what its prompts say."""

    shape: str
    capability: str
    width: int
    wording: str = "as drawn"
    note: bool = False


def source_of(blocks: list[Block]) -> str:
    """Write the script of the blocks; every prompt holds ``<block.number>``."""
    lines = [f'WORDING_{at} = "{block.wording}"' for at, block in enumerate(blocks)]
    lines += ["", "", "async def orchestrate(ctx, args):", "    kept = []"]
    for at, block in enumerate(blocks):
        call = f'await ctx.run("{block.capability}", {{"prompt": f"{{WORDING_{at}}} <{at}.{{number}}>"}})'
        if block.note:
            lines.append("    note = len(kept)")
        if block.shape == "loop":
            lines += [f"    for number in range({block.width}):", f"        one = {call}"]
            lines.append(f"        kept.append(one{CAPABILITIES[block.capability]})")
        else:
            lines += [f"    async def branch_{at}(number):", f"        return {call}"]
            lines.append(
                f"    for one in await ctx.parallel([branch_{at}(number) for number in range({block.width})]):"
            )
            lines.append(f"        kept.append(one{CAPABILITIES[block.capability]})")
    return "\n".join([*lines, "    return len(kept)", ""])


shapes = st.sampled_from(["loop", "fanout"])
blocks = st.tuples(shapes, st.sampled_from(sorted(CAPABILITIES)), st.integers(1, MOST)).map(lambda drawn: Block(*drawn))
troubles = st.lists(st.tuples(st.integers(0, 3), st.integers(0, MOST), st.sampled_from(KINDS)), max_size=3)


class Provider(Witness):
    """A witness that can say of each key what it has come to, or carries each out once, or neither, as ``gift`` says."""

    def __init__(self, gift: str) -> None:
        window, final = 3_600 if gift == "dedupes" else 0, 0 if gift == "knows" else None
        super().__init__(profile=Profile(dedupes_keys=window, absence_final_after=final))
        self.gift = gift
        self.doubtful: dict[str, Hit] = {}

    def _note(self, hit: Hit) -> None:
        super()._note(hit)
        self.doubtful.setdefault(hit.key, hit)

    def _answer(self, hit: Hit) -> Outcome:
        outcome = super()._answer(hit)
        again = self.gift == "dedupes" and hit.capability == "image.generate" and self.doubtful[hit.key] is not hit
        if again and not isinstance(outcome, Refused):
            self.unbilled -= 1  # the requests of one key are one call with one price
        if isinstance(outcome, Unknown):
            self.doubtful[hit.key] = hit
        elif not (again and isinstance(outcome, Refused)):
            del self.doubtful[hit.key]
        return outcome

    async def lookup(self, capability: str, payload: Mapping[str, Any], key: str, job: str | None) -> Outcome | Absent:
        assert (capability in self.capabilities, job) == (True, None)
        if self.gift != "knows":
            return Unknown(reason="nobody knows")
        hit = self.doubtful.pop(key, None)
        if hit is None:
            return Absent(text="no such key")
        assert hit.payload == payload
        self.unbilled -= hit in self.answered
        self.billed += COST
        return Succeeded(result=PICTURE, cost=COST)


class AnyStory(RuleBasedStateMachine):
    """One run on one disk, in one engine after another; ``gift`` is what its provider can do beyond answering."""

    gift = "none"

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.portal = self.stack.enter_context(start_blocking_portal())
        self.witness = Provider(self.gift)
        self.blocks: list[Block] = []
        self.run = ""
        self.lossy = False
        self.preflight = True
        self.paid: dict[Identity, int] = {}
        self.open()

    def open(self) -> None:
        """Start an engine on the disk."""
        self.store = RefusingStore(self.witness.disk)
        context = self.portal.wrap_async_context_manager(
            witnessed(self.witness, store=self.store, daemon={"auto_resume": False}, policy=POLICY)
        )
        self.house: AbstractContextManager[tuple[House, Witness]] = context
        self.engine, _ = context.__enter__()

    def close(self) -> None:
        self.house.__exit__(None, None, None)

    def teardown(self) -> None:
        self.close()
        self.stack.close()

    def ask(self, operation: Any, *args: Any, **options: Any) -> Any:
        async def call() -> Any:
            return await operation(*args, **options)

        return self.portal.call(call)

    @initialize(
        first=st.lists(blocks, min_size=1, max_size=3),
        concurrency=st.integers(1, 4),
        seed=st.integers(0, 99),
        trouble=troubles,
    )
    def submit(self, first: list[Block], concurrency: int, seed: int, trouble: list[tuple[int, int, str]]) -> None:
        self.witness.reshuffle(seed)
        self.prepare(first, trouble)
        self.blocks = first
        self.run = self.ask(self.engine.submit, source_of(first), limits={"concurrency": concurrency})
        self.ask(self.engine.end, self.run)

    def prepare(self, candidate: list[Block], trouble: list[tuple[int, int, str]]) -> None:
        """Let these calls of a candidate go wrong, and no others."""
        self.witness.calm()
        for place, number, kind in trouble:
            text = _text(candidate, place, number)
            if kind in PASSING:
                self.witness.at_first[text] = [BUSY] * PASSING[kind]
            else:
                self.witness.broken[text] = TROUBLE[kind]

    def resume(self, candidate: list[Block], trouble: list[tuple[int, int, str]], **options: Any) -> str:
        """Resume with a candidate; return the status of the launch, or the error's class that it was refused with."""
        self.prepare(candidate, trouble)
        before = self.witness.count()
        try:
            report: RunReport = self.ask(
                self.engine.resume, self.run, source_of(candidate), preflight=self.preflight, **options
            )
        except REFUSALS as error:
            assert self.witness.count() == before
            return type(error).__name__
        self.blocks = candidate
        if report.status == "completed":
            assert report.result == sum(block.width for block in candidate)
        return report.status

    @rule(trouble=troubles)
    def resume_as_it_is(self, trouble: list[tuple[int, int, str]]) -> None:
        held = self.is_held()
        ended = self.resume(self.blocks, trouble)
        assert (ended == HELD) == held
        assert ended != STOPPED

    @rule(block=blocks, trouble=troubles)
    @precondition(lambda self: len(self.blocks) < MOST)
    def resume_with_a_block_appended(self, block: Block, trouble: list[tuple[int, int, str]]) -> None:
        held = self.is_held()
        ended = self.resume([*self.blocks, block], trouble)
        assert (ended == HELD) == held
        assert ended != STOPPED

    @rule(
        at=st.integers(0, 3),
        change=st.sampled_from(["note", "wider", "narrower", "wording", "capability", "shape"]),
        trouble=troubles,
    )
    def resume_with_a_block_changed(self, at: int, change: str, trouble: list[tuple[int, int, str]]) -> None:
        at %= len(self.blocks)
        old = self.blocks[at]
        new = {
            "note": old._replace(note=not old.note),
            "wider": old._replace(width=min(old.width + 1, MOST)),
            "narrower": old._replace(width=max(old.width - 1, 0)),
            "wording": old._replace(wording=old.wording + "!"),
            "capability": old._replace(capability=next(name for name in CAPABILITIES if name != old.capability)),
            "shape": old._replace(shape="fanout" if old.shape == "loop" else "loop"),
        }[change]
        held, frozen, committed = self.is_held(), self.is_frozen(at), self.committed(at)
        unresolved = bool(self.history().unresolved) and self.gift == "dedupes"
        ended = self.resume([*self.blocks[:at], new, *self.blocks[at + 1 :]], trouble)
        if change in ("note", "wider", "narrower", "wording"):
            assert ended != STOPPED
            # With other words it is another call, which the key of the one that was lost does not stand for.
            assert (ended == HELD) == held or (change == "wording" and unresolved and ended == HELD)
        elif change == "capability":
            # What never arrived holds no site once its provider has said so.
            assert (ended == STOPPED) == frozen or (frozen and self.lossy and self.witness.gift == "knows")
        if change == "wording" and any(number < new.width for number in committed):
            assert ended != "completed"

    @rule(keep=st.integers(1, 3), trouble=troubles)
    def resume_with_blocks_cut_off(self, keep: int, trouble: list[tuple[int, int, str]]) -> None:
        keep = min(keep, len(self.blocks))
        frozen = any(self.is_frozen(at) for at in range(keep, len(self.blocks)))
        stopped = self.resume(self.blocks[:keep], trouble) == STOPPED
        assert stopped == frozen or (frozen and self.lossy and self.witness.gift == "knows")

    @rule(block=blocks, trouble=troubles)
    @precondition(lambda self: len(self.blocks) < MOST)
    def proceed_up_to_what_is_held(self, block: Block, trouble: list[tuple[int, int, str]]) -> None:
        held = self.is_held()
        ended = self.resume([*self.blocks, block], trouble, proceed=True)
        assert not (held and ended == "completed")
        assert ended not in (HELD, STOPPED)

    @rule(preflight=st.booleans())
    def with_or_without_a_plan(self, preflight: bool) -> None:
        self.preflight = preflight

    @rule(block=blocks, number=st.integers(0, MOST))
    @precondition(lambda self: len(self.blocks) < MOST)
    def crash_while_a_call_is_in_flight(self, block: Block, number: int) -> None:
        self.witness.calm()
        candidate = [*self.blocks, block]
        started = self.ask(self.crash, source_of(candidate), _text(candidate, len(self.blocks), number))
        if started:
            self.blocks = candidate
        self.close()
        self.lossy = True
        self.open()

    async def crash(self, source: str, text: str) -> bool:
        """Resume, and die when the call is in flight, or when the launch has ended without it."""
        gate = self.witness.hold(containing=text)
        try:
            await self.engine.host.service.resume(self.run, ResumeRequest(source=source))
        except REFUSALS:
            gate.release()
            return False
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_finishing, tasks, gate.reached)
            tasks.start_soon(_finishing, tasks, self.engine.end, self.run)
        self.store.die()
        gate.release()
        return True

    @rule()
    def stop_in_order_and_start_again(self) -> None:
        self.close()
        self.open()

    @rule(abandon=st.booleans())
    def settle_by_hand(self, abandon: bool) -> None:
        for attempt in self.ask(self.engine.attempts, self.run):
            if attempt.state in ("unresolved", "unusable") and attempt.effect == "side_effecting":
                decision = {"abandon": True} if abandon else {"result": PICTURES}
                with suppress(UsageError):  # the provider was asked, and knew
                    self.ask(self.engine.reconcile, self.run, attempt.attempt, **decision)

    def history(self) -> History:
        history: History = self.ask(self.engine.history, self.run)
        return history

    def is_held(self) -> bool:
        """Say whether something is unresolved that neither the provider can answer nor may be sent again."""
        return bool(self.history().unresolved) and self.witness.gift == "none"

    def site(self, at: int) -> str:
        """Return the site of a block's call."""
        if self.blocks[at].shape == "fanout":
            return f"orchestrate.branch_{at}/#1"
        return f"orchestrate/for{sum(block.shape == 'loop' for block in self.blocks[: at + 1])}/#1"

    def is_frozen(self, at: int) -> bool:
        return self.site(at) in frozen_sites(self.history())

    def committed(self, at: int) -> list[int]:
        """Return which calls of a block are committed."""
        fanout = self.blocks[at].shape == "fanout"
        found = [identity for identity in self.history().records if identity.site == self.site(at)]
        return [int(identity.path[0]) if fanout else identity.occurrence for identity in found]

    @invariant()
    def stands(self) -> None:
        if not self.run:
            return
        self.ask(assert_standing, self.engine, self.run, lossy=self.lossy)
        history = self.history()
        for attempt in history.unresolved:
            assert history.latest_attempt[attempt.started.identity] is attempt, "what is held was asked for again"
        for identity in history.records:
            keys = {one.started.effect_key for one in history.attempts.values() if one.started.identity == identity}
            hits = sum(self.witness.times(key) for key in keys)
            assert hits == self.paid.setdefault(identity, hits), f"{identity} is committed and was asked for again"


def _text(candidate: list[Block], place: int, number: int) -> str:
    """Return what the prompt of a call holds, and no other's."""
    place %= len(candidate)
    return f"<{place}.{number % max(candidate[place].width, 1)}>"


async def _finishing(tasks: TaskGroup, operation: Any, *args: Any) -> None:
    await operation(*args)
    tasks.cancel_scope.cancel()


class AskedStory(AnyStory):
    """The same with a provider that says what became of a call."""

    gift = "knows"


class ResentStory(AnyStory):
    """The same with a provider that carries out one call a key."""

    gift = "dedupes"


for story in (AnyStory, AskedStory, ResentStory):
    story.TestCase.settings = settings(
        max_examples=300 if LONG else 25,
        stateful_step_count=30 if LONG else 12,
        deadline=None,
        derandomize=not LONG,
        phases=[Phase.generate],
    )
TestAnyStory = AnyStory.TestCase
TestAskedStory = AskedStory.TestCase
TestResentStory = ResentStory.TestCase
