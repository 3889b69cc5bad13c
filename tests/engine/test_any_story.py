"""Any story of one run: whatever is submitted, fails, is rewritten, killed, settled by hand - the invariants hold.

The machine draws scripts of loops and fanouts, trouble for some calls, rewrites, crashes and decisions. After every
step the provider's hits are held against the journal and the report, and no committed identity was asked for again.
"""

from contextlib import AbstractContextManager, ExitStack
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
from tallystick.contract.errors import AttemptUnresolvedError, DivergenceError, GateStoppedError, PolicyDeniedError
from tallystick.contract.history import History
from tallystick.contract.identity import Identity
from tallystick.contract.prefix import frozen_sites
from tallystick.engine.messages import ResumeRequest, RunReport
from tallystick.providers.protocol import Outcome, Refused, Unknown, Unusable

TROUBLE: dict[str, Outcome] = {
    "refused": Refused(kind="invalid_request", text="no"),
    "lost": Unknown(reason="reset"),
    "unusable": Unusable(raw={}, text="empty", cost=700),
}
CAPABILITIES = {"image.generate": '["width"]', "text.generate": '["text"]'}
MOST = 4
REFUSALS = (GateStoppedError, AttemptUnresolvedError, DivergenceError, PolicyDeniedError)
STOPPED, HELD = GateStoppedError.__name__, AttemptUnresolvedError.__name__
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
troubles = st.lists(st.tuples(st.integers(0, 3), st.integers(0, MOST), st.sampled_from(sorted(TROUBLE))), max_size=2)


class AnyStory(RuleBasedStateMachine):
    """One run on one disk, in one engine after another."""

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.portal = self.stack.enter_context(start_blocking_portal())
        self.witness = Witness()
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
            witnessed(self.witness, store=self.store, daemon={"auto_resume": False})
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
            self.witness.broken[_text(candidate, place, number)] = TROUBLE[kind]

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
        ended = self.resume([*self.blocks[:at], new, *self.blocks[at + 1 :]], trouble)
        if change in ("note", "wider", "narrower", "wording"):
            assert ended != STOPPED
            assert (ended == HELD) == held
        elif change == "capability":
            assert (ended == STOPPED) == frozen
        if change == "wording" and any(number < new.width for number in committed):
            assert ended != "completed"

    @rule(keep=st.integers(1, 3), trouble=troubles)
    def resume_with_blocks_cut_off(self, keep: int, trouble: list[tuple[int, int, str]]) -> None:
        keep = min(keep, len(self.blocks))
        frozen = any(self.is_frozen(at) for at in range(keep, len(self.blocks)))
        assert (self.resume(self.blocks[:keep], trouble) == STOPPED) == frozen

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
                self.ask(self.engine.reconcile, self.run, attempt.attempt, **decision)

    def history(self) -> History:
        history: History = self.ask(self.engine.history, self.run)
        return history

    def is_held(self) -> bool:
        return bool(self.history().unresolved)

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


AnyStory.TestCase.settings = settings(
    max_examples=400 if LONG else 40,
    stateful_step_count=30 if LONG else 12,
    deadline=None,
    derandomize=not LONG,
    phases=[Phase.generate],
)
TestAnyStory = AnyStory.TestCase
