"""The limit: what the disk and LMDB take alone for what one call makes durable, and the journal without a call."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import lmdb
import msgspec

from tallystick.bench.machine import synced
from tallystick.contract.events import AnyEvent, AttemptStarted, Committed
from tallystick.contract.history import History
from tallystick.contract.identity import Identity
from tallystick.engine.journal import Journal
from tallystick.store.codec import encode_events
from tallystick.store.conformance import committed, one_of_each

RUN = "bench-journal"
RESULT = {"text": "a lighthouse at dusk", "data": None}
_MAP = 1 << 30


def events_of(number: int) -> tuple[AttemptStarted, Committed]:
    """Return what the nth call of a run has journalled."""
    model = next(event for event in one_of_each(RUN) if isinstance(event, AttemptStarted))
    identity = Identity("orchestrate/for1/#1", (), number)
    started = msgspec.structs.replace(model, attempt=number + 1, identity=identity, payload={"prompt": str(number)})
    known = committed(RUN, number, RESULT)
    asked = {name: getattr(started, name) for name in ("identity", "capability", "fingerprint", "digest", "take")}
    return started, msgspec.structs.replace(known, record=msgspec.structs.replace(known.record, **asked))


def two_syncs(folder: Path, times: int) -> list[float]:
    """Return the seconds of so many pairs of a page written and synced."""
    each = list(synced(folder, 2 * times))
    return [first + second for first, second in zip(each[::2], each[1::2], strict=True)]


@contextmanager
def bare_commits(folder: Path) -> Iterator[Callable[[int], list[float]]]:
    """Give what commits the bytes of so many calls, each in two transactions, and returns the seconds of each."""
    bodies = [encode_events([event]) for event in events_of(0)]
    environment = lmdb.open(str(folder / "bare"), subdir=False, map_size=_MAP, max_dbs=1)
    table = environment.open_db(b"log")
    next_key = 0

    def commit(times: int) -> list[float]:
        nonlocal next_key
        taken = []
        for _ in range(times):
            began = time.perf_counter()
            for body in bodies:
                with environment.begin(write=True, db=table) as transaction:
                    transaction.put(next_key.to_bytes(8, "big"), body, append=True)
                next_key += 1
            taken.append(time.perf_counter() - began)
        return taken

    try:
        yield commit
    finally:
        environment.close()


class JournalledCalls:
    """Calls that are journalled and never made: the attempt, then the record, each awaited."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._next = 0
        journal.attach(History(RUN))

    async def write(self, times: int) -> list[float]:
        """Journal so many calls; return the seconds of each."""
        taken = []
        for _ in range(times):
            pair: tuple[AnyEvent, ...] = events_of(self._next)
            self._next += 1
            began = time.perf_counter()
            for event in pair:
                await self._journal.append([event])
            taken.append(time.perf_counter() - began)
        return taken
