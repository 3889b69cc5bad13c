"""What any sandbox driver must do, as checks that a driver of any make can be held to.

Each check takes a driver and opens its own guests. ``CHECKS`` hold for every driver, ``WALLED`` besides for one that
isolates. Put your own through them::

    @pytest.mark.parametrize("check", [*CHECKS, *WALLED], ids=lambda check: check.__name__)
    async def test_my_driver_conforms(check):
        driver = MyDriver()
        try:
            await check(driver)
        finally:
            await driver.close()

A check that fails raises ``AssertionError`` with what was expected.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import anyio
from anyio.lowlevel import checkpoint

from tallystick.sandbox.frames import (
    MAX_FRAME,
    MAX_PAYLOAD,
    WINDOW,
    Call,
    Crash,
    Done,
    Failure,
    FrameError,
    Log,
    Reply,
    Start,
    ToHost,
)
from tallystick.sandbox.protocol import Driver, EndOfGuest, Exit, Limits, Sandbox

NONCE = "conformance"

Check: TypeAlias = Callable[[Driver], Awaitable[None]]
Answer: TypeAlias = Callable[[Call], Reply | Failure]

FANOUT = """
async def orchestrate(ctx, args):
    async def shot(i):
        first = await ctx.run("image.generate", {"prompt": i}, _site="orchestrate.shot/#1")
        return [first, await ctx.run("image.edit", {"image": first}, _site="orchestrate.shot/#2")]
    return await ctx.parallel([shot(i) for i in range(6)])
"""
ONE_CALL = """
async def orchestrate(ctx, args):
    return await ctx.run("text.generate", args, _site="orchestrate/#1")
"""
ENDLESS = """
async def orchestrate(ctx, args):
    while True:
        pass
"""


@asynccontextmanager
async def guest(driver: Driver, limits: Limits | None = None) -> AsyncIterator[Sandbox]:
    """Open one guest and kill it in the end."""
    sandbox = await driver.open(limits or Limits(), NONCE)
    try:
        yield sandbox
    finally:
        await sandbox.kill()


async def start(sandbox: Sandbox, source: str, args: Any = None, window: int = WINDOW) -> None:
    """Send a script."""
    await sandbox.send([Start(nonce=NONCE, source=source, args=args, window=window)])


def reply(call: Call) -> Reply:
    """Answer a call with its own payload."""
    return Reply(nonce=NONCE, id=call.id, value=call.payload)


def fail(call: Call) -> Failure:
    """Answer a call with an error that the script may catch."""
    return Failure(nonce=NONCE, id=call.id, kind="rate_limited", text="slow down")


async def play(sandbox: Sandbox, answer: Answer = reply) -> list[ToHost]:
    """Answer every call until the guest ends, and return all its frames."""
    heard: list[ToHost] = []
    while not heard or not isinstance(heard[-1], Done | Crash):
        frames = await sandbox.receive()
        heard += frames
        answers = [answer(frame) for frame in frames if isinstance(frame, Call)]
        if answers:
            await sandbox.send(answers)
    return heard


async def run(driver: Driver, source: str, args: Any = None, answer: Answer = reply) -> tuple[list[ToHost], Exit]:
    """Run one script to its end and return its frames and how the guest ended."""
    async with guest(driver) as sandbox:
        await start(sandbox, source, args)
        return await play(sandbox, answer), await sandbox.wait()


def calls(frames: Sequence[ToHost]) -> list[Call]:
    """Return the calls among frames."""
    return [frame for frame in frames if isinstance(frame, Call)]


async def a_script_runs_to_its_result(driver: Driver) -> None:
    """Start, calls, replies, Done, exit 0."""
    frames, end = await run(driver, ONE_CALL, {"prompt": "a \u2022 b", "n": [1, 2.5, None, True]})
    assert frames[-1] == Done(nonce=NONCE, value={"prompt": "a \u2022 b", "n": [1, 2.5, None, True]}), frames
    assert (end.cause, end.code) == ("exit", 0), end
    assert calls(frames) == [
        Call(
            nonce=NONCE,
            id=1,
            site="orchestrate/#1",
            path=(),
            occurrence=0,
            capability="text.generate",
            payload={"prompt": "a \u2022 b", "n": [1, 2.5, None, True]},
        )
    ], frames


async def a_failure_can_be_caught(driver: Driver) -> None:
    """The script sees the kind and the text of a Failure."""
    source = """
async def orchestrate(ctx, args):
    try:
        await ctx.run("text.generate", {}, _site="orchestrate/try1/#1")
    except CapabilityError as e:
        return [e.kind, e.text]
"""
    frames, _ = await run(driver, source, answer=fail)
    assert frames[-1] == Done(nonce=NONCE, value=["rate_limited", "slow down"]), frames


async def an_uncaught_failure_names_its_call(driver: Driver) -> None:
    """Crash says which failed call ended the script, and on which line; the exit status is not 0."""
    frames, end = await run(driver, ONE_CALL, {}, fail)
    crash = frames[-1]
    assert isinstance(crash, Crash), frames
    assert (crash.kind, crash.capability_error, crash.where) == ("CapabilityError", 1, ((3, "orchestrate"),)), crash
    assert end.code not in {0, None}, end


async def a_script_that_does_not_load_says_so(driver: Driver) -> None:
    """A syntax error is a Crash of the load phase with its line."""
    frames, end = await run(driver, "x = 1\nasync def orchestrate(ctx, args:\n    pass\n")
    crash = frames[-1]
    assert isinstance(crash, Crash), frames
    assert (crash.phase, crash.kind, crash.where) == ("load", "SyntaxError", ((2, "<module>"),)), crash
    assert end.code not in {0, None}, end


async def a_result_that_is_not_plain_is_a_crash(driver: Driver) -> None:
    """What cannot be sent is named, and ends the launch without Done."""
    frames, _ = await run(driver, "async def orchestrate(ctx, args):\n    return {'tags': {1, 2}}\n")
    crash = frames[-1]
    assert isinstance(crash, Crash), frames
    assert crash.phase == "result", crash
    assert "result.tags" in crash.text, crash


async def prints_are_logs(driver: Driver) -> None:
    """What a script prints comes as Log frames, in order with its calls."""
    frames, _ = await run(driver, "async def orchestrate(ctx, args):\n    print('a', 1)\n    ctx.log('b')\n")
    assert [frame.text for frame in frames if isinstance(frame, Log)] == ["a 1", "b"], frames


async def a_fanout_is_the_same_at_every_window(driver: Driver) -> None:
    """The window is never exceeded, and changes neither identities nor payloads nor the result."""
    outcomes = set()
    for window in (1, 2, 6, WINDOW):
        made: list[Call] = []
        async with guest(driver) as sandbox:
            await start(sandbox, FANOUT, window=window)
            frames: list[ToHost] = []
            while not frames or not isinstance(frames[-1], Done):
                frames = await sandbox.receive()
                new = calls(frames)
                assert len(new) <= window, f"{len(new)} calls in flight; the window is {window}"
                made += new
                if new:
                    await sandbox.send([reply(call) for call in reversed(new)])
        identities = frozenset((call.site, call.path, call.occurrence, str(call.payload)) for call in made)
        outcomes.add((identities, str(frames[-1])))
    assert len(outcomes) == 1, outcomes


async def two_guests_send_the_same_frames(driver: Driver) -> None:
    """A script and the order of its answers decide every frame, to the last bit."""
    source = """
WORDS = ["mug", "lamp", "chair", "vase", "bowl"]
async def orchestrate(ctx, args):
    async def shot(word):
        return await ctx.run("image.generate", {"prompt": word, "all": [w for w in set(WORDS)]}, _site="s")
    return await ctx.parallel([shot(word) for word in WORDS])
"""
    first, _ = await run(driver, source)
    second, _ = await run(driver, source)
    assert first == second, "two launches of one script differ"


async def a_large_payload_and_a_large_reply_pass(driver: Driver) -> None:
    """Frames far larger than a pipe pass both ways."""
    payload = "x" * (MAX_PAYLOAD - 100)
    value = "y" * (MAX_FRAME - 1000)
    source = """
async def orchestrate(ctx, args):
    return len(await ctx.run("text.generate", args, _site="s"))
"""
    frames, _ = await run(driver, source, payload, lambda call: Reply(nonce=NONCE, id=call.id, value=value))
    assert frames[-1] == Done(nonce=NONCE, value=len(value)), frames[-1]
    assert calls(frames)[0].payload == payload


async def an_oversized_frame_is_refused_before_it_is_sent(driver: Driver) -> None:
    """``send`` raises FrameError, and the guest goes on as if nothing had been sent."""
    async with guest(driver) as sandbox:
        await start(sandbox, ONE_CALL)
        (call,) = calls(await sandbox.receive())
        await _expect(FrameError, sandbox.send([Reply(nonce=NONCE, id=call.id, value="x" * MAX_FRAME)]))
        await sandbox.send([reply(call)])
        assert isinstance((await play(sandbox))[-1], Done)


async def a_guest_can_be_killed_at_any_time(driver: Driver) -> None:
    """Before its script, within a call, twice, and after its end; only a running one is called killed."""
    async with guest(driver) as sandbox:
        assert (await sandbox.kill()).cause == "killed"
        assert (await sandbox.kill()).cause == "killed"
        await _expect(EndOfGuest, sandbox.receive())
        await _expect(EndOfGuest, start(sandbox, ONE_CALL))
    async with guest(driver) as sandbox:
        await start(sandbox, ONE_CALL)
        await sandbox.receive()
        assert (await sandbox.kill()).cause == "killed"
    async with guest(driver) as sandbox:
        await start(sandbox, "async def orchestrate(ctx, args): pass\n")
        await play(sandbox)
        end = await sandbox.wait()
        assert (end.cause, end.code) == ("exit", 0), end
        assert await sandbox.kill() == end
        await _expect(EndOfGuest, sandbox.send([Reply(nonce=NONCE, id=1)]))
        await _expect(EndOfGuest, sandbox.receive())


async def a_kill_wakes_whoever_waits(driver: Driver) -> None:
    """A receiver gets EndOfGuest and every waiter the Exit, even when the kill's caller is being cancelled."""
    ends: list[Exit] = []
    async with guest(driver) as sandbox, anyio.create_task_group() as group:

        async def wait() -> None:
            ends.append(await sandbox.wait())

        async def kill() -> None:
            with anyio.CancelScope() as scope:
                scope.cancel()
                await sandbox.kill()

        group.start_soon(_expect, EndOfGuest, sandbox.receive())
        group.start_soon(wait)
        group.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        group.start_soon(kill)
    assert [end.cause for end in ends] == ["killed", "killed"], ends


async def a_cancelled_receive_loses_nothing(driver: Driver) -> None:
    """A host may stop listening and listen again."""
    async with guest(driver) as sandbox:
        async with anyio.create_task_group() as group:
            group.start_soon(sandbox.receive)
            await anyio.wait_all_tasks_blocked()
            group.cancel_scope.cancel()
        await start(sandbox, ONE_CALL)
        assert isinstance((await play(sandbox))[-1], Done)


async def a_frame_of_another_launch_ends_the_guest(driver: Driver) -> None:
    """A guest that is given what is not its own stops without a result."""
    async with guest(driver) as sandbox:
        await sandbox.send([Start(nonce="another", source=ONE_CALL, args=None)])
        await _expect(EndOfGuest, sandbox.receive())
        end = await sandbox.wait()
        assert end.code != 0, end


async def an_output_allowance_holds(driver: Driver) -> None:
    """A guest that sends more than it may is a breach of the protocol, with its own cause."""
    source = """
async def orchestrate(ctx, args):
    while True:
        await ctx.run("text.generate", "x" * 10000, _site="s")
"""
    async with guest(driver, Limits(output=100_000)) as sandbox:
        await start(sandbox, source)
        await _expect(FrameError, play(sandbox))
        await _expect(FrameError, sandbox.receive())
        assert (await sandbox.kill()).cause == "output"


async def closing_the_driver_kills_its_guests(driver: Driver) -> None:
    """Nothing stays behind, and closing twice is closing once."""
    first, second = [await driver.open(Limits(), NONCE) for _ in range(2)]
    await start(first, ONE_CALL)
    await driver.close()
    assert [(await sandbox.wait()).cause for sandbox in (first, second)] == ["killed", "killed"]
    await driver.close()


async def an_endless_script_can_be_killed(driver: Driver) -> None:
    """A script that never gives way does not keep the host from ending it."""
    async with guest(driver) as sandbox:
        await start(sandbox, ENDLESS)
        await checkpoint()
        assert (await sandbox.kill()).cause == "killed"


async def an_endless_script_ends_at_its_cpu_limit(driver: Driver) -> None:
    """The CPU limit names itself."""
    async with guest(driver, Limits(cpu_seconds=1)) as sandbox:
        await start(sandbox, ENDLESS)
        await _expect(EndOfGuest, sandbox.receive())
        assert (await sandbox.wait()).cause == "cpu"


async def a_script_that_takes_too_much_memory_ends(driver: Driver) -> None:
    """The memory limit names itself, and the script cannot take it for one of its own errors for long."""
    source = """
async def orchestrate(ctx, args):
    hoard = []
    while True:
        try:
            hoard.append(list(range(1000)))
        except ValueError:
            pass
"""
    async with guest(driver, Limits(memory=96 << 20)) as sandbox:
        await start(sandbox, source)
        crash = (await play(sandbox))[-1]
        assert isinstance(crash, Crash), crash
        assert crash.kind == "MemoryError", crash
        assert (await sandbox.wait()).cause == "memory"


async def _expect(error: type[Exception], action: Awaitable[Any]) -> None:
    try:
        result = await action
    except error:
        return
    raise AssertionError(f"expected {error.__name__}, got {result!r}")


CHECKS: tuple[Check, ...] = (
    a_script_runs_to_its_result,
    a_failure_can_be_caught,
    an_uncaught_failure_names_its_call,
    a_script_that_does_not_load_says_so,
    a_result_that_is_not_plain_is_a_crash,
    prints_are_logs,
    a_fanout_is_the_same_at_every_window,
    two_guests_send_the_same_frames,
    a_large_payload_and_a_large_reply_pass,
    an_oversized_frame_is_refused_before_it_is_sent,
    a_guest_can_be_killed_at_any_time,
    a_kill_wakes_whoever_waits,
    a_cancelled_receive_loses_nothing,
    a_frame_of_another_launch_ends_the_guest,
    an_output_allowance_holds,
    closing_the_driver_kills_its_guests,
)
WALLED: tuple[Check, ...] = (
    an_endless_script_can_be_killed,
    an_endless_script_ends_at_its_cpu_limit,
    a_script_that_takes_too_much_memory_ends,
)
