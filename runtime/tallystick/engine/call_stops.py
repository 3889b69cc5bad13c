"""Why a call ends its launch without an outcome: the words of the broker's stops (contract.md, section 6)."""

from tallystick.contract.errors import StoreError
from tallystick.contract.events import AttemptStarted
from tallystick.contract.runtime_rule import CallRequest, Stop
from tallystick.engine.retries import shown

UNKNOWN_OUTCOME, CUT_OFF, TOLD_TO_WAIT = "TS-A002", "TS-N002", "TS-P011"
NOT_SENT = "not sent"
_SEE_TO_THE_STORE = "tally doctor looks at the store; then tally resume: what is committed replays for free"


def cut_off(request: CallRequest) -> Stop:
    """Return the stop of a call that its daemon did not live to see answered."""
    return Stop(
        CUT_OFF,
        f"the daemon stopped before {request.capability} at {request.identity} had its answer",
        "start the daemon and resume; tally attempts RUN shows what became of the call",
        request.identity,
    )


def unwritten(request: CallRequest, error: StoreError) -> Stop:
    """Return the stop of a call whose attempt could not be written: it was not sent."""
    return Stop(
        error.code,
        f"{request.capability} at {request.identity} was {NOT_SENT}: {error.message}",
        error.hint or _SEE_TO_THE_STORE,
        request.identity,
    )


def lost_answer(started: AttemptStarted, error: StoreError) -> Stop:
    """Return the stop of a call that was answered, and whose answer could not be written down."""
    return Stop(
        error.code,
        f"{started.capability} at {started.identity} was answered, but the answer could not be written down: "
        f"{error.message}. Attempt {started.attempt} stays without a result",
        error.hint or _SEE_TO_THE_STORE,
        started.identity,
    )


def unknown_outcome(started: AttemptStarted, reason: str) -> Stop:
    """Return the stop of a side-effecting call of which nobody knows whether it was executed."""
    return Stop(
        UNKNOWN_OUTCOME,
        f"nobody knows whether attempt {started.attempt} at {started.identity} ({started.capability}) was executed: "
        f"{reason}. It may have been billed, so it is not sent again",
        f"look it up at the provider (key {started.effect_key}), then tally reconcile RUN {started.attempt} "
        "--result FILE, or --abandon to permit one more execution",
        started.identity,
    )


def told_to_wait(request: CallRequest, provider: str, until: float, now: float) -> Stop:
    """Return the stop of a call whose provider asks for a longer wait than the policy keeps."""
    return Stop(
        TOLD_TO_WAIT,
        f'{request.capability} at {request.identity} was {NOT_SENT}: the provider "{provider}" asks to be left alone '
        f"until {shown(until, now)}, longer than retry_after_cap; nothing was spent on it",
        f"resume after {shown(until, now)}: what is committed replays for free; retry_after_cap = 0 under "
        f'[capabilities."{request.capability}"] pays no heed to it',
        request.identity,
    )
