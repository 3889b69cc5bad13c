"""The root of a tree of actors: it is opened and closed as a whole, and can be read as data."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
from anyio import create_task_group

from tallystick.kernel.child import Cell, ChildReport, Kind, Report, Status
from tallystick.kernel.clock import Clock
from tallystick.kernel.supervisor import Supervisor, SupervisorSpec


class Node(msgspec.Struct, frozen=True):
    """One actor of the live tree; ``restarts`` counts since its supervisor started."""

    id: str
    kind: Kind
    status: Status
    restarts: int
    children: tuple["Node", ...] = ()


class Tree:
    """A running tree. Actors are reached by the refs of their specifications.

    Args:
        root: the cell of the root supervisor.
    """

    def __init__(self, root: Cell) -> None:
        self._root = root

    def tree(self) -> Node:
        """Return the tree as it stands now."""
        return _node(self._root)


@asynccontextmanager
async def open_tree(spec: SupervisorSpec, *, clock: Clock, report: Report | None = None) -> AsyncIterator[Tree]:
    """Run a tree of actors around a body: start it in order, stop it in reverse when the body ends, however it ends.

    When the root gives up, the body is cancelled and that error raised in place of the body's own. When an enclosing
    anyio scope cancels the task, there is no order: every actor is cancelled at once, and ``on_stop`` with it.

    Args:
        spec: the root supervisor.
        clock: the time of the whole tree.
        report: hears of children that ended otherwise than asked; by default they are logged.

    Yields:
        The running tree.

    Raises:
        ChildSpecError: the specification is in use.
        StartError: a child did not start; those that had are stopped again.
        RestartBudgetError: the root gave up while the body ran.
    """
    crash: Exception | None = None
    failure: Exception | None = None

    def gave_up(_root: Cell, error: Exception | None) -> None:
        nonlocal crash
        crash = error
        tasks.cancel_scope.cancel()

    root = Cell(spec, parent="", clock=clock, report=report or log_report, ended=gave_up)
    # Errors are carried out of the task group by hand: it would wrap them in a group.
    async with create_task_group() as tasks:
        try:
            await root.start(tasks)
            yield Tree(root)
        except Exception as of_the_body:  # noqa: BLE001 - raised again below
            failure = of_the_body
        finally:
            stopped = await root.stop()
            crash = crash or stopped
    error = _gravest(crash, failure)
    if error is not None:
        raise error


def log_report(report: ChildReport) -> None:
    """Write a report to the log of this module, with the traceback of the crash."""
    logging.getLogger(__name__).error(
        "%s ended: %s (decision: %s, delay: %g s)",
        report.path,
        report.error,
        report.decision,
        report.delay,
        exc_info=report.error,
    )


def _gravest(crash: Exception | None, failure: Exception | None) -> Exception | None:
    """Choose between the crash of a tree and the failure of its body, which is often its consequence."""
    if crash is not None and failure is not None:
        crash.add_note(f"the body around which the tree ran failed with {failure!r}")
    return crash or failure


def _node(cell: Cell) -> Node:
    children = cell.actor.cells() if isinstance(cell.actor, Supervisor) else ()
    return Node(
        id=cell.spec.id,
        kind=cell.spec.kind,
        status=cell.status,
        restarts=cell.restarts,
        children=tuple(_node(child) for child in children),
    )
