"""The bench of the durable path: what it counts and how it compares; its figures are the machine's."""

from pathlib import Path

import pytest

from tallystick.bench.durable import flushes
from tallystick.bench.durable.__main__ import COMMITS, JOURNAL, SYNCS, fanout_name, measured
from tallystick.bench.durable.flushes import BEGIN, END, counted
from tallystick.bench.statistics import ratio, spread

TRACE = f"""\
11 openat(AT_FDCWD, "/s/journal.mdb", O_RDWR|O_CREAT|O_CLOEXEC, 0600) = 5
11 openat(AT_FDCWD, "/s/journal.mdb", O_WRONLY|O_DSYNC|O_CLOEXEC) = 6
11 fdatasync(5)                      = 0
11 openat(AT_FDCWD, "{BEGIN}", O_RDONLY|O_CLOEXEC) = -1 ENOENT (No such file or directory)
12 pwrite64(5, "pages"..., 4096, 8192) = 4096
12 fdatasync(5 <unfinished ...>
11 writev(9, [{{iov_base="x", iov_len=1}}], 1) = 1
12 <... fdatasync resumed>)          = 0
12 pwrite64(6, "meta"..., 120, 4112) = 120
12 pwrite64(5, "pages"..., 4096, 16384) = 4096
12 fdatasync(5)                      = 0
12 pwrite64(6, "meta"..., 120, 16)   = 120
11 openat(AT_FDCWD, "{END}", O_RDONLY|O_CLOEXEC) = -1 ENOENT (No such file or directory)
12 fdatasync(5)                      = 0
"""


def test_a_trace_has_two_flushes_a_commit_between_its_marks() -> None:
    assert counted(TRACE.splitlines()) == 4


@pytest.mark.long
def test_flushes_of_real_calls_are_those_of_their_commits(tmp_path: Path) -> None:
    found = flushes.measure(tmp_path / "f", "sequential", 20)
    assert found.of_commit == pytest.approx(2.0, abs=0.1)
    assert found.commits == pytest.approx(2.0, abs=0.2)


async def test_a_round_measures_every_subject(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("d")
    spreads, raw = await measured(folder, rounds=1, calls=2)
    assert {SYNCS, COMMITS, JOURNAL, fanout_name(32), fanout_name(256)} <= set(spreads)
    assert {len(figures) for figures in raw.values()} == {1}
    assert all(each.median > 0 for each in spreads.values())


def test_a_ratio_is_taken_within_each_round() -> None:
    """A machine that is slower by half in one round is so for both."""
    assert ratio([2.0, 4.0, 2.0], [1.0, 2.0, 1.0]).median == 2.0
    assert ratio([2.0, 4.0], [1.0, 2.0]).rounds == (2.0, 2.0)


def test_a_spread_is_the_middle_half_of_many_rounds_and_the_ends_of_few() -> None:
    assert (spread([3.0, 1.0, 2.0]).low, spread([3.0, 1.0, 2.0]).high) == (1.0, 3.0)
    many = spread([1.0, 2.0, 3.0, 4.0, 100.0])
    assert many.median == 3.0
    assert many.high < 100.0
