"""A large store: how it is filled, how a daemon starts on it, and how a run's records are read in it."""

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec

from tallystick.bench.durable.daemon import daemon
from tallystick.bench.paper.desk import desk
from tallystick.bench.paper.overhead import of_sites
from tallystick.contract.events import AnyEvent
from tallystick.contract.gate import gate
from tallystick.contract.history import History
from tallystick.contract.prefix import frozen_sites
from tallystick.contract.script import read_script
from tallystick.engine.rows import row_of
from tallystick.store.lmdb_store import LmdbStore

SITES = 200
#: Runs whose records are read, spread over the store.
SAMPLED = 20
_MAP = 64 << 30


async def template() -> list[AnyEvent]:
    """Return the events of a run of 200 sites that has completed."""
    script = of_sites(SITES).source
    async with desk() as at:
        report = await at.run(script)
        assert report.status == "completed"
        return [event for _, event in at.engine.host.service.journal.store.read(report.run)]


def run_name(number: int) -> str:
    """Return the id of the nth copy."""
    return f"copy{number:09}"


def fill(folder: Path, events: list[AnyEvent], runs: int) -> Iterator[int]:
    """Fill a store with copies of a run; yield how many there are, now and then."""
    with closing(LmdbStore(folder, max_map_size=_MAP)) as store:
        for number in range(runs):
            run = run_name(number)
            copies = [msgspec.structs.replace(event, run=run) for event in events]
            history = History(run)
            if not number:
                for event in copies:
                    history.apply(event)
                row = row_of(history, "completed", copies[-1].at, live=False)
            store.append(copies, [msgspec.structs.replace(row, run=run)])
            if number % 1_000 == 0:
                yield number
    yield runs


async def start(home: Path) -> float:
    """Return the seconds from starting a daemon until it answers its first request."""
    began = time.perf_counter()
    async with daemon(home) as client:
        await client.status()
        return time.perf_counter() - began


def prefix_and_gate(store: LmdbStore, number: int) -> float:
    """Return the seconds of reading a run's records, folding them, and holding its script against them."""
    began = time.perf_counter()
    run = run_name(number)
    history = History(run)
    for _, event in store.read(run):
        history.apply(event)
    frozen = frozen_sites(history)
    revision = history.revisions[max(history.revisions)]
    verdict = gate(frozen, read_script(revision.source))
    taken = time.perf_counter() - began
    assert verdict.accepted
    assert len(frozen) == SITES
    return taken
