"""Histories of runs, folded on demand; those asked for lately are kept and stay in step with the journal."""

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

import anyio.to_thread

from tallystick.contract.errors import UsageError
from tallystick.contract.history import History
from tallystick.engine.journal import Journal
from tallystick.engine.run_ids import resolve

KEPT = 64
LISTED = 100_000


class Library:
    """Finds runs and their histories."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._kept: OrderedDict[str, History] = OrderedDict()
        self._lent: set[str] = set()
        self._pinned: set[str] = set()

    async def history(self, run: str) -> History:
        """Return the history of a run, in step with the journal.

        Raises:
            UsageError: there is no such run.
            StoreCorruptError: its events are damaged or contradict one another; never read as absent.
        """
        known = self._journal.attached(run)
        if known is None:
            folded = await anyio.to_thread.run_sync(self._fold, run)
            known = self._journal.attached(run) or folded
        if known.created is None:
            raise UsageError(f"no run is called {run!r}", hint="tally runs lists them", code="TS-U002")
        return known if run in self._lent else self.keep(known)

    def lend(self, history: History) -> None:
        """Keep a history in step, and in memory for as long as its run is live."""
        self._kept.pop(history.run, None)
        self._lent.add(history.run)
        self._journal.attach(history)

    def keep(self, history: History) -> History:
        """Keep a history in step, and in memory until others were asked for more lately."""
        self._lent.discard(history.run)
        self._journal.attach(history)
        self._kept[history.run] = history
        self._kept.move_to_end(history.run)
        idle = [run for run in self._kept if run not in self._pinned]
        for old in idle[: max(0, len(self._kept) - KEPT)]:
            del self._kept[old]
            self._journal.detach(old)
        return history

    @contextmanager
    def pinned(self, run: str) -> Iterator[None]:
        """Keep the history of a run in step for as long as an operation holds it."""
        self._pinned.add(run)
        try:
            yield
        finally:
            self._pinned.discard(run)

    def forget(self, run: str) -> None:
        """Drop a history that came to nothing."""
        self._lent.discard(run)
        self._kept.pop(run, None)
        self._journal.detach(run)

    def resolve(self, text: str) -> str:
        """Return the id of the run that a user means.

        Raises:
            UsageError: no run or several match.
        """
        store = self._journal.store
        if store.row(text) is not None:
            return text
        return resolve(text, [row.run for row in store.rows(limit=LISTED)])

    def _fold(self, run: str) -> History:
        return History.fold(run, (event for _, event in self._journal.store.read(run)))
