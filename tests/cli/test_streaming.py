import io

import pytest
from rich.console import Console

from cli_support import RUN, SHOT, FakeDaemon, Stream, Turns, progress
from tallystick.cli.client import Client, RefusedError
from tallystick.cli.progress import Display, event_line, status_line
from tallystick.cli.streaming import follow, parse
from tallystick.contract.errors import DaemonError
from tallystick.engine import paths
from tallystick.engine.messages import Calls, Spend

EVENTS = f"/runs/{RUN}/events"


def kinds(daemon: FakeDaemon, *streams: Stream, patience: float = 5.0) -> tuple[list[str], int]:
    """Follow a run over these streams and return what came, and how often the stream broke."""
    daemon.says("GET", EVENTS, Turns(*streams))
    drops: list[int] = []
    found: list[str] = [
        each.kind for each in follow(Client(paths.socket_path()), RUN, lambda: drops.append(1), patience)
    ]
    return found, len(drops)


def test_a_stream_is_followed_to_its_end(daemon: FakeDaemon) -> None:
    stream = Stream(progress("snapshot"), progress("started"), progress("ended"))
    assert kinds(daemon, stream) == (["snapshot", "started", "ended"], 0)


@pytest.mark.parametrize("cut", [True, False])
def test_a_stream_that_breaks_is_opened_again(daemon: FakeDaemon, cut: bool) -> None:
    broken = Stream(progress("snapshot"), progress("started"), cut=cut)
    whole = Stream(progress("snapshot"), progress("ended"))
    assert kinds(daemon, broken, whole) == (["snapshot", "started", "snapshot", "ended"], 1)


def test_a_daemon_that_stays_away_is_named_with_what_helps(daemon: FakeDaemon) -> None:
    with pytest.raises(DaemonError, match=f"went away while run {RUN} was going; what it journalled is kept") as caught:
        kinds(daemon, Stream(progress("snapshot"), cut=True), Stream(cut=True), patience=0.0)
    assert f"tally watch {RUN}" in caught.value.hint


def test_a_run_that_nobody_knows_is_not_asked_for_twice(daemon: FakeDaemon) -> None:
    daemon.refuses("GET", EVENTS, "TS-U002", "no such run")
    with pytest.raises(RefusedError, match="no such run"):
        list(follow(Client(paths.socket_path()), RUN))
    assert len(daemon.asked) == 1


def test_server_sent_events_are_read_by_their_data() -> None:
    lines = [
        ": a comment",
        "event: log",
        'data: {"kind":"log",',
        'data:"at":1.5,"text":"data: x"}',
        "",
        "",
        'data: {"kind":"ended","at":2.0}',
        "",
        'data: {"kind":"log","at":3.0}',
    ]
    assert list(parse(lines)) == [
        progress("log", at=1.5, text="data: x"),
        progress("ended", at=2.0),
    ]


@pytest.mark.parametrize(
    ("kind", "fields", "shown"),
    [
        ("committed", {"cost_usd": 0.02}, "  + image.generate   orchestrate.shot/#1 [3] 0  $0.02"),
        ("failed", {"text": "invalid_request: no\nway"}, "  x image.generate   orchestrate.shot/#1 [3] 0  invalid_request: no\n    way"),
        ("unresolved", {"text": "reset"}, "  ? image.generate   orchestrate.shot/#1 [3] 0  reset"),
        ("denied", {"text": "\x1b[2J"}, "  - image.generate   orchestrate.shot/#1 [3] 0  \\x1b[2J"),
        ("log", {"identity": None, "text": "one\ntwo"}, "  > one\n  > two"),
        ("started", {}, None),
        ("replayed", {}, None),
    ],
)  # fmt: skip
def test_what_a_call_came_to_is_one_line(kind: str, fields: dict[str, object], shown: str | None) -> None:
    line = event_line(progress(kind, **({"identity": SHOT, "capability": "image.generate"} | fields)))
    assert (None if line is None else line.plain) == shown


def test_the_status_line_counts_what_matters() -> None:
    latest = progress("started", calls=Calls(executed=3, replayed=2, failed=1), in_flight=4, spend=Spend(usd=0.06))
    assert status_line("r", "running", latest, 1.25).plain == (
        "r running  3 executed · 2 replayed · 4 in flight · 1 failed · $0.06 · 1.2 s"
    )


def test_the_status_is_one_line_in_a_narrow_terminal() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=40, no_color=True)
    console.print(Display(RUN))
    assert isinstance(console.file, io.StringIO)
    (line,) = console.file.getvalue().splitlines()
    assert RUN in line
    assert "…" in line
