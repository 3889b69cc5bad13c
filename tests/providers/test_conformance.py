"""The kit must catch what it says it catches: each broken provider fails exactly the checks it should."""

import asyncio
import itertools
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from scripted_provider import Hit, ScriptedProvider
from tallystick.providers import catalogue, conformance
from tallystick.providers.protocol import Absent, Outcome, Profile, Refused, Sample, Succeeded, Tracker


@pytest.mark.parametrize("check", [*conformance.CHECKS, *conformance.DETERMINISTIC], ids=str)
async def test_the_scripted_provider_conforms(check: conformance.Check) -> None:
    await check(conformance.Subject(make=lambda _artifacts: ScriptedProvider()))


@pytest.mark.parametrize("capability", catalogue.CATALOGUE)
def test_the_examples_fit_the_catalogue(capability: str) -> None:
    catalogue.validate_payload(capability, conformance.example(capability))


class OfAnotherVersion(ScriptedProvider):
    api_version = 2


class OfferingMore(ScriptedProvider):
    def __init__(self) -> None:
        super().__init__()
        self.capabilities = frozenset({"lighthouse.paint"})


class Shapeless(ScriptedProvider):
    async def call(self, capability: str, payload: Mapping[str, Any], key: str, sample: Sample) -> Outcome:
        outcome = await super().call(capability, payload, key, sample)
        return Succeeded(result={}, cost=0) if isinstance(outcome, Succeeded) else outcome


class Raising(ScriptedProvider):
    def _answer(self, hit: Hit) -> Outcome:
        raise RuntimeError(f"{hit.capability} is overloaded")


class Chatty(ScriptedProvider):
    def _answer(self, hit: Hit) -> Outcome:
        return f"{hit.capability} done"  # type: ignore[return-value]  # the fault that the kit must find


class Guessing(ScriptedProvider):
    """Prices in dollars."""

    def __init__(self) -> None:
        super().__init__(cost=0.02)  # type: ignore[arg-type]  # the fault that the kit must find


class Eager(ScriptedProvider):
    """Serves capabilities that do not exist."""

    async def call(self, capability: str, payload: Mapping[str, Any], key: str, sample: Sample) -> Outcome:
        outcome = await super().call(capability, payload, key, sample)
        return Succeeded(result={"ok": True}) if isinstance(outcome, Refused) else outcome


class Meddling(ScriptedProvider):
    async def call(self, capability: str, payload: Mapping[str, Any], key: str, sample: Sample) -> Outcome:
        outcome = await super().call(capability, payload, key, sample)
        payload["model"] = "m-1"  # type: ignore[index]  # the fault that the kit must find
        return outcome


class Leaking(ScriptedProvider):
    """Leaves a task of its own behind when a call is cut off."""

    left: list[asyncio.Task[bool]]

    def __init__(self) -> None:
        super().__init__()
        self.left = []

    async def call(self, capability: str, payload: Mapping[str, Any], key: str, sample: Sample) -> Outcome:
        if sample.seed == 2:
            self.left.append(asyncio.ensure_future(asyncio.Event().wait()))
            await asyncio.Event().wait()
        return await super().call(capability, payload, key, sample)


class OneAtATime(ScriptedProvider):
    async def call(self, capability: str, payload: Mapping[str, Any], key: str, sample: Sample) -> Outcome:
        if self.in_flight:
            return Refused(kind="rate_limited", text="one at a time")
        gate = self.hold()
        asyncio.get_running_loop().call_soon(gate.release)
        return await super().call(capability, payload, key, sample)


class Promising(ScriptedProvider):
    """Says that it honours keys, and does not."""

    def __init__(self) -> None:
        super().__init__(profile=Profile(dedupes_keys=60))

    async def call(self, capability: str, payload: Mapping[str, Any], key: str, sample: Sample) -> Outcome:
        return await super().call(capability, payload, key, msgspec.structs.replace(sample, seed=len(self.hits)))


class Moody(ScriptedProvider):
    """Draws from a well of its own, whatever the seed."""

    draws = itertools.count()

    async def call(self, capability: str, payload: Mapping[str, Any], key: str, sample: Sample) -> Outcome:
        return await super().call(capability, payload, key, msgspec.structs.replace(sample, seed=next(self.draws)))


class Forgetful(ScriptedProvider):
    """Says of everything that it was never asked for."""

    async def lookup(self, *_asked: Any) -> Absent:
        return Absent(text="never heard of it")


class Inventive(ScriptedProvider):
    """Finds what was never asked for."""

    async def lookup(self, capability: str, payload: Mapping[str, Any], key: str, *_job: Any) -> Outcome:
        return await super().call(capability, payload, key, Sample(seed=1))


class Tightlipped(ScriptedProvider):
    """Keeps the job to itself until the end."""

    async def call_tracked(
        self, capability: str, payload: Mapping[str, Any], key: str, sample: Sample, *_tracker: Tracker
    ) -> Outcome:
        outcome = await super().call(capability, payload, key, sample)
        return msgspec.structs.replace(outcome, job="job-1") if isinstance(outcome, Succeeded) else outcome


class Fragile(ScriptedProvider):
    async def close(self) -> None:
        await super().close()
        if self.closed > 1:
            raise RuntimeError("already closed")


class Monotonous(ScriptedProvider):
    async def call(self, capability: str, payload: Mapping[str, Any], key: str, sample: Sample) -> Outcome:
        return await super().call(capability, payload, key, msgspec.structs.replace(sample, seed=0))


FAULTS = [
    ("declares_itself", OfAnotherVersion),
    ("declares_itself", OfferingMore),
    ("succeeds_as_the_catalogue_says", Shapeless),
    ("succeeds_as_the_catalogue_says", Raising),
    ("succeeds_as_the_catalogue_says", Chatty),
    ("states_costs_in_whole_micro_dollars", Guessing),
    ("refuses_a_capability_it_does_not_have", Eager),
    ("leaves_the_payload_alone", Meddling),
    ("works_on_after_a_cancelled_call", Leaking),
    ("serves_calls_side_by_side", OneAtATime),
    ("honours_the_key_it_says_it_honours", Promising),
    ("looks_up_what_it_did", Forgetful),
    ("looks_up_what_it_did", Inventive),
    ("tells_its_job_before_the_end", Tightlipped),
    ("closes_twice", Fragile),
    ("gives_the_same_for_the_same_sample", Moody),
    ("draws_independent_samples", Monotonous),
    ("is_the_same_side_by_side", Moody),
]


@pytest.mark.parametrize(("name", "broken"), FAULTS)
async def test_a_broken_provider_is_found_out(name: str, broken: type[ScriptedProvider]) -> None:
    made: list[ScriptedProvider] = []

    def make(_artifacts: Any) -> ScriptedProvider:
        made.append(broken())
        return made[-1]

    check = next(one for one in (*conformance.CHECKS, *conformance.DETERMINISTIC) if one.name == name)
    with pytest.raises(conformance.ConformanceError):
        await check(conformance.Subject(make=make))
    for provider in made:
        for task in getattr(provider, "left", ()):
            task.cancel()


def test_every_check_has_a_provider_that_fails_it() -> None:
    assert {name for name, _ in FAULTS} == {check.name for check in (*conformance.CHECKS, *conformance.DETERMINISTIC)}
