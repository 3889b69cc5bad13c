"""Supervisors: they start their children in order, restart those that crash, and give up when that does not help.

How a crash goes through the tree:

    child crashes ─ its callers get ActorDiedError ─ restart policy ── no ──> removed
                                                          │ yes
                                             restart budget ── spent ──> children stopped, supervisor crashes
                                                          │ left              (its own supervisor decides)
                     the strategy's children are stopped, right to left
                     the back-off passes; messages queue meanwhile
                     they are started, left to right

A supervisor is an actor: it takes ``StartChild`` and ``StopChild``. Its children are tasks of its own task group.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Literal, TypeAlias, TypeVar, assert_never

from anyio import CancelScope, create_task_group

from tallystick.kernel.actor import Actor
from tallystick.kernel.budget import RestartBudget
from tallystick.kernel.child import Cell, ChildReport, Kind, Report, Spec
from tallystick.kernel.errors import ActorStoppedError, ChildSpecError, RestartBudgetError, StartError
from tallystick.kernel.message import Deferred, Request
from tallystick.kernel.ref import Ref

M = TypeVar("M")

Strategy: TypeAlias = Literal["one_for_one", "one_for_all", "rest_for_one"]


class StartChild(Request[Ref[M]], Generic[M], frozen=True):
    """Add a child to the right of the others and start it; the reply is its ref.

    Only where the strategy is ``one_for_one``: dynamic children have no order. A dynamic child is forgotten when it
    ends for good, and when its supervisor ends.

    The reply may be an error:
        ChildSpecError: the id is taken, the specification is in use, or the strategy is another.
        StartError: it did not start.
    """

    spec: Spec[M]


class StopChild(Request[bool], frozen=True):
    """Stop a child and forget it; the reply is whether there was one of that id."""

    id: str


Control: TypeAlias = StartChild[Any] | StopChild


@dataclass(frozen=True, kw_only=True, eq=False)
class SupervisorSpec(Spec[Control]):
    """A supervisor and its children.

    Attributes:
        children: started in this order, stopped in reverse.
        strategy: whom one child's crash restarts: itself, all, or itself and those after it.
        budget: how many restarts, and how far apart.
    """

    kind: ClassVar[Kind] = "supervisor"

    shutdown: float | None = None
    children: tuple[Spec[Any], ...] = ()
    strategy: Strategy = "one_for_one"
    budget: RestartBudget = field(default_factory=RestartBudget)

    def __post_init__(self) -> None:
        """Check the specification.

        Raises:
            ChildSpecError: an id stands twice, or a value is out of range.
        """
        super().__post_init__()
        if self.strategy not in ("one_for_one", "one_for_all", "rest_for_one"):
            raise ChildSpecError(f"{self.id}: no such strategy: {self.strategy!r}")
        ids = [child.id for child in self.children]
        twice = sorted({child for child in ids if ids.count(child) > 1})
        if twice:
            raise ChildSpecError(f"{self.id}: children with the same id: {', '.join(twice)}")

    def create(self, report: Report) -> "Supervisor":
        """Make the actor of one life."""
        return Supervisor(self, report)


class Supervisor(Actor[Control]):
    """The actor behind a ``SupervisorSpec``.

    Args:
        spec: what it supervises and how.
        report: hears of children that ended otherwise than asked.
    """

    answers = (ActorStoppedError, ChildSpecError, StartError)

    def __init__(self, spec: SupervisorSpec, report: Report) -> None:
        self._spec = spec
        self._report = report
        self._cells: dict[str, Cell] = {}
        self._restarts: tuple[float, ...] = ()
        self._opening: CancelScope | None = None
        self._broken: ChildSpecError | StartError | None = None
        self._closing = False
        self._recovery = CancelScope()

    def cells(self) -> tuple[Cell, ...]:
        """For the kernel: the children, left to right."""
        return tuple(self._cells.values())

    async def on_start(self) -> None:
        """Start the children, each after the one before; when one fails, stop those that had started.

        Raises:
            ChildSpecError: a child's specification is in use.
            StartError: a child did not start, or ended before all had started.
        """
        with CancelScope() as self._opening:
            try:
                for spec in self._spec.children:
                    await self._add(spec).start(self._life.tasks)
            except (ChildSpecError, StartError) as error:
                self._broken = error
        self._opening = None
        if self._broken is not None:
            await self._close()
            raise self._broken

    async def handle(self, message: Control) -> Deferred[Ref[Any]] | Deferred[bool]:
        """Start or stop a child; others may start, stop and crash meanwhile."""
        match message:
            case StartChild():
                return self.defer(self._start_child, message.spec)
            case StopChild():
                return self.defer(self._stop_child, message.id)
            case _:
                assert_never(message)

    async def on_stop(self) -> None:
        """Stop the children."""
        await self._close()

    async def _start_child(self, spec: Spec[Any]) -> Ref[Any]:
        if self._closing:
            raise ActorStoppedError(self._life.path)
        if self._spec.strategy != "one_for_one":
            raise ChildSpecError(
                f"{self._life.path} is {self._spec.strategy}: only one_for_one supervisors take dynamic children"
            )
        if spec.id in self._cells:
            raise ChildSpecError(f"{self._life.path} has a child {spec.id} already")
        cell = self._add(spec)
        try:
            await cell.start(self._life.tasks)
        except StartError:
            self._forget(cell)
            raise
        return spec.ref

    async def _stop_child(self, child: str) -> bool:
        cell = self._cells.get(child)
        if cell is None:
            return False
        cell.leaving = True
        await self._stop(cell)
        self._forget(cell)
        return True

    def _add(self, spec: Spec[Any]) -> Cell:
        cell = Cell(spec, parent=self._life.path, clock=self.clock, report=self._report, ended=self._child_ended)
        self._cells[spec.id] = cell
        return cell

    def _forget(self, cell: Cell) -> None:
        cell.leaving = True
        if self._cells.get(cell.spec.id) is cell:
            del self._cells[cell.spec.id]

    async def _stop(self, cell: Cell) -> None:
        error = await cell.stop()
        if error is not None:
            self._report(ChildReport(path=cell.path, error=error, decision="stop"))

    def _child_ended(self, cell: Cell, error: Exception | None) -> None:
        """Decide what a child's end means, at once; what takes time becomes a task."""
        if not cell.spec.restarts_after(error):
            self._forget(cell)
            if error is not None:
                self._report(ChildReport(path=cell.path, error=error, decision="remove"))
        elif self._closing:
            self._report(ChildReport(path=cell.path, error=error, decision="stop"))
        elif self._opening is not None:
            self._report(ChildReport(path=cell.path, error=error, decision="escalate"))
            self._broken = StartError(cell.path, f"it ended before its siblings had started ({error!r})")
            self._broken.__cause__ = error
            self._opening.cancel()
        else:
            self._restart(cell, error)

    def _restart(self, cell: Cell, error: Exception | None) -> None:
        self._restarts, delay = self._spec.budget.spend(self._restarts, self.clock.monotonic())
        if delay is None:
            self._report(ChildReport(path=cell.path, error=error, decision="escalate"))
            self._closing = True
            self.spawn(self._give_up, cell, error)
            return
        self._report(ChildReport(path=cell.path, error=error, decision="restart", delay=delay))
        cell.await_restart()
        if self._spec.strategy == "one_for_one":
            self.spawn(self._recover, (cell,), delay, CancelScope())
            return
        self._recovery.cancel()
        self._recovery = CancelScope()
        cells = self.cells()
        if self._spec.strategy == "rest_for_one":  # from this child on, or from where the cancelled recovery stood
            first = next(n for n, each in enumerate(cells) if not each.leaving and each.status != "running")
            cells = cells[first:]
        self.spawn(self._recover, cells, delay, self._recovery)

    async def _recover(self, cells: tuple[Cell, ...], delay: float, scope: CancelScope) -> None:
        """Restart these children together. A crash of one of them in the meantime cancels this and begins anew."""

        def moot() -> bool:
            # A cancellation arrives with the next await that waits; until then this must not touch a child.
            return self._closing or scope.cancel_called

        with scope:
            for cell in reversed(cells):
                if cell.status != "restarting" and not moot():
                    await self._stop(cell)
                    if moot():
                        return
                    if cell.spec.restart == "temporary":
                        self._forget(cell)
                    elif not cell.leaving:
                        cell.await_restart()
            await self.clock.sleep(delay)
            for cell in cells:
                if moot():
                    return
                if cell.leaving:
                    continue
                try:
                    await cell.start(self._life.tasks)
                except StartError as error:
                    if cell.wanted:
                        self._child_ended(cell, error)
                        return

    async def _give_up(self, cell: Cell, error: Exception | None) -> None:
        await self._close()
        budget = self._spec.budget
        raise RestartBudgetError(self._life.path, cell.spec.id, budget.intensity, budget.period) from error

    async def _close(self) -> None:
        """Stop the dynamic children all at once, since they have no order, then the others right to left."""
        self._closing = True
        cells = self.cells()
        for cell in cells:
            cell.cancel_restart()
        ordered = {child.id for child in self._spec.children}
        async with create_task_group() as stops:
            for cell in cells:
                if cell.spec.id not in ordered:
                    stops.start_soon(self._stop, cell)
        for cell in reversed(cells):
            await self._stop(cell)
