"""The store against a plain model, closed and opened again after every step."""

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tallystick.contract.errors import SlotTakenError
from tallystick.contract.events import AnyEvent, Committed
from tallystick.contract.identity import Identity
from tallystick.store.conformance import committed, created, row
from tallystick.store.lmdb_store import LmdbStore
from tallystick.store.memory import MemoryDisk, MemoryStore
from tallystick.store.protocol import RunRow, Store

RUNS = st.sampled_from(["run-1", "run-10", "run-2", "~"])
RESULTS = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
EVENTS = st.builds(created, RUNS) | st.builds(committed, RUNS, st.integers(0, 12), RESULTS)
ROWS = st.builds(row, RUNS, status=st.sampled_from(["running", "failed"]), live=st.booleans())


class LmdbAgainstModel(RuleBasedStateMachine):
    """The model is a list of events, a dict of rows and a dict of files; all else is derived from them."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.store = self.open()
        self.events: list[AnyEvent] = []
        self.rows: dict[str, RunRow] = {}
        self.files: dict[str, bytes] = {}

    def open(self) -> Store:
        return LmdbStore(self.folder, map_size=1 << 16)

    def reopen(self) -> None:
        self.store.close()
        self.store = self.open()

    def teardown(self) -> None:
        self.store.close()
        shutil.rmtree(self.folder)

    @rule(events=st.lists(EVENTS, max_size=5), rows=st.lists(ROWS, max_size=3))
    def append(self, events: list[AnyEvent], rows: list[RunRow]) -> None:
        slots = [self.slot(event) for event in [*self.events, *events] if isinstance(event, Committed)]
        if len(set(slots)) < len(slots):
            with pytest.raises(SlotTakenError):
                self.store.append(events, rows)
        else:
            assert self.store.append(events, rows) == len(self.events) + 1
            self.events += events
            self.rows.update({line.run: line for line in rows})
        self.reopen()

    @rule(data=st.binary(max_size=64))
    def put_file(self, data: bytes) -> None:
        ref = self.store.put_file(data, "application/octet-stream")
        self.files[ref.sha256] = data
        self.reopen()

    @rule(limit=st.integers(0, 5), before=RUNS)
    def page(self, limit: int, before: str) -> None:
        below = [self.rows[run] for run in sorted(self.rows, reverse=True) if run < before]
        assert self.store.rows(limit, before) == below[:limit]

    @rule(run=RUNS, index=st.integers(0, 12))
    def look_up(self, run: str, index: int) -> None:
        wanted = (run, committed(run, index).record.identity)
        found = [number for number, event in enumerate(self.events, 1) if self.slot(event) == wanted]
        assert self.store.record_sequence(run, wanted[1].slot_key()) == (found[0] if found else None)

    @invariant()
    def same_as_the_model(self) -> None:
        assert self.store.last_sequence() == len(self.events)
        for run in ("run-1", "run-10", "run-2", "~"):
            mine = [(number, event) for number, event in enumerate(self.events, 1) if event.run == run]
            assert list(self.store.read(run)) == mine
            assert self.store.row(run) == self.rows.get(run)
        assert self.store.run_count() == len(self.rows)
        assert self.store.live_runs() == sorted(line.run for line in self.rows.values() if line.live)
        for name, data in self.files.items():
            assert self.store.get_file(name) == data

    @staticmethod
    def slot(event: AnyEvent) -> tuple[str, Identity] | None:
        return (event.run, event.record.identity) if isinstance(event, Committed) else None


class MemoryAgainstModel(LmdbAgainstModel):
    def __init__(self) -> None:
        self.disk = MemoryDisk()
        super().__init__()

    def open(self) -> Store:
        return MemoryStore(self.disk)


TestLmdbAgainstModel = LmdbAgainstModel.TestCase
TestMemoryAgainstModel = MemoryAgainstModel.TestCase
TestLmdbAgainstModel.settings = TestMemoryAgainstModel.settings = settings(max_examples=settings().max_examples // 4)
