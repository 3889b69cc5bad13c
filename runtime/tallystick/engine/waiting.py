"""What a run waits for, read off its history: pure functions (contract.md, section 6)."""

from tallystick.contract.capability import MICROS_PER_USD
from tallystick.contract.events import ApprovalAsked, ApprovalDecided, ErrorInfo
from tallystick.contract.history import History
from tallystick.contract.runtime_rule import DISAPPROVED
from tallystick.engine.money_messages import WaitingCall


def asked_calls(history: History) -> list[tuple[ApprovalAsked, ApprovalDecided | None]]:
    """Return the calls that the latest launch ended waiting for, each with what was decided of it since."""
    launch = history.launch
    if launch is None or launch.ended is None or launch.ended.status != "waiting":
        return []
    return history.approvals.asked(launch.started.launch)


def waiting_call(asked: ApprovalAsked, decided: ApprovalDecided | None) -> WaitingCall:
    """Report one call that was held."""
    return WaitingCall(
        identity=asked.identity,
        capability=asked.capability,
        payload=asked.payload,
        digest=asked.digest,
        take=asked.take,
        estimate_usd=asked.reserved / MICROS_PER_USD,
        decision=None if decided is None else "approved" if decided.approved else "denied",
        who=decided.who if decided is not None else "",
        why=decided.why if decided is not None else "",
    )


def waiting_calls(history: History) -> tuple[WaitingCall, ...]:
    """Report the calls that the run waits for, decided ones included."""
    return tuple(waiting_call(asked, decided) for asked, decided in asked_calls(history))


def denied(history: History) -> ErrorInfo | None:
    """Return why a run that had ended waiting does so no more: every call is decided, and one of them was denied."""
    calls = asked_calls(history)
    decisions = [decided for _, decided in calls if decided is not None]
    refused = next((one for one in decisions if not one.approved), None)
    if refused is None or len(decisions) < len(calls):
        return None
    why = f": {refused.why}" if refused.why else ""
    return ErrorInfo(
        DISAPPROVED,
        f"{refused.who} has denied the call of {refused.capability} at {refused.identity}{why}; it was not made",
        "resume with a script that does without it, or approve of it after all: "
        f"tally approve {history.run} '{refused.identity}'",
    )
