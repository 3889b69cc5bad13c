"""What figures were measured on: versions, machine, and what the disk takes to make one write durable."""

import os
import platform
import statistics
import sys
import time
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import msgspec

SYNCS = 31
PAGE = 4096
LIBRARIES = ("tallystick", "anyio", "lmdb", "msgspec")


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """Where figures come from; ``fdatasync_ms`` is the median of one page written and synced, in milliseconds."""

    versions: dict[str, str]
    system: str
    processor: str
    cores: int
    memory_mb: int
    fdatasync_ms: float
    measured: str


def surroundings(folder: Path) -> Surroundings:
    """Look at this machine, and at the disk of a folder."""
    return Surroundings(
        versions={"python": platform.python_version(), **{name: metadata.version(name) for name in LIBRARIES}},
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        processor=_processor(),
        cores=len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1,
        memory_mb=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20,
        fdatasync_ms=round(statistics.median(synced(folder, SYNCS)) * 1000, 3),
        measured=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    )


def synced(folder: Path, times: int) -> Iterator[float]:
    """Write a page and have it synced, so many times in the same place; yield the seconds that each took."""
    page = os.urandom(PAGE)
    path = folder / "synced"
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        os.pwrite(file, page, 0)
        os.fsync(file)
        for _ in range(times):
            began = time.perf_counter()
            os.pwrite(file, page, 0)
            os.fdatasync(file)
            yield time.perf_counter() - began
    finally:
        os.close(file)
        path.unlink()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")
