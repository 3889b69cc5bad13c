"""The guest as a process: confine first, then read frames, feed the state machine, write frames."""

import os
import sys
import unicodedata  # noqa: F401 - a script's "\\N{...}" needs it, and it is out of reach once the locks are closed
from collections.abc import Iterable
from typing import NoReturn

from tallystick.sandbox.frames import (
    Boot,
    Crash,
    Done,
    Frame,
    Ready,
    Splitter,
    decode_boot,
    decode_to_guest,
    pack,
)
from tallystick.sandbox.guest.core import Guest
from tallystick.sandbox.guest.lockdown import Confinement, LockError, confine, die_with

EXIT_DONE = 0
EXIT_CRASH = 1
EXIT_ABANDONED = 2
EXIT_MEMORY = 3
EXIT_UNCONFINED = 4

_CHUNK = 1 << 18
_BALLAST = 2 << 20


class Channel:
    """The frame stream of a guest, on descriptors that prints and stray reads of a script do not reach."""

    def __init__(self) -> None:
        self._read_from = os.dup(0)
        self._write_to = os.dup(1)
        self._splitter = Splitter()
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)

    def receive(self) -> list[bytes]:
        """Return all frame bodies that wait, at least one; end the process when the host is gone."""
        while True:
            data = os.read(self._read_from, _CHUNK)
            if not data:
                os._exit(EXIT_ABANDONED)
            bodies = self._splitter.feed(data)
            if bodies:
                return bodies

    def send(self, frames: Iterable[Frame]) -> None:
        """Write frames in one go."""
        view = memoryview(b"".join(map(pack, frames)))
        while view:
            view = view[os.write(self._write_to, view) :]


def main() -> NoReturn:
    """Run one guest on standard input and output; the first frame is Boot."""
    channel = Channel()
    boot = decode_boot(channel.receive()[0])
    confinement = _confined(boot)
    channel.send(
        [
            Ready(
                nonce=boot.nonce,
                landlock=confinement.landlock,
                seccomp=confinement.seccomp,
                python=".".join(map(str, sys.version_info[:3])),
            )
        ]
    )
    _serve(channel, boot)


def _confined(boot: Boot) -> Confinement:
    try:
        if boot.parent:
            die_with(boot.parent)
        return confine(boot) if boot.confine else Confinement(landlock=0, seccomp=False)
    except LockError as error:
        os.write(2, str(error).encode())
        os._exit(EXIT_UNCONFINED)


def _serve(channel: Channel, boot: Boot) -> NoReturn:
    ballast: bytearray | None = bytearray(_BALLAST)
    guest = Guest(boot.nonce)
    try:
        while guest.last is None:
            channel.send(guest.feed(map(decode_to_guest, channel.receive())))
        last: Crash | Done = guest.last
    except MemoryError:
        del ballast  # not even the report of it could be made: now there is room for a short one
        last = Crash(nonce=boot.nonce, kind="MemoryError", text="")
        channel.send([last])
    os._exit(exit_code(last))


def exit_code(last: Done | Crash) -> int:
    """Return the status for a last frame. The process is left at once: no finalizer of the script runs."""
    if isinstance(last, Done):
        return EXIT_DONE
    return EXIT_MEMORY if last.kind == "MemoryError" else EXIT_CRASH
