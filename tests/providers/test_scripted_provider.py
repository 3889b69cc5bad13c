"""The oracle of other tests is itself tested: it counts what it was asked and answers on cue."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from scripted_provider import ScriptedProvider, create, recorded
from tallystick.providers.blobs import replace_blobs
from tallystick.providers.protocol import Outcome, Refused, Sample, Succeeded, Unknown

SHOTS = [{"prompt": f"shot {number}"} for number in range(6)]


async def call(
    provider: ScriptedProvider, payload: dict[str, Any], seed: int = 1, name: str = "image.generate"
) -> Outcome:
    return await provider.call(name, payload, f"key {seed}", Sample(seed=seed))


async def test_every_hit_is_counted_with_what_was_asked() -> None:
    provider = ScriptedProvider()
    await call(provider, SHOTS[0], 7)
    await call(provider, SHOTS[1], 8)
    await call(provider, {"prompt": "p"}, 9, "text.generate")
    assert [(hit.capability, hit.payload["prompt"], hit.key, hit.seed, hit.nth) for hit in provider.hits] == [
        ("image.generate", "shot 0", "key 7", 7, 1),
        ("image.generate", "shot 1", "key 8", 8, 2),
        ("text.generate", "p", "key 9", 9, 1),
    ]
    assert (provider.count(), provider.count("image.generate"), provider.count("video.edit")) == (3, 2, 0)


async def test_a_scripted_failure_strikes_once_and_is_counted() -> None:
    provider = ScriptedProvider()
    provider.fail("image.generate", 2, "invalid_request", "no such size")
    outcomes = [await call(provider, shot) for shot in SHOTS[:3]]
    assert [type(outcome) for outcome in outcomes] == [Succeeded, Refused, Succeeded]
    assert outcomes[1] == Refused(kind="invalid_request", text="no such size")
    assert provider.count() == 3


async def test_calm_forgets_the_script() -> None:
    provider = ScriptedProvider()
    provider.fail("image.generate", 1, "unavailable")
    provider.calm()
    assert isinstance(await call(provider, SHOTS[0]), Succeeded)


async def test_a_gate_holds_what_matches_until_it_is_opened() -> None:
    provider = ScriptedProvider()
    gate = provider.hold("image.generate", containing="shot 1")
    async with anyio.create_task_group() as group:
        for shot in SHOTS[:3]:
            group.start_soon(call, provider, shot)
        await gate.reached()
        await anyio.wait_all_tasks_blocked()
        assert [hit.payload["prompt"] for hit in provider.answered] == ["shot 0", "shot 2"]
        assert (provider.in_flight, provider.most_at_once) == (1, 2)
        gate.release()
    assert [hit.payload["prompt"] for hit in provider.answered] == ["shot 0", "shot 2", "shot 1"]
    assert provider.in_flight == 0
    await call(provider, SHOTS[1])


async def order_of_answers(shuffle: int | None) -> list[str]:
    provider = ScriptedProvider(shuffle=shuffle)
    async with anyio.create_task_group() as group:
        for shot in SHOTS:
            group.start_soon(call, provider, shot)
    return [hit.payload["prompt"] for hit in provider.answered]


async def test_a_shuffle_decides_the_order_of_answers() -> None:
    in_order = [shot["prompt"] for shot in SHOTS]
    assert await order_of_answers(None) == in_order
    orders = [tuple(await order_of_answers(seed)) for seed in range(10)]
    assert orders == [tuple(await order_of_answers(seed)) for seed in range(10)]
    assert len(set(orders)) > 5
    assert all(sorted(order) == in_order for order in orders)


async def test_a_cut_off_call_is_in_flight_no_more_but_was_hit() -> None:
    provider = ScriptedProvider(hang_after=1)
    await call(provider, SHOTS[0])
    async with anyio.create_task_group() as group:
        group.start_soon(call, provider, SHOTS[1])
        await anyio.wait_all_tasks_blocked()
        assert provider.in_flight == 1
        group.cancel_scope.cancel()
    assert (provider.in_flight, provider.count(), len(provider.cancelled)) == (0, 2, 1)


async def test_hits_are_on_disk_before_the_answer_and_after_a_restart(tmp_path: Path) -> None:
    record = tmp_path / "hits"
    assert recorded(record) == []
    provider = create({"record": str(record), "hang_after": 0}, artifacts=None)  # type: ignore[arg-type]  # reads none
    async with anyio.create_task_group() as group:
        group.start_soon(call, provider, SHOTS[0])
        await anyio.wait_all_tasks_blocked()
        assert recorded(record) == provider.hits
        group.cancel_scope.cancel()
    await call(create({"record": str(record)}, artifacts=None), SHOTS[1])  # type: ignore[arg-type]  # reads none
    assert [hit.payload["prompt"] for hit in recorded(record)] == ["shot 0", "shot 1"]


@pytest.fixture
def task(tmp_path: Path) -> Path:
    world = {
        "text.generate": [
            {"when": '"temperature": 0.2', "result": {"text": "cold", "data": None}},
            {"when": "naïve", "result": {"text": "accents as they are", "data": None}},
            {"result": {"text": "any", "data": None}},
        ],
        "review.visual": [{"when": "hands", "result": {"ok": False, "score": 0.4, "notes": "six fingers"}}],
    }
    failure = {
        "fail_at": {"capability": "image.generate", "nth_execution": 2, "identity": "orchestrate/#1 [1] 0"},
        "error": {"kind": "timeout", "text": "no answer within 300 s"},
        "earlier": [
            {
                "fail_at": {"capability": "text.generate", "nth_execution": 1, "identity": "orchestrate/#2 [] 0"},
                "error": {"kind": "rate_limited", "text": "slow down"},
            }
        ],
    }
    (tmp_path / "world.json").write_text(json.dumps(world), encoding="utf-8")
    (tmp_path / "failure.json").write_text(json.dumps(failure), encoding="utf-8")
    return tmp_path


async def test_a_corpus_task_is_served_from_its_world(task: Path) -> None:
    provider = ScriptedProvider.for_task(task)
    provider.calm()

    async def answer(name: str, payload: dict[str, Any]) -> Any:
        outcome = await call(provider, payload, 1, name)
        assert isinstance(outcome, Succeeded)
        return outcome.result

    assert (await answer("text.generate", {"prompt": "a", "temperature": 0.2}))["text"] == "cold"
    assert (await answer("text.generate", {"prompt": "naïve"}))["text"] == "accents as they are"
    assert (await answer("text.generate", {"prompt": "b"}))["text"] == "any"
    assert (await answer("review.visual", {"criteria": "hands"}))["notes"] == "six fingers"
    assert await answer("review.visual", {"criteria": "sky"}) == {"ok": True, "score": 0.9, "notes": "fine"}


async def test_a_corpus_task_fails_its_first_launch_as_its_failure_says(task: Path) -> None:
    provider = ScriptedProvider.for_task(task)
    assert isinstance(await call(provider, SHOTS[0]), Succeeded)
    assert await call(provider, SHOTS[1]) == Unknown(reason="no answer within 300 s")
    assert await call(provider, {"prompt": "t"}, 1, "text.generate") == Refused(kind="rate_limited", text="slow down")
    assert isinstance(await call(provider, SHOTS[2]), Succeeded)


async def test_a_task_whose_script_fails_by_itself_injects_nothing(task: Path) -> None:
    (task / "failure.json").write_text(
        '{"fail_at": null, "error": {"kind": "script", "text": "KeyError"}}', encoding="utf-8"
    )
    provider = ScriptedProvider.for_task(task)
    assert all([isinstance(await call(provider, shot), Succeeded) for shot in SHOTS])


async def test_pictures_differ_by_capability_payload_and_seed() -> None:
    provider = ScriptedProvider()
    picture = {"$artifact": f"sha256:{'0' * 64}", "media_type": "image/png", "bytes": 1}
    cases: list[tuple[str, dict[str, Any], int]] = [
        ("image.generate", SHOTS[0], 1),
        ("image.generate", SHOTS[0], 2),
        ("image.generate", SHOTS[1], 1),
        ("image.edit", {**SHOTS[0], "image": picture}, 1),
    ]
    results = []
    for name, payload, seed in cases:
        outcome = await call(provider, payload, seed, name)
        again = await call(ScriptedProvider(), payload, seed, name)
        assert isinstance(outcome, Succeeded)
        assert outcome == again
        results.append(replace_blobs(outcome.result)["images"][0]["$artifact"])
    assert len(set(results)) == 4
