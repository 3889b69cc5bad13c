"""Whether a call is tried again, and after which wait: pure rules over outcomes (contract.md, section 6.2)."""

from datetime import UTC, datetime

from tallystick.contract.attempts import Attempt
from tallystick.contract.history import History
from tallystick.engine.config import CapabilityPolicy
from tallystick.providers.protocol import Outcome, Provider, Refused, Unknown

#: Seconds that the back-off may grow to where the provider names no time.
LONGEST_PAUSE = 60.0
#: What part of the window in which a provider recognises a key is relied upon: its clock is not ours.
_TRUSTED = 0.9


def asked_wait(policy: CapabilityPolicy, outcome: Outcome) -> float:
    """Return how many seconds the provider asks to be left alone for, as far as the policy heeds it; 0 for none."""
    if not isinstance(outcome, Refused) or not policy.retry_after_cap:
        return 0.0
    return outcome.retry_after or 0.0


def pause(policy: CapabilityPolicy, tried: int, outcome: Outcome) -> float | None:
    """Return the seconds before the next try, None when there is none.

    Args:
        policy: that of the capability.
        tried: how many attempts of the call were made, the one that ended so included.
        outcome: how the last one ended.
    """
    ended = outcome.kind if isinstance(outcome, Refused) else "unknown" if isinstance(outcome, Unknown) else ""
    if tried > policy.retries or ended not in policy.retry_on:
        return None
    asked = asked_wait(policy, outcome)
    if asked > policy.retry_after_cap:
        return None
    return max(asked, min(policy.retry_pause * 2.0 ** (tried - 1), max(LONGEST_PAUSE, policy.retry_pause)))


def remembered_waits(history: History) -> dict[tuple[str, str], float]:
    """Return until when (Unix time) providers have asked to be left alone, by capability and provider."""
    until: dict[tuple[str, str], float] = {}
    for attempt in history.attempts.values():
        ended, started = attempt.ended, attempt.started
        if ended is not None and ended.retry_after:
            key = (started.capability, started.provider)
            until[key] = max(until.get(key, 0.0), ended.at + ended.retry_after)
    return until


def may_resend(history: History, attempt: Attempt, provider: Provider, now: float) -> bool:
    """Whether an unresolved call may be sent again: its provider still knows the key, and carries it out once."""
    if attempt.state != "unresolved":
        return False
    first = attempt.started
    while first.resends is not None:
        first = history.attempts[first.resends].started
    # A clock that was put back says nothing of how long ago that was.
    return 0 <= now - first.at < provider.profile.dedupes_keys * _TRUSTED


def shown(moment: float, now: float) -> str:
    """Show a moment as people read it, with its day where that is not today."""
    there, here = (datetime.fromtimestamp(each, UTC) for each in (moment, now))
    return there.strftime("%H:%M:%S UTC" if there.date() == here.date() else "%Y-%m-%d %H:%M UTC")
