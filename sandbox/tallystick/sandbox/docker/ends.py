"""How a container's end is read: its exit status, the memory event, and what the host saw and did."""

import signal
from collections.abc import Mapping
from typing import Any, Literal

from tallystick.sandbox.frames import FrameError
from tallystick.sandbox.guest.process import EXIT_ABANDONED, EXIT_MEMORY
from tallystick.sandbox.protocol import Exit, Limits, reached

#: The status of a guest that used up its processor time. The first process of a container does not receive the
#: signal of that limit unless it handles it, so the guest's program turns it into this exit.
EXIT_CPU = int(signal.SIGXCPU)

_SIGNALLED = 128  # what an exit status adds to the number of the signal that caused it


def exit_of(
    state: Mapping[str, Any],
    limits: Limits,
    *,
    text: str,
    killed: bool,
    lost: bool,
    fault: FrameError | None,
    exceeded: bool,
    memory_event: bool,
    sent: int = 0,
) -> Exit:
    """Name what ended a guest.

    Args:
        state: the engine's description of the container's state.
        limits: what the guest was given.
        text: the tail of its error stream.
        killed: whether the host killed it.
        lost: whether the host had lost it before.
        fault: the breach of the protocol that the host saw, if any.
        exceeded: whether that was too much output.
        memory_event: whether the engine reported that the container ran out of memory.
        sent: bytes that it has sent, error text included.
    """
    status = int(state["ExitCode"])
    number = status - _SIGNALLED if _SIGNALLED < status <= _SIGNALLED + signal.NSIG else None
    out_of_memory = memory_event or bool(state["OOMKilled"])
    cause: Literal["exit", "signal", "memory", "cpu", "output", "protocol", "killed", "lost"]
    if out_of_memory or status == EXIT_MEMORY:
        cause = "memory"
    elif EXIT_CPU in {status, number}:
        cause = "cpu"
    elif fault is not None:
        cause = "output" if exceeded else "protocol"
    elif number == signal.SIGKILL:
        cause = "killed" if killed and not lost else "lost"
    elif status == EXIT_ABANDONED:
        cause = "lost"
    else:
        cause = "exit" if number is None else "signal"
    notes = [text.rstrip("\n")]
    if status == EXIT_ABANDONED:
        notes.append("the connection to it was cut off, and it ended because it heard nothing more")
    elif cause == "lost" and not killed:
        notes.append("it was killed from outside")
    if state.get("Error"):
        notes.append(f"the engine says: {state['Error']}")
    return Exit(
        cause=cause,
        code=status if number is None else None,
        signal=number,
        text="\n".join(filter(None, notes)),
        limit=reached(cause, limits, sent),
    )


def lost_exit(why: str, text: str) -> Exit:
    """Return the end of a guest of which the engine cannot tell any more."""
    return Exit(cause="lost", text="\n".join(filter(None, [text.rstrip("\n"), why])))
