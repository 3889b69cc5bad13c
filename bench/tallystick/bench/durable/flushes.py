"""How often the disk is told to flush for a call: the store's commits, times what strace counts for a commit.

A flush is an fsync or fdatasync, an msync, or a write to a file that was opened to be synced with each write: LMDB
commits with one of the first kind and one of the last. The child marks where its calls begin and end. Commits are those
of runs that nobody traces, for a slower process gathers other batches.
"""

import re
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import anyio
import msgspec

from tallystick.bench.durable.path import WIDEST, call_path
from tallystick.bench.engine import switching_as_the_daemon
from tallystick.sandbox.locked import LockedDriver

#: Of LMDB: the pages, and the page that names them.
FLUSHES_OF_COMMIT = 2.0
REPEATS = 5

BEGIN, END = "/tallystick-bench/begin", "/tallystick-bench/end"
TRACED = "openat,fsync,fdatasync,msync,sync_file_range,pwrite64,pwritev,writev"

_SYNCED = re.compile(r"openat\([^)]*\bO_D?SYNC\b[^)]*\)\s*=\s*(\d+)")
_FLUSH = re.compile(r"\b(?:fsync|fdatasync|msync|sync_file_range)\(")
_WRITE = re.compile(r"\b(?:pwrite64|pwritev|writev)\((\d+)")


class Flushes(msgspec.Struct, frozen=True):
    """Commits of a call, and flushes of a commit, which is what LMDB does where no strace was there to count them."""

    commits: float
    of_commit: float
    traced: bool

    @property
    def of_call(self) -> float:
        """Flushes of a call."""
        return self.commits * self.of_commit


def counted(lines: Iterable[str]) -> int:
    """Count the flushes of a trace between its marks."""
    synced: set[str] = set()
    flushes, marked = 0, False
    for line in lines:
        if BEGIN in line or END in line:
            marked = BEGIN in line
        elif (opened := _SYNCED.search(line)) is not None:
            synced.add(opened[1])
        elif marked:
            write = _WRITE.search(line)
            flushes += bool(_FLUSH.search(line)) or (write is not None and write[1] in synced)
    return flushes


def measure(folder: Path, way: str, calls: int) -> Flushes:
    """Make calls in processes of their own, ``sequential`` or ``fanout``, and count what the disk was told."""
    folder.mkdir()

    def commits_of(name: str, *before: str) -> int:
        command = [*before, sys.executable, "-m", __name__, str(folder / name), way, str(calls)]
        return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)  # noqa: S603 - our own

    commits = statistics.median([commits_of(f"{number}") for number in range(REPEATS)]) / calls
    tracer, trace = shutil.which("strace"), folder / "trace"
    if tracer is None:
        return Flushes(commits, FLUSHES_OF_COMMIT, traced=False)
    traced = commits_of("traced", tracer, "-f", "-qq", "-e", f"trace={TRACED}", "-o", str(trace))
    flushes = counted(trace.read_text(encoding="utf-8", errors="replace").splitlines())
    return Flushes(commits, flushes / traced, traced=True)


async def _child(folder: Path, way: str, calls: int) -> int:
    async with call_path(folder, LockedDriver()) as path:
        await path.side_by_side(min(calls, WIDEST))  # what follows is no longer the first of its kind
        before = path.store.commits
        _mark(BEGIN)
        await (path.one_by_one(calls) if way == "sequential" else path.side_by_side(calls))
        _mark(END)
        return path.store.commits - before


def _mark(name: str) -> None:
    with suppress(OSError):
        Path(name).open("rb").close()


if __name__ == "__main__":
    with switching_as_the_daemon():
        print(anyio.run(_child, Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
