"""Why an API refuses, and how long it asks to wait: casebook 3, 28 and 29."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from http_support import Rigs
from tallystick.providers.http import retry_after
from tallystick.providers.http.retry_after import LONGEST
from tallystick.providers.protocol import Outcome, Refused, Succeeded, Unknown
from upstream_faults import Fault
from upstream_server import Upstream

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
LATER = format_datetime(NOW + timedelta(seconds=90), usegmt=True)
EARLIER = format_datetime(NOW - timedelta(days=1), usegmt=True)
SENT = format_datetime(NOW, usegmt=True)


@pytest.mark.parametrize(
    ("value", "seconds", "note"),
    [
        (None, None, ""),
        ("0", 0.0, ""),
        ("2", 2.0, ""),
        (" 90 ", 90.0, ""),
        ("1.5", 1.5, ""),
        ("198300", 198_300.0, ""),
        ("99999999999", LONGEST, "7 days"),
        ("9" * 400, LONGEST, "7 days"),
        ("-1", None, 'its Retry-After "-1" says nothing'),
        ("abc", None, 'its Retry-After "abc" says nothing'),
        ("", None, "says nothing"),
        ("1e9", None, "says nothing"),
        ("٣", None, "says nothing"),
        (LATER, 90.0, ""),
        (EARLIER, 0.0, ""),
        ("Fri, 31 Feb 2026 25:00:00 GMT", None, "says nothing"),
    ],
)
def test_a_wait_is_read_or_reported(value: str | None, seconds: float | None, note: str) -> None:
    wait = retry_after.read(value, SENT, now=0.0)
    assert wait.seconds == seconds
    assert note in wait.note
    assert bool(wait.note) == bool(note)


def test_a_date_is_taken_by_the_providers_own_clock() -> None:
    fast = NOW.timestamp() + 3_600  # this machine is an hour ahead
    assert retry_after.read(LATER, SENT, fast).seconds == 90.0
    assert retry_after.read(LATER, None, NOW.timestamp() + 60).seconds == 30.0


@given(st.text(max_size=60) | st.integers().map(str) | st.floats().map(str), st.none() | st.text(max_size=40))
def test_no_header_can_break_or_outlast_the_limit(value: str, date: str | None) -> None:
    wait = retry_after.read(value, date, now=1_750_000_000.0)
    assert wait.seconds is None or 0 <= wait.seconds <= LONGEST


@pytest.mark.parametrize(
    ("header", "seconds"),
    [(None, None), ("0", 0.0), ("2", 2.0), ("198300", 198_300.0), ("-1", None), ("abc", None)],
)
async def test_a_429_is_never_unknown(header: str | None, seconds: float | None, rig: Rigs, upstream: Upstream) -> None:
    headers = {} if header is None else {"Retry-After": header}
    body = {"error": {"code": "insufficient_quota", "message": "You exceeded your current quota"}}
    upstream.script(Fault(status=429, headers=headers, body=body))
    outcome = await rig(upstream, "openai").call()
    assert isinstance(outcome, Refused)
    assert (outcome.kind, outcome.retry_after) == ("rate_limited", seconds)
    assert "You exceeded your current quota" in outcome.text
    assert upstream.paid_hits == 1


async def test_an_absurd_wait_is_shortened_and_said(rig: Rigs, upstream: Upstream) -> None:
    upstream.script(Fault(status=429, headers={"Retry-After": "99999999999"}))
    outcome = await rig(upstream, "openai").call()
    assert isinstance(outcome, Refused)
    assert outcome.retry_after == LONGEST
    assert '"99999999999", which is taken as 7 days' in outcome.text


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("openai", {"error": {"code": "content_policy_violation", "message": "Your words were rejected"}}),
        ("openai", {"error": {"code": "moderation_blocked", "message": "Your words were rejected"}}),
        ("openai", {"error": {"code": None, "type": "content_filter", "message": "Your words were rejected"}}),
        (
            "openai",
            {"error": {"code": "400", "message": "litellm.ContentPolicyViolationError: Your words were rejected"}},
        ),
        ("seedream", {"error": {"code": "InputTextSensitiveContentDetected", "message": "Your words were rejected"}}),
        (
            "seedream",
            {"error": {"code": "OutputImageSensitiveContentDetected.X", "message": "Your words were rejected"}},
        ),
        ("seedream", {"error": {"code": "InputImageRiskDetection", "message": "Your words were rejected"}}),
    ],
)
async def test_a_refusal_of_content_is_told_from_a_broken_request(
    kind: str, body: Any, rig: Rigs, upstream: Upstream
) -> None:
    upstream.script(Fault(status=400, body=body))
    outcome = await rig(upstream, kind).call()
    assert isinstance(outcome, Refused)
    assert outcome.kind == "content_policy"
    assert "Your words were rejected" in outcome.text
    assert upstream.paid_hits == 1


@pytest.mark.parametrize("kind", ["openai", "seedream"])
async def test_a_size_that_is_not_taken_is_an_invalid_request(kind: str, rig: Rigs, upstream: Upstream) -> None:
    outcome = await rig(upstream, kind).call({"prompt": "a lighthouse", "size": "9999x9999"})
    assert isinstance(outcome, Refused)
    assert outcome.kind == "invalid_request"
    assert outcome.text == "the size 9999x9999 is not supported (InvalidParameter) [status 400]"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("", "the API gave no reason [status 400]"),
        ({}, "{} [status 400]"),
        ("<html>Bad\n  Request</html>", "<html>Bad Request</html> [status 400]"),
        ({"detail": "no such model"}, "no such model [status 400]"),
    ],
)
async def test_a_refusal_without_words_still_says_something(
    body: Any, text: str, rig: Rigs, upstream: Upstream
) -> None:
    upstream.script(Fault(status=400, body=body))
    outcome = await rig(upstream, "openai").call()
    assert isinstance(outcome, Refused)
    assert (outcome.kind, outcome.text) == ("invalid_request", text)


async def test_the_words_of_an_api_are_bounded(rig: Rigs, upstream: Upstream) -> None:
    upstream.script(Fault(status=400, body={"error": {"message": "no " * 100_000, "code": "x" * 100_000}}))
    outcome = await rig(upstream, "openai").call()
    assert isinstance(outcome, Refused)
    assert len(outcome.text) < 1_500


async def test_an_api_that_says_200_to_everything_can_refuse_by_its_codes(rig: Rigs, upstream: Upstream) -> None:
    upstream.script(Fault(status=200, body={"code": "40301-Blocked", "message": "not this"}))
    changes: dict[str, Any] = {"errors": {"code": ["code"], "text": ["message"], "answered": True}}
    outcome = await rig(upstream, "studio", **changes).call()
    assert isinstance(outcome, Refused)
    assert (outcome.kind, outcome.cost) == ("content_policy", 0)
    assert isinstance(await rig(upstream, "studio", **changes).call(), Succeeded)


async def test_one_refusal_in_a_fanout_leaves_the_others_alone(rig: Rigs, upstream: Upstream) -> None:
    provider = rig(upstream, "openai")
    body = {"error": {"code": "moderation_blocked", "message": "not this"}}
    upstream.script(Fault(status=400, body=body), containing="branch 3")
    outcomes: dict[int, Outcome] = {}

    async def branch(number: int) -> None:
        outcomes[number] = await provider.call({"prompt": f"branch {number}"}, key=f"key-{number}")

    async with anyio.create_task_group() as group:
        for number in range(1, 7):
            group.start_soon(branch, number)
    assert isinstance(outcomes[3], Refused)
    assert all(isinstance(outcomes[number], Succeeded) for number in (1, 2, 4, 5, 6))
    assert (upstream.paid_hits, len(upstream.works)) == (6, 5)


@pytest.mark.parametrize("kind", ["openai", "seedream", "studio"])
async def test_a_call_that_is_given_up_was_sent_once_and_may_be_billed(
    kind: str, rig: Rigs, upstream: Upstream
) -> None:
    gate = upstream.hold(worked=True)
    outcome = await rig(upstream, kind).time_out(gate=gate)
    assert isinstance(outcome, Unknown)
    gate.release()
    assert (upstream.paid_hits, len(upstream.works)) == (1, 1)
    assert upstream.bill > 0
