"""The walls of the locked guest, tried from inside by a script that has climbed out of its language."""

import os

import pytest

from tallystick.sandbox.acceptance.inside import PRELUDE, PROBES, held, probe_script
from tallystick.sandbox.conformance import guest, play, run, start
from tallystick.sandbox.frames import Crash, Done, FrameError, ToHost
from tallystick.sandbox.locked import LockedDriver
from tallystick.sandbox.protocol import EndOfGuest, Exit, Limits

SECRET = "sk-planted-secret"


def climbing(body: str) -> str:
    return f"{PRELUDE}\nasync def orchestrate(ctx, args):\n    {body}\n"


async def locked(body: str, limits: Limits | None = None) -> tuple[ToHost | None, Exit]:
    """Run a body that may climb; return the last frame, None when the guest went without one, and its end."""
    driver = LockedDriver()
    async with guest(driver, limits) as sandbox:
        await start(sandbox, climbing(body), os.getpid())
        try:
            last = (await play(sandbox))[-1]
        except EndOfGuest:
            last = None
        return last, await sandbox.wait()


async def value(body: str) -> object:
    last, _ = await locked(body)
    assert isinstance(last, Done), last
    return last.value


@pytest.mark.parametrize("group", PROBES)
async def test_every_probe_is_refused(group: str) -> None:
    frames, _ = await run(LockedDriver(), probe_script(group), os.getpid())
    last = frames[-1]
    assert isinstance(last, Done), last
    found = last.value
    assert set(found) == set(PROBES[group])
    assert {name: said for name, said in found.items() if not held(name, said)} == {}


async def test_nothing_of_the_hosts_environment_is_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    environment = await value("return dict(OS.environ)")
    assert isinstance(environment, dict)
    assert set(environment) <= {"PYTHONHASHSEED", "LC_CTYPE"}
    assert SECRET not in str(await value("return [SYS.argv, SYS.orig_argv, SYS.path]"))


async def test_no_descriptor_but_its_own_is_inside() -> None:
    with open(__file__, "rb"):  # noqa: ASYNC230, PTH123 - a descriptor of the host that must not get in
        found = await value("""
    reading = [n for n in range(64) if attempt(OS.read, n, 0).startswith("DONE")]
    writing = [n for n in range(64) if attempt(OS.write, n, b"").startswith("DONE")]
    return [len(reading), len(writing)]""")
    assert found == [4, 3]  # nothing, frames in, and the two that share the error stream; frames out and those two


async def test_nothing_but_the_guest_is_loaded() -> None:
    loaded = await value('return sorted(m for m in SYS.modules if m.startswith("tallystick"))')
    assert isinstance(loaded, list)
    assert {name for name in loaded if not name.startswith("tallystick.sandbox.guest")} == {
        "tallystick",
        "tallystick.sandbox",
        "tallystick.sandbox.frames",
    }
    heavy = (
        'return [m for m in ("asyncio", "socket", "subprocess", "anyio", "typing_extensions") if SYS.modules.get(m)]'
    )
    assert await value(heavy) == []


async def test_sets_have_the_same_order_in_every_guest() -> None:
    order = 'return list({"mug", "lamp", "chair", "vase", "bowl", "jug", "cup"})'
    assert await value(order) == await value(order)


async def test_a_descriptor_bomb_ends_at_the_first() -> None:
    last, end = await locked("hoard = []\n    while True: hoard.append(OS.open('/dev/null', 0))")
    assert isinstance(last, Crash)
    assert (last.kind, end.cause) == ("PermissionError", "exit")


async def test_a_thread_bomb_ends_at_the_first() -> None:
    last, _ = await locked("while True: BRING('_thread').start_new_thread(print, ())")
    assert isinstance(last, Crash)
    assert last.text == "can't start new thread"


async def test_a_flood_of_errors_costs_the_host_its_tail_at_most() -> None:
    body = """
    try:
        while True: OS.write(2, b"x" * 10000)
    except OSError as error:
        return error.strerror"""
    last, end = await locked(body, Limits(stderr=30_000))
    assert isinstance(last, Done)
    assert last.value == "File too large"
    assert (end.cause, len(end.text)) == ("exit", 30_000)


async def test_writing_to_standard_output_does_not_reach_the_frames() -> None:
    last, end = await locked("OS.write(1, b'\\xff' * 100); return REAL['print']('x', flush=True)")
    assert isinstance(last, Done)
    assert end.text.endswith("x\n")


async def test_writing_into_the_frames_is_a_breach_of_the_protocol() -> None:
    async with guest(LockedDriver()) as sandbox:
        await start(sandbox, climbing("for n in range(3, 16): attempt(OS.write, n, b'\\xff' * 4)\n    return 1"))
        with pytest.raises(FrameError):
            await play(sandbox)
        assert (await sandbox.kill()).cause == "protocol"


@pytest.mark.parametrize(
    "trick", ["OS._exit(0)", "OS._exit(7)", "REAL['exit'](0)", "OS.abort()", "CTYPES.string_at(0)"]
)
async def test_an_exit_without_a_result_is_no_result(trick: str) -> None:
    last, end = await locked(trick)
    assert last is None or isinstance(last, Crash)
    if trick == "OS._exit(7)":
        assert (end.cause, end.code) == ("exit", 7)
    if "abort" in trick or "string_at" in trick:
        assert (end.cause, end.code) == ("signal", None)


async def test_a_memory_hog_that_catches_everything_still_ends() -> None:
    body = """
    hoard = []
    while True:
        try:
            while True: hoard.append("x" * (1 << 20))
        except MemoryError:
            hoard.append(hoard[:])"""
    last, end = await locked(body, Limits(memory=128 << 20, cpu_seconds=2))
    assert not isinstance(last, Done)
    assert end.cause in {"memory", "cpu"}
