"""Every error a user can meet, with stable codes (one page each in docs/errors.md).

    TallyError
    ├── UsageError                TS-U...  the request itself is wrong: a file, JSON, a name, a limit
    ├── ScriptRefusedError        TS-C...  the checker found errors
    ├── NoCandidateError          TS-M...  a model was asked for a script, and none was accepted
    ├── GateStoppedError          TS-G...  a rewrite would change or move a committed call
    │   └── PrefixConflictError            the records of one site disagree: the store needs a look
    ├── DivergenceError           TS-D...  a committed identity was reached with another call or payload
    ├── AttemptUnresolvedError    TS-A...  the outcome of a side-effecting call is unknown
    ├── PolicyDeniedError         TS-P...  grant, budget, ceiling, approval or repeat policy
    ├── RunFailedError            TS-R...  the script, its sandbox or its limits ended the launch
    ├── StoreError                TS-S...
    │   ├── StoreUnavailableError          disk, map or lock: nothing was dispatched
    │   ├── StoreCorruptError              a value is damaged, missing or of an unknown format
    │   ├── SlotTakenError                 a second record for one identity
    │   └── StoreClosedError
    └── DaemonError               TS-N...  the daemon cannot be reached, started or trusted

A message says what happened, what was kept and what it cost; ``hint`` says what to do next.
"""

from typing import Any


class TallyError(Exception):
    """The root. ``code`` is stable, ``exit_code`` is the command's (architecture.md, section 7)."""

    code = "TS-X001"
    exit_code = 1

    def __init__(self, message: str, *, hint: str = "", code: str | None = None, details: Any = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.details = details
        if code is not None:
            self.code = code


class UsageError(TallyError):
    """The request itself is wrong; nothing was started."""

    code = "TS-U001"
    exit_code = 2


class ScriptRefusedError(TallyError):
    """The checker found errors; ``details`` is the list of violations."""

    code = "TS-C001"
    exit_code = 3


class NoCandidateError(TallyError):
    """A model was asked for a script, and none of its answers was accepted."""

    code = "TS-M001"
    exit_code = 3


class GateStoppedError(TallyError):
    """The gate stopped a rewrite; ``details`` is the list of counterexamples."""

    code = "TS-G001"
    exit_code = 3


class PrefixConflictError(GateStoppedError):
    """Two records of one site disagree on capability or fingerprint: no verdict can be given."""

    code = "TS-G002"


class DivergenceError(TallyError):
    """A committed identity was reached with another capability, payload or take."""

    code = "TS-D001"
    exit_code = 4


class AttemptUnresolvedError(TallyError):
    """The outcome of a side-effecting call is unknown; it is not paid again before somebody decides."""

    code = "TS-A001"
    exit_code = 5


class PolicyDeniedError(TallyError):
    """A policy refused a call before its attempt: nothing was spent on it."""

    code = "TS-P001"
    exit_code = 6


class RunFailedError(TallyError):
    """The launch ended without a result."""

    code = "TS-R001"
    exit_code = 1


class StoreError(TallyError):
    """The store could not do what was asked."""

    code = "TS-S001"
    exit_code = 7


class StoreUnavailableError(StoreError):
    """Disk, map or lock trouble: nothing was written, and nothing is dispatched on it."""

    code = "TS-S002"


class StoreCorruptError(StoreError):
    """A value is damaged, missing or of an unknown format: an error, never an absent value."""

    code = "TS-S003"


class SlotTakenError(StoreError):
    """A second record for an identity that already has one; the first stands."""

    code = "TS-S004"


class StoreClosedError(StoreError):
    """The store was closed before this call."""

    code = "TS-S005"


class DaemonError(TallyError):
    """The daemon cannot be reached, started or trusted."""

    code = "TS-N001"
    exit_code = 7
