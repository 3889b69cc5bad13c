"""Waiting for a job: asking after it, ever more seldom, until it is done, has failed, or the time is over."""

from typing import Any, Literal, TypeAlias

import msgspec

from tallystick.kernel import Clock
from tallystick.providers.http import paths, retry_after
from tallystick.providers.http.exchange import Answer, Exchange
from tallystick.providers.http.operations import Operation
from tallystick.providers.http.settings import Job

State: TypeAlias = Literal["done", "failed", "pending"]

_SLOWER = 1.5
_SUCCESS, _FAULTS = range(200, 300), range(500, 600)
_NOT_FOUND = 404
# What may be said to a question that can be asked again: the job goes on whatever these are.
_PASSING = frozenset({408, 409, 425, 429, *_FAULTS})


class Ended(msgspec.Struct, frozen=True):
    """A job that has an end: whether it is done or has failed, and the answer that says so, with its data."""

    state: State
    answer: Answer
    data: Any


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


async def wait(exchange: Exchange, operation: Operation, job: str, clock: Clock, *, fresh: bool) -> Ended | Unheard:
    """Ask after a job until it has an end. Questions are free: what breaks on the way is asked again.

    Args:
        exchange: what to ask through.
        operation: whose job it is; its settings say how often and how long.
        job: the provider's id.
        clock: whose time counts.
        fresh: whether the job was submitted just now: the first question can wait, and an API that does not know the
            job yet is asked again. It was accepted, so one that knows it no longer has not said that it was not done.
    """
    settings = operation.settings.job
    assert settings is not None
    begun = clock.monotonic()
    pause = settings.interval
    if fresh:
        await clock.sleep(pause)
    while True:
        answer = await exchange.send(operation.job_request(job), once=False)
        least = 0.0
        if isinstance(answer, Answer):
            if answer.status in _SUCCESS and not answer.cut:
                data = answer.parsed()
                known = state(settings, data)
                if known != "pending":
                    return Ended(known, answer, data)
                said = "it is not done"
            elif answer.status in _SUCCESS or answer.status in _PASSING or (answer.status == _NOT_FOUND and fresh):
                said = f"the last question was answered with status {answer.status}"
            else:
                return Unheard(f"job {job} was asked after, and the answer had status {answer.status}")
            header = retry_after.read(answer.headers.get("retry-after"), answer.headers.get("date"), clock.now())
            least = header.seconds or 0.0
        else:
            said = answer.reason
        pause = max(min(pause * _SLOWER, settings.max_interval), least)
        waited = clock.monotonic() - begun
        if waited + pause > settings.deadline:
            return Unheard(f"job {job} has no known end after {waited:.0f} s: {said}")
        await clock.sleep(pause)
