"""The live stream: every line to every watcher, and a slow one holds nobody up."""

import anyio

from tallystick.engine.feed import BACKLOG, Feed
from tallystick.engine.messages import Progress


def line(number: int) -> Progress:
    return Progress(kind="log", at=float(number), text=str(number))


async def test_every_watcher_gets_every_line_from_when_it_came() -> None:
    feed = Feed()
    with feed.watch() as early:
        feed.publish(line(1))
        with feed.watch() as late:
            feed.publish(line(2))
            feed.close()
            assert [one.text async for one in early] == ["1", "2"]
            assert [one.text async for one in late] == ["2"]


async def test_nothing_is_kept_for_nobody() -> None:
    feed = Feed()
    seen = [feed.watched]
    feed.publish(line(1))
    with feed.watch() as stream:
        seen.append(feed.watched)
        feed.close()
        assert [one async for one in stream] == []
    seen.append(feed.watched)
    assert seen == [False, True, False]


async def test_a_watcher_that_is_too_slow_is_let_go_with_what_it_has_and_the_others_stay() -> None:
    feed = Feed()
    with feed.watch() as slow, feed.watch() as quick:
        for number in range(BACKLOG + 1):
            feed.publish(line(number))
            assert (await quick.receive()).at == number
        feed.publish(line(BACKLOG + 1))
        assert (await quick.receive()).at == BACKLOG + 1
        assert [one.at async for one in slow] == list(range(BACKLOG))
        assert feed.watched
    assert not feed.watched


async def test_a_watcher_that_leaves_is_forgotten() -> None:
    feed = Feed()
    with feed.watch():
        pass
    assert not feed.watched
    feed.publish(line(1))
    feed.close()


async def test_a_watcher_waits_for_the_next_line() -> None:
    feed = Feed()
    got: list[str] = []

    async def read() -> None:
        with feed.watch() as stream:
            reading.set()
            got.extend([one.text async for one in stream])

    reading = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        await reading.wait()
        feed.publish(line(1))
        feed.close()
    assert got == ["1"]
