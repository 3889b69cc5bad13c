"""What every provider must keep, as checks that a third party runs against its own.

    from tallystick.providers import conformance

    @pytest.mark.parametrize("check", conformance.CHECKS, ids=str)
    async def test_it_conforms(check):
        await check(conformance.Subject(make=lambda artifacts: create({}, artifacts)))

A check makes real calls, several of each capability: give a provider that costs money a recorded or a fake server.
A provider that is a pure function of payload and seed, as ``local`` is, passes those of ``DETERMINISTIC`` as well.
"""

import base64
import copy
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, get_args

import anyio
import msgspec

from tallystick.contract.errors import StoreCorruptError
from tallystick.providers import catalogue
from tallystick.providers.blobs import replace_blobs
from tallystick.providers.protocol import (
    API_VERSION,
    Absent,
    Artifacts,
    LooksUp,
    Outcome,
    Provider,
    Refused,
    Sample,
    Succeeded,
    Tracked,
    Unknown,
)

_PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGNoaGgAAAMEAYFL09IQAAAAAElFTkSuQmCC"
)
_CLIP = base64.b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAAAAAAALAAAAAABAAEAAAICRAEAOw==")
_ABREAST = 6


class ConformanceError(AssertionError):
    """A provider does not keep what the interface promises."""


class ExampleArtifacts:
    """The pictures and clips that the example payloads refer to."""

    def __init__(self) -> None:
        self._files = {hashlib.sha256(data).hexdigest(): data for data in (_PICTURE, _CLIP)}

    def get_file(self, sha256: str) -> bytes:
        """Return an example's bytes; see ``protocol.Artifacts``."""
        if sha256 not in self._files:
            raise StoreCorruptError(f"there is no artifact {sha256}")
        return self._files[sha256]


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """A provider under test: how it is made, and payloads to call it with in place of the examples."""

    make: Callable[[Artifacts], Provider]
    payloads: Mapping[str, Any] = {}

    def provider(self) -> Provider:
        """Make a fresh provider."""
        return self.make(ExampleArtifacts())

    def payload(self, capability: str) -> dict[str, Any]:
        """Return a payload of ``capability``, which the catalogue takes."""
        return copy.deepcopy(self.payloads.get(capability) or example(capability))


class Check(msgspec.Struct, frozen=True):
    """One check: call it with a subject; it raises ``ConformanceError`` when the subject fails."""

    name: str
    run: Callable[[Subject], Awaitable[None]]

    async def __call__(self, subject: Subject) -> None:
        """Run the check."""
        await self.run(subject)

    def __str__(self) -> str:
        """Return the name, for test reports."""
        return self.name


def example(capability: str) -> dict[str, Any]:
    """Return a payload that the catalogue takes, with artifacts that ``ExampleArtifacts`` has."""
    picture, clip = _reference(_PICTURE, "image/png"), _reference(_CLIP, "image/gif")
    examples: dict[str, dict[str, Any]] = {
        "storyboard.plan": {"brief": "A morning in a lighthouse", "shots": 3},
        "image.generate": {"prompt": "A lighthouse at dawn", "size": "256x256", "n": 1},
        "image.edit": {"image": picture, "prompt": "Warmer light"},
        "review.visual": {"image": picture, "criteria": "The lighthouse is in the frame"},
        "text.generate": {"prompt": "Describe a lighthouse", "max_tokens": 60},
        "speech.generate": {"text": "The lamp is lit."},
        "music.generate": {"prompt": "Calm sea", "duration_s": 2},
        "video.generate": {"prompt": "Waves below a lighthouse", "duration_s": 2},
        "video.edit": {"video": clip, "prompt": "Warmer light"},
    }
    return examples[capability]


async def _declares_itself(subject: Subject) -> None:
    provider = subject.provider()
    _must(provider.api_version == API_VERSION, f"api_version is {provider.api_version}, and must be {API_VERSION}")
    _must(bool(provider.name), "name is empty")
    _must(bool(provider.capabilities), "capabilities is empty")
    unknown = sorted(provider.capabilities - catalogue.CATALOGUE.keys())
    _must(not unknown, f"capabilities that the catalogue does not have: {', '.join(unknown)}")
    times = (provider.profile.dedupes_keys, provider.profile.absence_final_after)
    _must(all(time is None or time >= 0 for time in times), f"a time of the profile is negative: {times}")
    await provider.close()


async def _succeeds_as_the_catalogue_says(subject: Subject) -> None:
    provider = subject.provider()
    for capability in sorted(provider.capabilities):
        outcome = await _call(provider, capability, subject.payload(capability))
        _must(isinstance(outcome, Succeeded), f"{capability}: the example payload ended as {outcome}")
        assert isinstance(outcome, Succeeded)
        result = replace_blobs(outcome.result)
        try:
            catalogue.validate_result(capability, result)
            msgspec.json.encode([result, outcome.usage])
        except (catalogue.ResultRefusedError, TypeError) as error:
            raise ConformanceError(f"{capability}: {error}") from error
    await provider.close()


async def _states_costs_in_whole_micro_dollars(subject: Subject) -> None:
    provider = subject.provider()
    for capability in sorted(provider.capabilities):
        cost = (await _call(provider, capability, subject.payload(capability))).cost
        _must(cost is None or (type(cost) is int and cost >= 0), f"{capability}: the cost is {cost!r}")
    await provider.close()


async def _refuses_a_capability_it_does_not_have(subject: Subject) -> None:
    provider = subject.provider()
    outcome = await provider.call("lighthouse.paint", {"colour": "red"}, "key", Sample(seed=1))
    _must(
        isinstance(outcome, Refused) and outcome.kind == "invalid_request",
        f"an unknown capability ended as {outcome}, and must be refused as invalid_request",
    )
    await provider.close()


async def _leaves_the_payload_alone(subject: Subject) -> None:
    provider = subject.provider()
    for capability in sorted(provider.capabilities):
        payload = subject.payload(capability)
        before = copy.deepcopy(payload)
        await _call(provider, capability, payload)
        _must(payload == before, f"{capability}: the payload was changed to {payload}")
    await provider.close()


async def _works_on_after_a_cancelled_call(subject: Subject) -> None:
    provider = subject.provider()
    capability = min(provider.capabilities)
    payload = subject.payload(capability)
    await _call(provider, capability, payload)
    before = _tasks()
    async with anyio.create_task_group() as group:
        group.start_soon(_call, provider, capability, payload, 2)
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    left = [name for task, name in _tasks().items() if task not in before]
    _must(not left, f"a cancelled call left tasks behind: {', '.join(left)}")
    outcome = await _call(provider, capability, payload, 3)
    _must(isinstance(outcome, Succeeded), f"the call after a cancelled one ended as {outcome}")
    await provider.close()


async def _serves_calls_side_by_side(subject: Subject) -> None:
    provider = subject.provider()
    capability = min(provider.capabilities)
    outcomes = await _abreast(provider, capability, subject.payload(capability))
    failed = [outcome for outcome in outcomes if not isinstance(outcome, Succeeded)]
    _must(not failed, f"of {_ABREAST} calls side by side {len(failed)} failed, the first as {failed[:1]}")
    await provider.close()


async def _honours_the_key_it_says_it_honours(subject: Subject) -> None:
    provider = subject.provider()
    if provider.profile.dedupes_keys > 0:
        for capability in sorted(provider.capabilities):
            payload = subject.payload(capability)
            once, again = [await _call(provider, capability, payload) for _ in range(2)]
            _must(_same(once, again), f"{capability}: the same key gave two results, against the profile")
    await provider.close()


async def _looks_up_what_it_did(subject: Subject) -> None:
    provider = subject.provider()
    for capability in sorted(provider.capabilities if isinstance(provider, LooksUp) else ()):
        payload = subject.payload(capability)
        outcome = await _call(provider, capability, payload)
        assert isinstance(provider, LooksUp)
        found = await _lookup(provider, capability, payload, _key(capability, 1), getattr(outcome, "job", None))
        _must(
            isinstance(found, Unknown) or (isinstance(found, Succeeded) and _same(outcome, found)),
            f"{capability}: a call that was answered was looked up as {found}; it would be paid again or filed wrongly",
        )
        never = await _lookup(provider, capability, payload, _key(capability, -1), None)
        _must(
            isinstance(never, Absent | Unknown),
            f"{capability}: a call that was never made was looked up as {never}",
        )
    await provider.close()


async def _tells_its_job_before_the_end(subject: Subject) -> None:
    provider = subject.provider()
    for capability in sorted(provider.capabilities if isinstance(provider, Tracked) else ()):
        assert isinstance(provider, Tracked)
        told = _Told()
        payload = subject.payload(capability)
        outcome = await provider.call_tracked(capability, payload, _key(capability, 1), Sample(seed=1), told)
        job = getattr(outcome, "job", None)
        _must(job is None or job in told.jobs, f"{capability}: the job {job} was not told when it was known")
    await provider.close()


async def _closes_twice(subject: Subject) -> None:
    provider = subject.provider()
    await provider.close()
    try:
        await provider.close()
    except Exception as error:
        raise ConformanceError(f"the second close raised {error!r}") from error


async def _gives_the_same_for_the_same_sample(subject: Subject) -> None:
    first, second = subject.provider(), subject.provider()
    for capability in sorted(first.capabilities):
        payload = subject.payload(capability)
        once, again = [await _call(provider, capability, payload) for provider in (first, second)]
        _must(_same(once, again), f"{capability}: one payload and seed gave two results")
    await first.close()
    await second.close()


async def _draws_independent_samples(subject: Subject) -> None:
    provider = subject.provider()
    for capability in sorted(provider.capabilities):
        if catalogue.spec(capability).side_effecting:
            payload = subject.payload(capability)
            once, again = [await _call(provider, capability, payload, seed) for seed in (1, 2)]
            _must(not _same(once, again), f"{capability}: two seeds gave one result")
    await provider.close()


async def _is_the_same_side_by_side(subject: Subject) -> None:
    provider = subject.provider()
    for capability in sorted(provider.capabilities):
        payload = subject.payload(capability)
        in_turn = [await _call(provider, capability, payload, seed) for seed in range(_ABREAST)]
        abreast = await _abreast(provider, capability, payload)
        _must(all(map(_same, in_turn, abreast)), f"{capability}: calls side by side gave other results than in turn")
    await provider.close()


CHECKS = (
    Check("declares_itself", _declares_itself),
    Check("succeeds_as_the_catalogue_says", _succeeds_as_the_catalogue_says),
    Check("states_costs_in_whole_micro_dollars", _states_costs_in_whole_micro_dollars),
    Check("refuses_a_capability_it_does_not_have", _refuses_a_capability_it_does_not_have),
    Check("leaves_the_payload_alone", _leaves_the_payload_alone),
    Check("works_on_after_a_cancelled_call", _works_on_after_a_cancelled_call),
    Check("serves_calls_side_by_side", _serves_calls_side_by_side),
    Check("honours_the_key_it_says_it_honours", _honours_the_key_it_says_it_honours),
    Check("looks_up_what_it_did", _looks_up_what_it_did),
    Check("tells_its_job_before_the_end", _tells_its_job_before_the_end),
    Check("closes_twice", _closes_twice),
)

DETERMINISTIC = (
    Check("gives_the_same_for_the_same_sample", _gives_the_same_for_the_same_sample),
    Check("draws_independent_samples", _draws_independent_samples),
    Check("is_the_same_side_by_side", _is_the_same_side_by_side),
)


async def _call(provider: Provider, capability: str, payload: Mapping[str, Any], seed: int = 1) -> Outcome:
    """Call, and hold the answer to the closed set of outcomes: nothing else, and no exception."""
    try:
        outcome = await provider.call(capability, payload, _key(capability, seed), Sample(seed=seed))
    except Exception as error:
        raise ConformanceError(f"{capability}: raised {error!r} instead of saying how the call ended") from error
    _must(isinstance(outcome, get_args(Outcome)), f"{capability}: answered {outcome!r}, which is no outcome")
    return outcome


async def _lookup(
    provider: LooksUp, capability: str, payload: Mapping[str, Any], key: str, job: str | None
) -> Outcome | Absent:
    try:
        return await provider.lookup(capability, payload, key, job)
    except Exception as error:
        raise ConformanceError(f"{capability}: the look-up raised {error!r} instead of saying what it found") from error


class _Told:
    """A tracker that remembers the jobs it was told of."""

    def __init__(self) -> None:
        self.jobs: list[str] = []

    async def submitted(self, job: str) -> None:
        self.jobs.append(job)

    async def answered(self, raw: Any, cost: int | None) -> None:
        """Forget it: what was answered shows in the outcome."""


def _key(capability: str, seed: int) -> str:
    return f"key-{capability}-{seed}"


async def _abreast(provider: Provider, capability: str, payload: Mapping[str, Any]) -> list[Outcome]:
    outcomes: dict[int, Outcome] = {}

    async def one(seed: int) -> None:
        outcomes[seed] = await _call(provider, capability, payload, seed)

    async with anyio.create_task_group() as group:
        for seed in range(_ABREAST):
            group.start_soon(one, seed)
    return [outcomes[seed] for seed in range(_ABREAST)]


def _same(one: Outcome, other: Outcome) -> bool:
    return (
        isinstance(one, Succeeded)
        and isinstance(other, Succeeded)
        and replace_blobs(one.result) == replace_blobs(other.result)
    )


def _tasks() -> dict[int, str]:
    return {task.id: task.name or str(task.id) for task in anyio.get_running_tasks()}


def _reference(data: bytes, media_type: str) -> dict[str, Any]:
    return {"$artifact": f"sha256:{hashlib.sha256(data).hexdigest()}", "media_type": media_type, "bytes": len(data)}


def _must(holds: bool, message: str) -> None:
    if not holds:
        raise ConformanceError(message)
