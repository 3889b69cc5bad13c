"""A writer is killed at any moment: what it had acknowledged is there, and what it had not is whole or absent."""

from pathlib import Path

import pytest

from store_support import Child, opened
from tallystick.contract.events import Committed

WRITER = """
    import sys
    from pathlib import Path
    from tallystick.store.conformance import committed, row
    from tallystick.store.lmdb_store import LmdbStore
    store = LmdbStore(Path(sys.argv[1]), map_size=1 << 16)
    sizes = [int(size) for size in sys.argv[2].split(",")]
    print(store.last_sequence(), flush=True)
    while True:
        for size in sizes:
            sequence = store.last_sequence() + 1
            files = store.put_files([(b"%d" % number, "text/plain") for number in range(sequence, sequence + size)])
            batch = [committed("run-1", sequence + i, [file.sha256, "x" * 700 * i]) for i, file in enumerate(files)]
            store.append(batch, [row("run-1", live=size % 2 == 0)])
            print(store.last_sequence(), flush=True)
"""


def kill_a_writer(path: Path, acknowledgements: int) -> int:
    """Kill it after so many acknowledged batches, and return the last sequence that it had acknowledged."""
    # Batches of different sizes: the kill falls into one or another.
    writer = Child(WRITER, path, "1,4,2,7")
    lines = [writer.line() for _ in range(acknowledgements)]
    return int([*lines, *writer.kill()][-1])


@pytest.mark.parametrize("kills", [4, pytest.param(100, marks=pytest.mark.long)])
def test_what_was_acknowledged_survives_kills(tmp_path: Path, kills: int) -> None:
    path = tmp_path / "store"
    for kill in range(kills):
        acknowledged = kill_a_writer(path, acknowledgements=1 + 5 * kill % 37)
        with opened(path) as store:
            events = list(store.read("run-1"))
            assert store.last_sequence() >= acknowledged
            assert [sequence for sequence, _ in events] == list(range(1, store.last_sequence() + 1))
            for sequence, event in events:
                assert isinstance(event, Committed)
                assert store.record_sequence("run-1", event.record.identity.slot_key()) == sequence
                assert store.get_file(event.record.result.inline[0]) == b"%d" % sequence
            assert bool(events) == (store.row("run-1") is not None)
