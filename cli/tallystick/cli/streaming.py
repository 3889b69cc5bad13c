"""A run's live stream, followed to its end over interruptions of the connection."""

import select
import time
from collections.abc import Callable, Iterable, Iterator

import msgspec

from tallystick.cli.client import Client, run_path
from tallystick.contract.errors import DaemonError
from tallystick.engine.messages import Progress

#: Seconds that a follower tries to reach the daemon again before it gives up.
PATIENCE = 10.0
_PAUSE = 0.1


def follow(
    client: Client, run: str, on_drop: Callable[[], None] = lambda: None, patience: float = PATIENCE
) -> Iterator[Progress]:
    """Yield a run's progress, from a snapshot to ``ended``.

    A stream that breaks is opened again, and begins with a snapshot again; ``on_drop`` is called once per break.

    Raises:
        RefusedError: the daemon knows no such run.
        DaemonError: the daemon stayed away for longer than ``patience`` seconds.
    """
    deadline = None
    while True:
        try:
            with client.lines(run_path(run, "events")) as lines:
                for progress in parse(lines):
                    deadline = None
                    yield progress
                    if progress.kind == "ended":
                        return
        except DaemonError:
            pass
        if deadline is None:
            deadline = time.monotonic() + patience
            on_drop()
        elif time.monotonic() > deadline:
            raise DaemonError(
                f"the daemon went away while run {run} was going; what it journalled is kept, nothing is lost",
                hint=f"`tally watch {run}` starts a daemon and shows how the run stands; see `tally daemon logs`",
            )
        select.select([], [], [], _PAUSE)


def parse(lines: Iterable[str]) -> Iterator[Progress]:
    """Read server-sent events: the ``data`` fields of each block are one progress; other fields are skipped."""
    data: list[str] = []
    for line in lines:
        if line.startswith("data:"):
            data.append(line.removeprefix("data:").removeprefix(" "))
        elif not line and data:
            yield msgspec.json.decode("\n".join(data), type=Progress)
            data = []
