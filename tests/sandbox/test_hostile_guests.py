"""A guest that is an enemy altogether: the locked driver against programs that break the protocol in every way."""

import os
import signal

import anyio
import pytest

from sandbox_support import guests
from tallystick.sandbox import locked
from tallystick.sandbox.conformance import NONCE, guest, start
from tallystick.sandbox.frames import Call, Done, FrameError, Reply
from tallystick.sandbox.locked import LockedDriver, program
from tallystick.sandbox.protocol import EndOfGuest, Limits, Sandbox, SandboxError

# These programs are not confined: they are ours, and do no more than they say.
SPEAK = """
import os, sys
import msgspec
from tallystick.sandbox.frames import *
def raw(data):
    while data: data = data[os.write(1, data):]
def frame(body): raw(HEAD.pack(len(body)) + body)
def say(*frames): raw(b"".join(map(pack, frames)))
def hear():
    (size,) = HEAD.unpack(os.read(0, 4))
    return os.read(0, size)
def for_ever():
    while os.read(0, 1): pass
nonce = decode_boot(hear()).nonce
def call(**changes):
    fields = dict(nonce=nonce, id=1, site="s", path=(), occurrence=0, capability="c", payload=None)
    say(Call(**{**fields, **changes}))
"""
BOOT = SPEAK + 'say(Ready(nonce=nonce, landlock=7, seccomp=True, python="3"))\n'
HELLO = BOOT + "hear()\n"

BREACHES = {
    "malformed": "frame(b'\\xc1\\xc1')",
    "not a frame": "frame(msgspec.msgpack.encode([1, 2]))",
    "unknown kind": "frame(msgspec.msgpack.encode({'t': 'admin', 'nonce': nonce}))",
    "a host's frame": "say(Reply(nonce=nonce, id=1))",
    "unknown field": "frame(msgspec.msgpack.encode({'t': 'done', 'nonce': nonce, 'paid': True}))",
    "wrong nonce": "call(nonce='0' * 32)",
    "no nonce": "frame(msgspec.msgpack.encode({'t': 'done'}))",
    "id out of range": "call(id=1 << 31)",
    "deep": "frame(pack(Done(nonce=nonce))[4:].replace(b'\\x82', b'\\x83') + b'\\xa5value' + b'\\x91' * 100_000 + b'\\xc0')",
    "vast": "say(Done(nonce=nonce, value=[[]] * 60_000))",
    "not plain": "call(payload=float('nan'))",
    "second ready": "say(Ready(nonce=nonce))",
    "call after done": "say(Done(nonce=nonce), Call(nonce=nonce, id=1, site='', path=(), occurrence=0, capability='', payload=1))",
    "oversized": "raw(b'\\xff\\xff\\xff\\xff')",
    "cut off in its head": "raw(b'\\0'); sys.exit()",
    "cut off in its body": "raw(pack(Done(nonce=nonce))[:-1]); sys.exit()",
    "empty": "frame(b'')",
}


def hostile(code: str) -> LockedDriver:
    return LockedDriver(guest=program(code))


async def drain(sandbox: Sandbox) -> None:
    while True:
        await sandbox.receive()


@pytest.mark.parametrize("breach", BREACHES)
async def test_a_breach_ends_the_launch_and_names_itself(breach: str) -> None:
    async with guest(hostile(f"{HELLO}{BREACHES[breach]}\nfor_ever()")) as sandbox:
        await start(sandbox, "")
        with pytest.raises(FrameError):
            await drain(sandbox)
        with pytest.raises(FrameError):
            await sandbox.receive()
        assert (await sandbox.kill()).cause == "protocol"


@pytest.mark.parametrize(
    "flood",
    [
        "raw(b'\\0' * 65536)",
        "frame(b'\\xc0' * (1 << 20))",
        "call(payload='x' * 100_000)",
        "raw((HEAD.pack(MAX_FRAME) + b'x') * 1000)",
    ],
    ids=["zeros", "junk", "calls", "heads"],
)
async def test_a_flood_ends_with_the_allowance_or_before(flood: str) -> None:
    async with guest(hostile(f"{HELLO}while True: {flood}"), Limits(output=8 << 20)) as sandbox:
        await start(sandbox, "")
        with pytest.raises(FrameError):
            await drain(sandbox)
        assert (await sandbox.kill()).cause in {"protocol", "output"}


async def test_a_flood_leaves_the_event_loop_its_turns() -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await anyio.lowlevel.checkpoint()
            turns += 1

    async with guest(hostile(f"{HELLO}while True: call(payload='x' * 50_000)")) as sandbox:
        await start(sandbox, "")
        async with anyio.create_task_group() as group:
            group.start_soon(count)
            for _ in range(20):
                await sandbox.receive()
            group.cancel_scope.cancel()
    assert turns >= 20


async def test_half_a_frame_and_then_silence_can_be_killed() -> None:
    async with guest(hostile(f"{HELLO}raw(b'\\0\\0')\nfor_ever()")) as sandbox, anyio.create_task_group() as group:
        await start(sandbox, "")

        async def receive() -> None:
            with pytest.raises(EndOfGuest):
                await sandbox.receive()

        group.start_soon(receive)
        await anyio.wait_all_tasks_blocked()
        assert (await sandbox.kill()).cause == "killed"


async def test_a_guest_that_never_reads_holds_up_no_one_but_its_sender() -> None:
    async with guest(hostile(f"{HELLO}import signal; signal.pause()")) as sandbox:
        await start(sandbox, "")
        async with anyio.create_task_group() as group:

            async def send() -> None:
                with pytest.raises(EndOfGuest):
                    await sandbox.send([Reply(nonce=NONCE, id=1, value="x" * (1 << 20))])

            group.start_soon(send)
            await anyio.wait_all_tasks_blocked()
            assert (await sandbox.kill()).cause == "killed"


async def test_what_a_cancelled_send_left_over_goes_out_first() -> None:
    code = """
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
say(Ready(nonce=nonce, landlock=7, seccomp=True))
signal.sigwait([signal.SIGUSR1])
splitter = Splitter()
bodies = []
while len(bodies) < 2: bodies += splitter.feed(os.read(0, 1 << 16))
started, replied = map(decode_to_guest, bodies)
say(Done(nonce=nonce, value=[len(started.source), replied.id]))
"""
    async with guest(hostile(SPEAK + code)) as sandbox, anyio.create_task_group() as group:
        with anyio.CancelScope() as scope:
            group.start_soon(cancel_when_blocked, scope)
            await start(sandbox, "x" * 1_000_000)
        assert scope.cancelled_caught
        group.start_soon(sandbox.send, [Reply(nonce=NONCE, id=7)])
        await anyio.wait_all_tasks_blocked()
        os.kill(sandbox.pid or 0, signal.SIGUSR1)
        assert await sandbox.receive() == [Done(nonce=NONCE, value=[1_000_000, 7])]


async def cancel_when_blocked(scope: anyio.CancelScope) -> None:
    await anyio.wait_all_tasks_blocked()
    scope.cancel()


async def test_a_guest_that_closes_its_output_has_ended_as_far_as_frames_go() -> None:
    async with guest(hostile(f"{HELLO}os.close(1)\nfor_ever()")) as sandbox:
        await start(sandbox, "")
        with pytest.raises(EndOfGuest):
            await sandbox.receive()
        assert (await sandbox.kill()).cause == "killed"


async def test_what_a_guest_left_running_ends_with_it() -> None:
    code = f"{HELLO}pid = os.fork()\nif not pid: os.close(1); import signal; signal.pause()\ncall(payload=pid)\nos._exit(0)"
    async with guest(hostile(code)) as sandbox:
        await start(sandbox, "")
        (frame,) = await sandbox.receive()
        assert isinstance(frame, Call)
        orphan = os.pidfd_open(frame.payload)
        assert (await sandbox.wait()).code == 0
        await anyio.wait_readable(orphan)  # it ends
        os.close(orphan)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("import sys; sys.exit('no python here')", "the guest did not start: the guest's frames ended. no python here"),
        ("1 / 0", "ZeroDivisionError"),
        (SPEAK + "say(Ready(nonce='other'))\nfor_ever()", "another launch's nonce"),
        (SPEAK + "say(Done(nonce=nonce))\nfor_ever()", "a frame before Ready"),
        (SPEAK + "say(Ready(nonce=nonce))\nfor_ever()", "runs without landlock and seccomp, which nobody allowed"),
        (SPEAK + "say(Ready(nonce=nonce, landlock=1))\nfor_ever()", "runs without seccomp, which nobody allowed"),
        (SPEAK + "say(Ready(nonce=nonce), Done(nonce=nonce))\nfor_ever()", "the guest did not start"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "It ended by signal."),
    ],
    ids=["exit", "error", "nonce", "order", "no-locks", "one-lock", "eager", "signal"],
)
async def test_a_guest_that_does_not_start_as_agreed_is_not_used(code: str, text: str) -> None:
    driver = hostile(code)
    with pytest.raises(SandboxError) as refused:
        await driver.open(Limits(), NONCE)
    assert text in str(refused.value)
    assert guests() == []


async def test_a_guest_that_stays_silent_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locked, "_START_SECONDS", 0)
    with pytest.raises(SandboxError, match=r"no sign of life within 0 s\. It ended by killed"):
        await hostile(f"{SPEAK}for_ever()").open(Limits(), NONCE)
    assert guests() == []


async def test_a_start_that_is_given_up_leaves_nothing_behind() -> None:
    driver = hostile("import os; os.read(0, 1 << 20); os.read(0, 1)")
    async with anyio.create_task_group() as group:
        group.start_soon(driver.open, Limits(), NONCE)
        await anyio.wait_all_tasks_blocked()
        assert len(guests()) == 1
        group.cancel_scope.cancel()
    assert guests() == []
