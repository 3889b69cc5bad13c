"""What a launch ended in: how its guest went, what the script said last, which stop was the gravest."""

from typing import Any

import msgspec

from tallystick.contract.capability import OrphanPolicy
from tallystick.contract.events import ErrorInfo, RunStatus
from tallystick.contract.identity import Identity
from tallystick.contract.payload import PayloadError, canonical
from tallystick.contract.runtime_rule import APPROVAL, Stop
from tallystick.engine.steps import (
    BAD_RESULT,
    BREACH,
    CALL_FAILED,
    CANCELLED,
    GUEST_LIMIT,
    INTERRUPTED,
    ORPHANED,
    SANDBOX_LOST,
    SCRIPT_FAILED,
    STOPPING,
)
from tallystick.sandbox.frames import MAX_RESULT, Crash, Done
from tallystick.sandbox.protocol import Exit

_STATUS: dict[str, RunStatus] = {
    APPROVAL: "waiting",
    CANCELLED: "cancelled",
    INTERRUPTED: "interrupted",
    STOPPING: "interrupted",
    SANDBOX_LOST: "interrupted",
}


class Ending(msgspec.Struct, frozen=True):
    """What a launch ended in, before it is journalled."""

    status: RunStatus
    error: ErrorInfo | None
    orphans: tuple[Identity, ...]
    not_reached: tuple[Identity, ...]
    result: Any = None
    has_result: bool = False


def ending_of(
    stop: Stop | None, last: Done | Crash | None, skipped: tuple[Identity, ...], policy: OrphanPolicy
) -> Ending:
    """Say what a launch ended in.

    Args:
        stop: the gravest stop, if there was one.
        last: the guest's last frame.
        skipped: committed identities that it did not invoke: orphans when it ended with a result.
        policy: what orphans mean for the run.
    """
    if stop is not None:
        status = _STATUS.get(stop.code, "failed" if stop.code.startswith("TS-R") else "stopped")
        return Ending(status, ErrorInfo(stop.code, stop.message, stop.hint), (), skipped)
    match last:
        case Done(value=value):
            return _completed(value, skipped, policy)
        case Crash():
            return Ending("failed", _script_error(last), (), skipped)
        case None:
            error = ErrorInfo(BREACH, "the guest ended without a word", "resume the run; what is committed replays")
            return Ending("failed", error, (), skipped)


def _completed(value: Any, orphans: tuple[Identity, ...], policy: OrphanPolicy) -> Ending:
    try:
        canonical(value, "result", MAX_RESULT)
    except PayloadError as error:
        info = ErrorInfo(
            BAD_RESULT,
            f"orchestrate returned what is not JSON-like: {error}",
            "return plain data; every call is committed, so a resume with a corrected script replays them all",
        )
        return Ending("failed", info, (), orphans)
    if orphans and policy == "stop":
        info = ErrorInfo(
            ORPHANED,
            f"the script finished without {len(orphans)} committed call(s), and the orphan policy is stop: "
            + ", ".join(map(str, orphans[:5])),
            "reach them again, or resume with --orphans warn",
        )
        return Ending("failed", info, orphans, (), value, has_result=True)
    return Ending("completed", None, orphans, (), value, has_result=True)


def exit_stop(exit_: Exit, last: Done | Crash | None) -> Stop | None:
    """Judge how the guest went: a result counts only with exit status 0 and no limit in the way."""
    told = isinstance(last, Crash) or (isinstance(last, Done) and exit_.code == 0)
    if exit_.cause == "exit" and told:
        return None
    if exit_.cause in _LIMITS:
        what, hint = _LIMITS[exit_.cause]
        reached = f": {exit_.limit}" if exit_.limit else ""
        return Stop(GUEST_LIMIT, f"the sandbox ended the script at its {what}{reached}{_tail(exit_)}", hint)
    if exit_.cause == "lost":
        return Stop(
            SANDBOX_LOST,
            f"the sandbox was lost in the middle of the launch{_tail(exit_)}; calls in flight settled and are kept",
            "see to it (tally doctor), then tally resume: what is committed replays for free",
        )
    how = f"signal {exit_.signal}" if exit_.signal is not None else f"status {exit_.code}"
    return breach(f"it ended by {how} ({exit_.cause}){_tail(exit_)}")


def breach(what: str) -> Stop:
    """Return the stop of a launch whose guest broke the protocol."""
    return Stop(
        BREACH,
        f"the guest broke the protocol: {what[:500]}",
        "the launch was ended and nothing further was dispatched; what is committed stands",
    )


def over_output(text: str) -> Stop:
    """Return the stop of a launch whose guest sent more than it may."""
    what, hint = _LIMITS["output"]
    return Stop(GUEST_LIMIT, f"the sandbox ended the script at its {what}: {text}", hint)


_LIMITS = {
    "memory": ("memory limit", "keep less data at once, or raise sandbox.memory_mb in the configuration; then resume"),
    "cpu": ("limit of processor time", "compute less, or raise sandbox.cpu_seconds in the configuration; then resume"),
    "output": ("limit of output", "log and pass on less, or raise sandbox.output_mb in the configuration; then resume"),
}


def _tail(exit_: Exit) -> str:
    return f" ({exit_.text.strip()[-300:]})" if exit_.text.strip() else ""


def is_denial(stop: Stop) -> bool:
    """Whether a stop is a denial by policy."""
    return stop.code.startswith("TS-P")


def _script_error(crash: Crash) -> ErrorInfo:
    line = f" at line {crash.where[-1][0]} in {crash.where[-1][1]}" if crash.where else ""
    if crash.kind == "CapabilityError":
        return ErrorInfo(
            CALL_FAILED,
            f"a call failed{line} and the script did not catch it: {crash.text}",
            "repair the cause and resume; committed calls replay for free and the failed one runs again",
        )
    return ErrorInfo(
        SCRIPT_FAILED,
        f"the script raised {crash.kind}{line}: {crash.text}",
        "repair the script and resume; committed calls replay for free",
    )
