"""Table II, the widened loop, the inserted branch, orphans, a store that fails, and edits of a committed payload."""

from collections.abc import Iterator, Sequence
from typing import Never

from tallystick.bench.identities import TASKS, probe
from tallystick.bench.paper import cases
from tallystick.bench.paper.desk import desk
from tallystick.bench.paper.line import Line
from tallystick.contract.errors import StoreUnavailableError, TallyError
from tallystick.contract.events import AnyEvent
from tallystick.store.memory import MemoryStore

DENIED, DIVERGED = "TS-P005", "TS-D001"
_BEFORE = "the plan, and without one the first branch, finds the divergence before the new last branch is dispatched"
_RESIDUAL = (
    "its residual row: the inserted call replays, and the original is paid again. The ledger here also knows calls of "
    "other sites and paths, and denies what the paid revision could not have made"
)
_SAID = {None: "completes", DENIED: "denied by the ledger", DIVERGED: "divergence"}

#: Rows of Table II: what the paper says becomes of each, and why ours is another.
TABLE_II = {
    "omega grows, same payload": ("denied by the ledger, 0 executed", ""),
    "omega grows, new payload": ("completes, 2 executed", ""),
    "pi shifts, other payload": ("divergence, 0 executed", ""),
    "pi shifts, same payload": ("completes, 0 executed", ""),
    "new callsite": ("completes, 1 executed", ""),
    "duplicate insertion": ("completes, 1 executed", _RESIDUAL),
}

EDITED = 20
EDITS = """
async def orchestrate(ctx, args):
    brand = "teal"
    hero = await ctx.run("image.generate", {"prompt": f"a NAME in {brand}"})
REST    raise ValueError("here it ends")
"""
FURTHER = '    more{0} = await ctx.run("image.generate", {{"prompt": "detail {0}"}})\n'


async def table_ii() -> list[Line]:
    """Return Table II: where each shift is caught, and after how many executions."""
    lines = []
    for name, (paper, reason) in TABLE_II.items():
        shift = cases.SHIFTS[name]
        async with desk() as at:
            run = (await at.run(shift.script)).run
            before = at.provider.calls
            assert (await at.gate(run, shift.candidate)).accepted
            code = await at.code_of(run, shift.candidate)
            ours = f"{_SAID.get(code, str(code))}, {at.provider.calls - before} executed"
        lines.append(Line("Table II", name, paper, ours, reason if paper != ours else ""))
    return lines


async def widening() -> list[Line]:
    """Return VI.C.c: a loop of one payload widened from three to six, and a branch inserted ahead of others."""
    lines = []
    for policy, paper in (
        ("warn", "3 executed, 3 warned"),
        ("deny", "0 executed, denied"),
        ("auto", "0 executed, denied"),
    ):
        async with desk() as at:
            run = (await at.run(cases.RETRY_LOOP)).run
            try:
                report = await at.resume(run, cases.RETRY_LOOP_WIDENED, limits={"repeat_policy": policy})
            except TallyError as error:
                ours = f"{at.provider.calls - 3} executed, {'denied' if error.code == DENIED else error.code}"
            else:
                warned = sum("already paid" in warning for warning in report.warnings)
                ours = f"{at.provider.calls - 3} executed, {warned} warned"
            certified = await at.certified(run)
        lines.append(Line("VI.C.c", f"loop widened from 3 to 6, policy {policy}", paper, ours))
    async with desk() as at:
        run = (await at.run(cases.FANOUT)).run
        code = await at.code_of(run, cases.FANOUT_INSERTED_AHEAD)
        ours = f"{_SAID.get(code, str(code))} after {at.provider.calls - 3}"
        certified = certified and await at.certified(run)
    lines.append(Line("VI.C.c", "branch inserted ahead: executions", "divergence after 1", ours, _BEFORE))
    lines.append(Line("VI.C.c", "certificates recompute", "yes", "yes" if certified else "no"))
    return lines


async def orphans() -> list[Line]:
    """Return VI.G.b: a committed loop shrunk from three to one, and a store that does not answer."""
    lines = []
    for policy, paper in (("warn", "completed, 2 orphans"), ("stop", "failed, 2 orphans")):
        async with desk() as at:
            run = (await at.run(cases.RETRY_LOOP)).run
            report = await at.resume(run, cases.RETRY_LOOP_SHRUNK, limits={"orphan_policy": policy})
        ours = f"{report.status}, {len(report.orphans)} orphans"
        lines.append(Line("VI.G.b", f"loop shrunk from 3 to 1, policy {policy}", paper, ours))
    async with desk(DeafStore()) as at:
        try:
            await at.run(cases.ONE)
        except StoreUnavailableError as error:
            ours = f"{at.provider.calls} executed, {type(error).__name__}"
        else:
            ours = f"{at.provider.calls} executed"
    name = StoreUnavailableError.__name__
    lines.append(Line("VI.G.b", "one call on a store that fails", f"0 executed, {name}", ours))
    return lines


class DeafStore(MemoryStore):
    """A store that answers no reading and takes no writing."""

    def append(self, events: Sequence[AnyEvent], rows: object = ()) -> int:
        """Refuse."""
        del events, rows
        self._refuse()

    def read(self, run: str) -> Iterator[tuple[int, AnyEvent]]:
        """Refuse."""
        del run
        self._refuse()

    def _refuse(self) -> Never:
        raise StoreUnavailableError("the disk does not answer")


async def payload_edits() -> list[Line]:
    """Return VI.B.d: a constant that feeds the first committed call is edited, in twenty scripts."""
    passed = diverged = completed = committed = superseded = rerun = 0
    for number in range(EDITED):
        prefix = 1 + number % 3
        script = EDITS.replace("NAME", f"mug {number}").replace("REST", "".join(map(FURTHER.format, range(1, prefix))))
        edited = script.replace('"teal"', '"amber"')
        appended = script.replace(
            '    raise ValueError("here it ends")',
            f'    return await ctx.run("image.generate", {{"prompt": "mug {number}"}})',
        )
        async with desk() as at:
            run = (await at.run(script)).run
            committed += at.provider.calls
            passed += (await at.gate(run, edited)).accepted
            diverged += await at.code_of(run, edited) == DIVERGED
            completed += await at.code_of(run, appended) is None
            superseded += at.provider.calls
            rerun += prefix + (await at.rerun(appended))[0] - 1
    theirs = (
        f"its scripts are not published: ours have {committed} committed calls, and superseding adds one to each script"
    )
    return [
        Line("VI.B.d", "edited payloads: pass the gate, diverge", "20, 20 of 20", f"{passed}, {diverged} of {EDITED}"),
        Line("VI.B.d", "superseded by an appended call: complete", "20 of 20", f"{completed} of {EDITED}"),
        Line(
            "VI.B.d",
            "executions: superseded, full rerun",
            "48, 68",
            f"{superseded}, {rerun}",
            theirs,
        ),
    ]


def payload_cache() -> list[Line]:
    """Return VI.C.b: thirty tasks that make one call twice, under a payload cache and under structural identity."""
    ours, cache = probe("structural"), probe("payload")
    pairs = (
        ("two roles: right, structural and cache", "15, 0 of 15", f"{ours.two_roles}, {cache.two_roles} of {TASKS}"),
        ("one role: right, structural and cache", "15, 15 of 15", f"{ours.one_role}, {cache.one_role} of {TASKS}"),
        ("one role: executions, structural and cache", "30, 15", f"{ours[2]}, {cache[2]}"),
    )
    return [Line("VI.C.b", what, paper, found) for what, paper, found in pairs]
