"""What goes between a launch and the actor round it: steps out, settlements in, and the codes of stops."""

from typing import TypeAlias

import msgspec

from tallystick.contract.capability import FailureKind
from tallystick.contract.events import Record
from tallystick.contract.identity import Identity
from tallystick.contract.runtime_rule import CallRequest, Execute, Stop

SCRIPT_FAILED = "TS-R001"
CALL_FAILED = "TS-R002"
ORPHANED = "TS-R003"
BREACH = "TS-R004"
GUEST_LIMIT = "TS-R005"
BAD_RESULT = "TS-R006"
NO_SANDBOX = "TS-R007"
TOO_LARGE = "TS-R008"
CANCELLED = "TS-R009"
SANDBOX_LOST = "TS-R011"
TOO_LONG = "TS-P007"
REPINNED = "TS-P012"
INTERRUPTED = "TS-N003"
STOPPING = "TS-N006"


class Serve(msgspec.Struct, frozen=True):
    """Reply to a call with the result of a record."""

    call: int
    record: Record
    replayed: bool


class Fail(msgspec.Struct, frozen=True):
    """Reply to a call with a failure that the script may catch; ``replayed`` when an earlier launch had it so."""

    call: int
    identity: Identity
    capability: str
    kind: FailureKind
    text: str
    replayed: bool = False


class Hold(msgspec.Struct, frozen=True):
    """Leave a call unanswered: a person must approve of it first, while the branches beside it go on."""

    call: int
    request: CallRequest
    estimate: int


class Dispatch(msgspec.Struct, frozen=True):
    """Hand new work to the capability's actor; ``survived`` names failed attempts that its branch had seen."""

    call: int
    request: CallRequest
    execute: Execute
    survived: tuple[int, ...] = ()


class Halt(msgspec.Struct, frozen=True):
    """End the guest: the launch is stopped, and what is in flight settles."""

    stop: Stop


class Decide(msgspec.Struct, frozen=True):
    """Tell the guest who won a race, as far as anybody has."""

    race: int
    winner: int | None


class WriteWinner(msgspec.Struct, frozen=True):
    """Journal who won a race, then tell the guest."""

    race: int
    identity: Identity
    fingerprint: str
    width: int
    winner: int


class Note(msgspec.Struct, frozen=True):
    """Tell whoever watches that the script has printed a line."""

    text: str


class Finished(msgspec.Struct, frozen=True):
    """The guest has said its last word: a result, or the error that the script ended with."""


Step: TypeAlias = Serve | Fail | Hold | Dispatch | Halt | Decide | WriteWinner | Note | Finished


class CommittedCall(msgspec.Struct, frozen=True):
    """Settlement: the call has its record."""

    record: Record


class FailedCall(msgspec.Struct, frozen=True):
    """Settlement: a failure that the script may catch; ``attempt`` is the one that failed so."""

    kind: FailureKind
    text: str
    attempt: int | None = None


class StoppedCall(msgspec.Struct, frozen=True):
    """Settlement: the launch must stop; ``unresolved`` when the call's outcome is unknown, else it was denied."""

    stop: Stop
    unresolved: bool = False


class DroppedCall(msgspec.Struct, frozen=True):
    """Settlement: the launch was already stopped, and the call was never sent."""


Settlement: TypeAlias = CommittedCall | FailedCall | StoppedCall | DroppedCall
