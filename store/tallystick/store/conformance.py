"""What any store must do, as checks that a store of any make can be held to.

Each of ``CHECKS`` takes an opener: a function that opens one store, empty at first and the same one at each call.
Put your own through them with a new opener for each::

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
    def test_my_store_conforms(check, tmp_path):
        check(lambda: MyStore(tmp_path / "store"))

A check that fails raises ``AssertionError`` with what was expected.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

from tallystick.contract.capability import Envelope
from tallystick.contract.errors import (
    SlotTakenError,
    StoreClosedError,
    StoreCorruptError,
    StoreError,
    StoreUnavailableError,
)
from tallystick.contract.events import (
    AnyEvent,
    AttemptDecided,
    AttemptEnded,
    AttemptStarted,
    CallDenied,
    Committed,
    ErrorInfo,
    FileRef,
    LaunchEnded,
    LaunchStarted,
    Record,
    RevisionAdded,
    RunCreated,
    RunStatus,
    Stored,
)
from tallystick.contract.identity import Identity
from tallystick.contract.source import SiteFact, Span
from tallystick.store.protocol import RunRow, Store

Opener: TypeAlias = Callable[[], Store]
Check: TypeAlias = Callable[[Opener], None]


def created(run: str, at: float = 1.0) -> RunCreated:
    """Make the event that a run exists."""
    return RunCreated(run=run, at=at, name="demo", envelope=Envelope(grants=("image.generate",), budget=1_000_000))


def committed(run: str, index: int = 0, result: Any = None) -> Committed:
    """Make the record of branch ``index`` of a fanout."""
    identity = Identity("orchestrate.shot/#1", (index,), 0)
    record = Record(
        identity=identity,
        capability="image.generate",
        fingerprint="f" * 64,
        digest="d" * 64,
        result=Stored(inline=result),
        cost=40_000,
        revision=0,
        launch=1,
        attempt=index + 1,
    )
    return Committed(run=run, at=2.0, record=record)


def row(run: str, *, status: RunStatus = "running", live: bool = True) -> RunRow:
    """Make the index line of a run."""
    return RunRow(run=run, name="demo", status=status, created=1.0, updated=2.0, live=live)


def one_of_each(run: str) -> list[AnyEvent]:
    """Make one event of every type, with values that a careless encoding would bend."""
    identity = Identity("orchestrate/for1/#2", (0, "poster ü", 3), 7)
    hard = {
        "text": "naïve \u2028 \U0001f3a8 \x00",
        "numbers": [1, 1.0, -0.0, 0.1 + 0.2, 2**63, -(2**63), 1e300],
        "flags": [True, False, None],
        "nested": {"": {"deep": [[], {}]}},
    }
    file = FileRef("a" * 64, "image/png", 12_345)
    span = Span(1, 0, 2, 80)
    record = Record(
        identity=identity,
        capability="image.edit",
        fingerprint="f" * 64,
        digest="d" * 64,
        take="second take",
        result=Stored(file=file),
        artifacts=(file,),
        usage={"tokens": 12, "detail": {"ratio": 0.5}},
        revision=1,
        launch=2,
        attempt=3,
    )
    site = SiteFact("orchestrate/for1/#2", "image.edit", "f" * 64, span, total=3)
    return [
        created(run),
        RevisionAdded(run=run, at=1.5, revision=0, digest="d" * 64, source="# ü\n", args=hard, sites=(site,)),
        LaunchStarted(
            run=run,
            at=2.0,
            launch=1,
            revision=0,
            driver="locked",
            envelope=Envelope(wall_clock=1.5),
            allowed_repeats=(identity,),
        ),
        AttemptStarted(
            run=run,
            at=3.0,
            attempt=1,
            launch=1,
            revision=0,
            identity=identity,
            capability="image.edit",
            effect="side_effecting",
            fingerprint="f" * 64,
            digest="d" * 64,
            payload=hard,
            effect_key="k" * 64,
            reserved=0,
        ),
        AttemptEnded(run=run, at=4.0, attempt=1, outcome="unusable", kind="unusable", raw=Stored(inline=hard), cost=0),
        Committed(run=run, at=5.0, record=record),
        AttemptDecided(run=run, at=6.0, attempt=1, decision="abandon", who="ops", why="billed twice"),
        CallDenied(run=run, at=7.0, launch=1, identity=identity, capability="image.edit", code="TS-P001", message="no"),
        LaunchEnded(
            run=run,
            at=8.0,
            launch=1,
            status="failed",
            error=ErrorInfo("TS-R001", "it failed", "mend it"),
            result=Stored(inline=0),
            orphans=(identity,),
            warnings=("twin",),
        ),
    ]


def sequences_count_events_from_one(opener: Opener) -> None:
    """Sequences are contiguous over batches, runs and reopening."""
    with _opened(opener) as store:
        _equal(store.last_sequence(), 0, "the last sequence of an empty store")
        _equal(store.append([created("run-1"), created("run-2")]), 1, "the first batch's sequence")
        _equal(store.append([committed("run-1")]), 3, "the second batch's sequence")
        _equal(store.last_sequence(), 3, "the last sequence")
    with _opened(opener) as store:
        _equal(store.append([committed("run-2")]), 4, "the sequence after reopening")


def a_run_reads_its_own_events_in_order(opener: Opener) -> None:
    """A batch may mix runs; each reads its own, and an unknown run reads nothing."""
    with _opened(opener) as store:
        first, second, third = created("run-1"), created("run-10"), committed("run-1")
        store.append([first, second, third])
        store.append([committed("run-10")])
        store.append([committed("run-1", 1)])
        _equal(list(store.read("run-1")), [(1, first), (3, third), (5, committed("run-1", 1))], "run-1's events")
        _equal(list(store.read("run-10")), [(2, second), (4, committed("run-10"))], "run-10's events")
        for run in ("run-", "run-2", "", "run 1", "r" * 600, "rün"):
            _equal(list(store.read(run)), [], f"the events of the unknown run {run!r}")


def every_event_comes_back_as_it_was(opener: Opener) -> None:
    """Every type of event survives reopening, value for value and type for type."""
    events = one_of_each("run-1")
    with _opened(opener) as store:
        store.append(events)
    with _opened(opener) as store:
        found = [event for _, event in store.read("run-1")]
    _equal(found, events, "the events after reopening")
    _equal(repr(found), repr(events), "their types, which == does not tell apart (1 and 1.0)")


def reading_is_a_view_of_one_moment(opener: Opener) -> None:
    """What is appended after the call of ``read`` is not in it."""
    with _opened(opener) as store:
        store.append([created("run-1")])
        view = store.read("run-1")
        store.append([committed("run-1")])
        _equal([sequence for sequence, _ in view], [1], "the sequences of a view taken before the second append")


def a_second_record_is_refused_with_its_batch(opener: Opener) -> None:
    """The first record stands, and nothing of the refused batch was written."""
    with _opened(opener) as store:
        store.append([created("run-1"), committed("run-1", 0, "first")])
    with _opened(opener) as store:
        batch = [committed("run-1", 1), committed("run-1", 0, "second")]
        _refused(SlotTakenError, "a second record", store.append, batch, [row("run-1")])
        _refused(SlotTakenError, "a pair in one batch", store.append, [committed("run-1", 2), committed("run-1", 2)])
        _equal(list(store.read("run-1"))[1:], [(2, committed("run-1", 0, "first"))], "the records")
        _equal(store.row("run-1"), None, "the row of the refused batch")
        _equal(store.append([committed("run-1", 1), committed("run-2", 0)]), 3, "the next sequence")


def a_slot_tells_its_records_sequence(opener: Opener) -> None:
    """``record_sequence`` finds what was committed in this run, and only that."""
    slot = committed("run-1", 4).record.identity.slot_key()
    with _opened(opener) as store:
        store.append([created("run-1")])
        store.append([created("run-2"), committed("run-1", 4)])
        _equal(store.record_sequence("run-1", slot), 3, "the record's sequence")
        for run in ("run-2", "run-3", "run 1"):
            _equal(store.record_sequence(run, slot), None, f"the sequence of a record in {run!r}")


def rows_list_the_newest_run_first(opener: Opener) -> None:
    """Rows are replaced, ordered by run id, limited, and continued below a run id."""
    with _opened(opener) as store:
        _equal(store.rows(), [], "the rows of an empty store")
        store.append([created("run-1"), created("run-3")], [row("run-1"), row("run-3"), row("run-3", status="failed")])
        store.append([created("run-2")], [row("run-2"), row("run-1", status="completed", live=False)])
        newest = [row("run-3", status="failed"), row("run-2"), row("run-1", status="completed", live=False)]
        _equal(store.rows(), newest, "all rows")
        _equal(store.rows(limit=2), newest[:2], "two rows")
        _equal(store.rows(limit=0), [], "no rows")
        _equal(store.rows(before="run-2"), newest[2:], "the rows below run-2")
        _equal(store.rows(limit=1, before="run-22"), newest[1:2], "one row below a run that is none")
        _equal(store.rows(before="a"), [], "the rows below all runs")
        _equal(store.row("run-3"), newest[0], "run-3's row")
        _equal(store.row("run-4"), None, "the row of a run that is none")
        _refused(StoreError, "rows below what cannot be a run id", store.rows, before="run 2")


def live_runs_follow_their_rows(opener: Opener) -> None:
    """A run is live while its last row says so, and after reopening."""
    with _opened(opener) as store:
        store.append([], [row("run-2"), row("run-1"), row("run-3", live=False)])
        _equal(store.live_runs(), ["run-1", "run-2"], "the live runs")
        store.append([], [row("run-1", live=False), row("run-3")])
    with _opened(opener) as store:
        _equal(store.live_runs(), ["run-2", "run-3"], "the live runs after reopening")


def runs_are_counted_by_their_rows(opener: Opener) -> None:
    """A run counts once however often its row is replaced, live or not, and after reopening."""
    with _opened(opener) as store:
        _equal(store.run_count(), 0, "the runs of an empty store")
        store.append([created("run-1"), created("run-2")], [row("run-1")])
        _equal(store.run_count(), 1, "the runs, of which one has a row")
        store.append([], [row("run-2"), row("run-1", live=False), row("run-2", status="failed")])
        _equal(store.run_count(), 2, "the runs after their rows were replaced")
    with _opened(opener) as store:
        _equal(store.run_count(), 2, "the runs after reopening")


def rows_can_be_written_alone(opener: Opener) -> None:
    """Rows without events take no sequence, and nothing at all is no error."""
    with _opened(opener) as store:
        store.append([created("run-1")])
        _equal(store.append([], [row("run-1")]), 2, "the sequence of a batch of rows")
        _equal(store.append([]), 2, "the sequence of an empty batch")
        _equal(store.last_sequence(), 1, "the last sequence")
        _equal(store.row("run-1"), row("run-1"), "the row")


def what_cannot_be_read_back_is_not_written(opener: Opener) -> None:
    """A value of no JSON type, a field of a wrong type and a bad run id are refused, and the store goes on."""
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    record = committed("run-1").record
    wrong = {
        "an object": committed("run-1", 1, object()),
        "a lone surrogate": committed("run-1", 1, "\ud800"),
        "an integer of 65 bits": committed("run-1", 1, 2**64),
        "lists nested too deep": committed("run-1", 1, deep),
        "a time that is text": Committed(run="run-1", at="now", record=record),  # type: ignore[arg-type] # the point
        "a run id with a space": created("run 1"),
        "an empty run id": created(""),
        "a run id too long": created("r" * 65),
        "a run id beyond ASCII": created("rün"),
    }
    with _opened(opener) as store:
        for what, event in wrong.items():
            _refused(StoreError, what, store.append, [created("run-1"), event], [row("run-1")])
        _refused(StoreError, "a row of a bad run", store.append, [created("run-1")], [row("run 1")])
        _equal(store.last_sequence(), 0, "the last sequence")
        _equal(store.rows(), [], "the rows")
        _equal(store.append([committed("run-1", 1)]), 1, "the next sequence")


def the_store_keeps_its_id_and_key(opener: Opener) -> None:
    """Id and key are the same at each opening; the key has 32 bytes."""
    with _opened(opener) as store:
        store_id, key = store.store_id, store.key()
    _equal(len(key), 32, "the length of the key")
    with _opened(opener) as store:
        _equal((store.store_id, store.key()), (store_id, key), "id and key after reopening")


def a_store_is_opened_once(opener: Opener) -> None:
    """A second opening is refused while the first lasts, and harms it not."""
    with _opened(opener) as store:
        _refused(StoreUnavailableError, "a second opening", opener)
        store.append([created("run-1")])
    with _opened(opener) as store:
        _equal(store.last_sequence(), 1, "the last sequence after reopening")


def a_closed_store_says_so(opener: Opener) -> None:
    """Every method of a closed store raises; closing twice does not."""
    store = opener()
    ref = store.put_file(b"data", "text/plain")
    store.close()
    store.close()
    calls: list[tuple[Callable[..., Any], Sequence[Any]]] = [
        (store.append, ([created("run-1")],)),
        (store.append, ([],)),
        (store.read, ("run-1",)),
        (store.record_sequence, ("run-1", bytes(16))),
        (store.row, ("run-1",)),
        (store.rows, ()),
        (store.run_count, ()),
        (store.live_runs, ()),
        (store.last_sequence, ()),
        (store.key, ()),
        (store.put_file, (b"data", "text/plain")),
        (store.put_files, ([],)),
        (store.get_file, (ref.sha256,)),
    ]
    for call, arguments in calls:
        _refused(StoreClosedError, f"{call.__name__} on a closed store", call, *arguments)


def files_are_kept_by_content(opener: Opener) -> None:
    """The same bytes are one file whatever they are called; each comes back whole, after reopening too."""
    contents = [b"", b"one", bytes(range(256)) * 4096, b"one"]
    with _opened(opener) as store:
        single = store.put_file(b"one", "text/plain")
        refs = store.put_files([(data, "image/png") for data in contents])
        _equal(store.put_files([]), [], "the references of no files")
    _equal(refs[1], FileRef(single.sha256, "image/png", 3), "the reference of a file")
    _equal(refs[3], refs[1], "the reference of the same bytes")
    with _opened(opener) as store:
        for ref, data in zip(refs, contents, strict=True):
            _equal(store.get_file(ref.sha256), data, "a file's bytes")
            _equal(ref.size, len(data), "a file's size")


def a_missing_file_is_an_error(opener: Opener) -> None:
    """A name that stands for nothing, or is none, is never an empty file."""
    with _opened(opener) as store:
        for name in ("0" * 64, "", "..", "../../lock", "A" * 64, "0" * 63 + "\n"):
            _refused(StoreCorruptError, f"the file {name!r}", store.get_file, name)


def a_sweep_keeps_what_is_named(opener: Opener) -> None:
    """A file that an event names stays, and so does one that is named by JSON which an event names."""
    with _opened(opener) as store:
        picture = store.put_file(b"picture", "image/png").sha256
        listed = store.put_file(f'["{picture}"]'.encode(), "application/json").sha256
        loose = store.put_file(b"loose", "image/png").sha256
        store.append([created("r1"), committed("r1", result={"$artifact": f"sha256:{listed}"})])
        future = 1e11
        _equal(store.sweep(future, remove=False).removed, 1, "what a sweep would remove")
        _equal([store.has_file(loose)], [True], "a file after a sweep that only counts")
        _equal(store.sweep(future).removed, 1, "what a sweep removes")
        found = [store.has_file(name) for name in (picture, listed, loose)]
        _equal(found, [True, True, False], "files after a sweep")


def late_events_are_found_from_the_end(opener: Opener) -> None:
    """The events since a moment are those of all runs, in order."""
    with _opened(opener) as store:
        store.append([created("r1", 1.0)])
        store.append([created("r2", 2.0), created("r3", 3.0)])
        store.append([created("r4", 4.0)])
        _equal([event.run for event in store.events_since(2.5)], ["r3", "r4"], "events since a moment")
        _equal(store.events_since(5.0), [], "events since a moment that is to come")


def readers_see_whole_batches(opener: Opener) -> None:
    """Readers in other threads see a batch whole or not at all while appends go on."""
    torn: list[str] = []
    done = threading.Event()

    def look() -> None:
        seen = 0
        while not done.is_set():
            found = [sequence for sequence, _ in store.read("run-1")]
            if found != list(range(1, len(found) + 1)) or len(found) % 3 or len(found) < seen:
                torn.append(f"after {seen} events, {found}")
                return
            seen = len(found)

    with _opened(opener) as store:
        readers = [threading.Thread(target=look) for _ in range(3)]
        for reader in readers:
            reader.start()
        try:
            for batch in range(40):
                store.append([committed("run-1", 3 * batch + index) for index in range(3)])
        finally:
            done.set()
            for reader in readers:
                reader.join()
        _equal(torn, [], "torn views")


CHECKS: tuple[Check, ...] = (
    sequences_count_events_from_one,
    a_run_reads_its_own_events_in_order,
    every_event_comes_back_as_it_was,
    reading_is_a_view_of_one_moment,
    a_second_record_is_refused_with_its_batch,
    a_slot_tells_its_records_sequence,
    rows_list_the_newest_run_first,
    live_runs_follow_their_rows,
    runs_are_counted_by_their_rows,
    rows_can_be_written_alone,
    what_cannot_be_read_back_is_not_written,
    the_store_keeps_its_id_and_key,
    a_store_is_opened_once,
    a_closed_store_says_so,
    files_are_kept_by_content,
    a_missing_file_is_an_error,
    a_sweep_keeps_what_is_named,
    late_events_are_found_from_the_end,
    readers_see_whole_batches,
)


@contextmanager
def _opened(opener: Opener) -> Iterator[Store]:
    store = opener()
    try:
        yield store
    finally:
        store.close()


def _equal(found: Any, expected: Any, what: str) -> None:
    if found != expected:
        raise AssertionError(f"{what}: expected {expected!r}, found {found!r}")


def _refused(error: type[StoreError], what: str, call: Callable[..., Any], *arguments: Any, **named: Any) -> None:
    try:
        found = call(*arguments, **named)
    except error:
        return
    raise AssertionError(f"{what}: expected {error.__name__}, found {found!r}")
