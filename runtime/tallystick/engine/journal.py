"""The journal: the one writer of the store (architecture.md, sections 3 and 4).

A thread of its own owns the writing side. Whatever queued up while a transaction was being synced joins the next
one, so that N calls side by side cost one sync, not N. Callers get a future; a whole batch is answered with one
wake-up of the loop. Submitting is a plain call and not a message: it stands on the path of every paid call, twice.
"""

import asyncio
import queue
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Never, TypeAlias

from tallystick.contract.errors import StoreError, StoreUnavailableError
from tallystick.contract.events import AnyEvent, FileRef
from tallystick.contract.history import History
from tallystick.kernel import Actor
from tallystick.store.protocol import RunRow, Store


class _Append:
    __slots__ = ("done", "error", "events", "rows")

    def __init__(self, events: Sequence[AnyEvent], rows: Sequence[RunRow], done: "asyncio.Future[None]") -> None:
        self.events = events
        self.rows = rows
        self.done = done
        self.error: Exception | None = None


class _PutFile:
    __slots__ = ("data", "done", "error", "media_type", "ref")

    def __init__(self, data: bytes, media_type: str, done: "asyncio.Future[FileRef]") -> None:
        self.data = data
        self.media_type = media_type
        self.done = done
        self.ref: FileRef | None = None
        self.error: Exception | None = None


_Job: TypeAlias = _Append | _PutFile


class Journal:
    """Appends events durably and keeps the histories of live runs in step with what is durable."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._queue: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._histories: dict[str, History] = {}
        self._listeners: list[Callable[[AnyEvent], None]] = []
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        """Start the writer; called on the loop that will await it."""
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._write, name="journal", daemon=True)
        self._thread.start()

    async def stop(self) -> None:
        """Write what was submitted, then end the writer."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._queue.put(None)
            await asyncio.to_thread(thread.join)

    def attach(self, history: History) -> None:
        """Keep this history in step: every event of its run is applied once it is durable."""
        self._histories[history.run] = history

    def detach(self, run: str) -> None:
        """Stop following a run."""
        self._histories.pop(run, None)

    def append(self, events: Sequence[AnyEvent], rows: Sequence[RunRow] = ()) -> "asyncio.Future[None]":
        """Submit events; the future ends when they are durable and applied.

        Raises (through the future):
            StoreError: nothing of these events was written.
        """
        done = self._future()
        self._queue.put(_Append(events, rows, done))
        return done

    def put_file(self, data: bytes, media_type: str) -> "asyncio.Future[FileRef]":
        """Submit the bytes of an artifact; the future ends when the file is durable."""
        done: asyncio.Future[FileRef] = self._future()
        self._queue.put(_PutFile(data, media_type, done))
        return done

    def attached(self, run: str) -> History | None:
        """Return the history of a run that is followed."""
        return self._histories.get(run)

    def listen(self, told: Callable[[AnyEvent], None]) -> None:
        """Have every event of any run told once it is durable, on the loop, before whoever submitted it goes on."""
        self._listeners.append(told)

    def _apply(self, events: Iterable[AnyEvent]) -> None:
        for event in events:
            for told in self._listeners:
                told(event)
            history = self._histories.get(event.run)
            if history is not None:
                history.apply(event)

    def _future(self) -> "asyncio.Future[Any]":
        if self._loop is None or self._thread is None:
            raise StoreUnavailableError("the journal is not open; nothing was written", hint="start the daemon again")
        return self._loop.create_future()

    def _write(self) -> None:
        open_ = True
        while open_:
            jobs: list[_Job] = []
            job = self._queue.get()
            while True:
                if job is None:
                    open_ = False
                    break
                jobs.append(job)
                try:
                    job = self._queue.get_nowait()
                except queue.Empty:
                    break
            try:
                self._write_batch(jobs)
            except Exception as error:  # noqa: BLE001 - a dead writer would leave every run waiting for ever
                for failed in jobs:
                    failed.error = StoreUnavailableError(f"the journal's writer failed: {error!r}; nothing was written")
            loop = self._loop
            if jobs and loop is not None and not loop.is_closed():
                loop.call_soon_threadsafe(self._answer, jobs)

    def _write_batch(self, jobs: Iterable[_Job]) -> None:
        appends: list[_Append] = []
        for job in jobs:
            if isinstance(job, _Append):
                appends.append(job)
                continue
            try:
                job.ref = self.store.put_file(job.data, job.media_type)
            except StoreError as error:
                job.error = error
            except OSError as error:
                job.error = StoreUnavailableError(f"a file could not be written: {error}")
        try:
            self._append(appends)
        except StoreError as error:
            if len(appends) == 1:
                appends[0].error = error
                return
            # One of them is at fault: each alone, so that the others do not pay for it.
            for append in appends:
                try:
                    self._append([append])
                except StoreError as own:
                    append.error = own

    def _append(self, appends: Sequence[_Append]) -> None:
        events = [event for append in appends for event in append.events]
        rows = [row for append in appends for row in append.rows]
        if events or rows:
            self.store.append(events, rows)

    def _answer(self, jobs: Iterable[_Job]) -> None:
        """On the loop: apply what is durable, then wake who waits for it."""
        for job in jobs:
            if isinstance(job, _Append) and job.error is None:
                try:
                    self._apply(job.events)
                except StoreError as error:
                    job.error = error
            if job.done.cancelled():
                continue
            if job.error is not None:
                job.done.set_exception(job.error)
            elif isinstance(job, _PutFile):
                assert job.ref is not None
                job.done.set_result(job.ref)
            else:
                job.done.set_result(None)


class JournalActor(Actor[Never]):
    """The journal's place in the tree: starts its writer, and ends it after everything that writes.

    It takes no messages: callers hold the journal itself (see the head of this module).
    """

    def __init__(self, journal: Journal) -> None:
        super().__init__()
        self._journal = journal

    async def on_start(self) -> None:
        """Start the writer thread."""
        self._journal.start()

    async def on_stop(self) -> None:
        """Write what was submitted, then end."""
        await self._journal.stop()
