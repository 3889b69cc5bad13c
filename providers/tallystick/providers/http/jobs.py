"""Waiting for a job: asking after it, ever more seldom, until it is done, has failed, or the time is over."""

from typing import Any, Literal, TypeAlias

import msgspec

from tallystick.kernel import Clock
from tallystick.providers.http import paths, retry_after
from tallystick.providers.http.exchange import Answer, Exchange
from tallystick.providers.http.operations import Operation
from tallystick.providers.http.paths import MISSING
from tallystick.providers.http.settings import Job

State: TypeAlias = Literal["done", "failed", "pending"]

_SLOWER = 1.5
_NOT_FOUND, _TOO_MANY = 404, 429
# Statuses of an answer to a question that may be asked again: the job goes on whatever they say.
_PASSING = frozenset({408, 409, 425, _TOO_MANY})


class Ended(msgspec.Struct, frozen=True):
    """A job that has an end: the answer that says so, parsed, and whether it is done or has failed."""

    state: State
    answer: Answer
    data: Any


class Vanished(msgspec.Struct, frozen=True):
    """The API knows no such job."""


class Unheard(msgspec.Struct, frozen=True):
    """Nobody knows how the job ended, or whether it has."""

    reason: str


def state(job: Job, data: Any) -> State:
    """Return the state that an answer tells of; one that the profile does not name is waited out."""
    found = paths.parse(job.status).find(data)
    if found in job.done:
        return "done"
    return "failed" if found in job.failed else "pending"


def identifier(job: Job, data: Any) -> str | None:
    """Return the id of the job that an answer names, or None."""
    found = paths.parse(job.id).find(data)
    if isinstance(found, bool) or not isinstance(found, str | int) or found == "":
        return None
    return str(found)


async def wait(
    exchange: Exchange, operation: Operation, job: str, clock: Clock, *, started: bool
) -> Ended | Vanished | Unheard:
    """Ask after a job until it has an end. Questions are free: what breaks on the way is asked again.

    Args:
        exchange: what to ask through.
        operation: whose job it is; its settings say how often and how long.
        job: the provider's id.
        clock: whose time counts.
        started: whether the job was submitted just now. Then an API that does not know it yet is asked again, and the
            first question can wait.
    """
    settings = operation.settings.job
    assert settings is not None
    until = clock.monotonic() + settings.deadline
    pause = settings.interval
    said = "it is not done"
    if started:
        await clock.sleep(pause)
    while True:
        asked = 0.0
        answer = await exchange.send(operation.job_request(job), once=False)
        if isinstance(answer, Answer):
            if answer.status == _NOT_FOUND and not started:
                return Vanished()
            if not _may_pass(answer.status):
                return Unheard(f"asking after job {job} was answered with status {answer.status}")
            data = answer.parsed()
            if answer.status < 300 and not answer.cut:  # noqa: PLR2004 - the statuses of success
                known = state(settings, data)
                if known != "pending":
                    return Ended(known, answer, data)
            said = "it is not done" if answer.status < 300 else f"the last status was {answer.status}"  # noqa: PLR2004 - as above
            header = retry_after.read(answer.headers.get("retry-after"), answer.headers.get("date"), clock.now())
            asked = header.seconds or 0.0
        else:
            said = answer.reason
        pause = min(max(pause * _SLOWER, asked), max(settings.max_interval, asked))
        if clock.monotonic() + pause > until:
            return Unheard(f"job {job} was waited for {settings.deadline:g} s: {said}")
        await clock.sleep(pause)


def _may_pass(status: int) -> bool:
    return status < 300 or status == _NOT_FOUND or status in _PASSING or status >= 500  # noqa: PLR2004 - the classes of statuses
