"""The bench of scale: its parts work, and its oracles say what they ought to."""

from contextlib import closing
from pathlib import Path

import pytest

from tallystick.bench.scale.flight import fairness, flight, jain, memory_of_a_run
from tallystick.bench.scale.large import SITES, fill, prefix_and_gate, template
from tallystick.store.lmdb_store import LmdbStore


async def test_runs_in_flight_are_all_so_at_once() -> None:
    found = await flight(12)
    assert found.runs == 12
    assert found.started > 0
    assert found.ended > 0


async def test_a_live_run_takes_less_memory_than_it_may() -> None:
    assert 1 < await memory_of_a_run(6) < 200


async def test_a_store_of_copies_has_whole_runs(tmp_path: Path) -> None:
    events = await template()
    assert list(fill(tmp_path / "store", events, 3)) == [0, 3]
    with closing(LmdbStore(tmp_path / "store")) as store:
        assert store.run_count() == 3
        assert store.last_sequence() == 3 * len(events) > 3 * 2 * SITES
        assert prefix_and_gate(store, 2) > 0


@pytest.mark.long
async def test_a_small_run_waits_for_a_small_part_of_a_wide_one() -> None:
    found = await fairness()
    assert found.waited < 256 / 2
    assert found.least > 0


def test_jains_index_is_one_for_equal_shares_and_a_share_for_a_single_winner() -> None:
    assert jain([5, 5, 5, 5]) == 1.0
    assert jain([20, 0, 0, 0]) == 0.25
