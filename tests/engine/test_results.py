"""What a call came to is kept whole, however large, and a replay hands back the same bytes."""

from typing import Any

import pytest

from engine_witness import Witness, assert_diverges, assert_standing, witnessed
from tallystick.engine.results import INLINE_LIMIT
from tallystick.providers.protocol import Blob, Succeeded, Unusable
from tallystick.sandbox.frames import MAX_FRAME

TEXT = """
async def orchestrate(ctx, args):
    text = await ctx.run("text.generate", {"prompt": "long"})
    image = await ctx.run("image.generate", {"prompt": "a mug"})
    return [len(text["text"]), text["text"][-3:], image["width"]]
"""
RETURNS_IT = """
async def orchestrate(ctx, args):
    text = await ctx.run("text.generate", {"prompt": "long"})
    return text["text"]
"""
PICTURES = """
async def orchestrate(ctx, args):
    picture = await ctx.run("image.generate", {"prompt": "a mug", "n": 2})
    edited = await ctx.run("image.edit", {"image": picture["images"][0], "prompt": "warmer"})
    return [*picture["images"], *edited["images"]]
"""
TAKES = """
async def orchestrate(ctx, args):
    first = await ctx.run("image.generate", {"prompt": "a mug"})
    second = await ctx.run("image.generate", {"prompt": "a mug"}, take="second")
    third = await ctx.run("image.generate", {"prompt": "a mug"}, take="third")
    return [one["images"][0]["$artifact"] for one in [first, second, third]]
"""


def long(size: int) -> dict[str, Any]:
    return {"text": "ä" * ((size - 6) // 2) + "end", "data": None}


@pytest.mark.parametrize("size", [1_000, INLINE_LIMIT + 1, 1 << 20, 3 << 20])
async def test_a_large_result_is_kept_and_replays_whole(size: int) -> None:
    witness = Witness(world={})
    witness.script("text.generate", 1, Succeeded(result=long(size), cost=9))
    witness.fail("image.generate", 1, "unavailable")
    async with witnessed(witness) as (engine, _):
        failed = await engine.run(TEXT)
        assert (failed.status, failed.calls.executed) == ("failed", 1)
        (record,) = (await engine.history(failed.run)).records.values()
        assert (record.result.file is None) == (size < INLINE_LIMIT)
        resumed = await engine.resume(failed.run)
        assert resumed.result == [len(long(size)["text"]), "end", 1024]
        assert (resumed.calls.replayed, witness.count()) == (1, 3)
        await assert_standing(engine, failed.run)


async def test_a_script_may_return_a_large_result() -> None:
    witness = Witness()
    witness.script("text.generate", 1, Succeeded(result=long(2 << 20), cost=9))
    async with witnessed(witness) as (engine, _):
        report = await engine.run(RETURNS_IT)
        assert (report.status, report.result) == ("completed", long(2 << 20)["text"])
        assert (await engine.resume(report.run)).result == report.result
        await assert_standing(engine, report.run)
    async with witnessed(witness) as (engine, _):
        assert (await engine.host.service.report(report.run)).result == report.result


async def test_a_result_that_no_frame_can_carry_is_committed_and_never_paid_again() -> None:
    witness = Witness()
    witness.script("text.generate", 1, Succeeded(result=long(MAX_FRAME + 100), cost=9))
    async with witnessed(witness) as (engine, _):
        report = await engine.run(TEXT)
        assert (report.status, report.reason, report.calls.executed) == ("failed", "TS-R008", 1)
        again = await engine.resume(report.run)
        assert (again.reason, again.calls.replayed, witness.count()) == ("TS-R008", 1, 1)
        (record,) = (await engine.history(report.run)).records.values()
        assert engine.host.service.keeper.load(record.result) == long(MAX_FRAME + 100)
        await assert_standing(engine, report.run)


async def test_an_unusable_answer_is_kept_whole() -> None:
    witness = Witness()
    raw = {"junk": "x" * (2 << 20)}
    witness.script("text.generate", 1, Unusable(raw=raw, text="junk", cost=9))
    async with witnessed(witness) as (engine, _):
        report = await engine.run(TEXT)
        ended = (await engine.history(report.run)).attempts[1].ended
        assert ended is not None
        assert ended.raw is not None
        assert engine.host.service.keeper.load(ended.raw) == raw


async def test_an_answer_of_another_shape_is_unusable_and_says_of_what() -> None:
    witness = Witness()
    witness.script("image.generate", 1, Succeeded(result={"pictures": []}, cost=9))
    async with witnessed(witness) as (engine, _):
        report = await engine.run(PICTURES)
        (attempt,) = await engine.attempts(report.run)
        assert (attempt.state, attempt.cost_usd) == ("unusable", 0.000009)
        assert attempt.text.startswith("the provider's answer is no result of image.generate: ")


async def test_artifacts_replay_as_the_same_references_to_the_same_bytes() -> None:
    witness = Witness()
    async with witnessed(witness) as (engine, _):
        first = await engine.run(PICTURES)
    async with witnessed(witness) as (engine, _):
        again = await engine.resume(first.run)
        assert (again.status, again.result, witness.count()) == ("completed", first.result, 2)
        assert len({one["$artifact"] for one in first.result}) == 3
        store = engine.host.service.journal.store
        for one in first.result:
            data = store.get_file(one["$artifact"].removeprefix("sha256:"))
            assert (len(data), one["media_type"]) == (one["bytes"], "image/png")
        kept = [
            file.sha256 for record in (await engine.history(first.run)).records.values() for file in record.artifacts
        ]
        assert [f"sha256:{sha}" for sha in kept] == [one["$artifact"] for one in first.result]
        assert witness.hits[1].payload["image"] == first.result[0]
        await assert_standing(engine, first.run)


async def test_equal_bytes_are_one_file() -> None:
    picture = {"images": [Blob(b"the same", "image/png")] * 2, "width": 1, "height": 1}
    witness = Witness()
    witness.script("image.generate", 1, Succeeded(result=picture, cost=1))
    async with witnessed(witness) as (engine, _):
        report = await engine.run(PICTURES)
        assert report.result[0] == report.result[1]
        assert len(witness.disk.files) == 2


async def test_a_take_is_another_sample_and_replays_as_itself() -> None:
    async with witnessed() as (engine, witness):
        first = await engine.run(TAKES)
        assert len(set(first.result)) == 3
        assert [record.take for record in (await engine.history(first.run)).records.values()] == [
            None,
            "second",
            "third",
        ]
        again = await engine.resume(first.run)
        assert (again.result, again.calls.replayed, witness.count()) == (first.result, 3, 3)
        await assert_standing(engine, first.run)


async def test_another_take_at_a_committed_identity_is_stopped() -> None:
    named = TAKES.replace("async def orchestrate", 'NAME = "second"\n\n\nasync def orchestrate').replace(
        'take="second"', "take=NAME"
    )
    async with witnessed() as (engine, witness):
        run = (await engine.run(named)).run
        other = named.replace('NAME = "second"', 'NAME = "another"')
        await assert_diverges(engine, run, other, "take: 'second' -> 'another'")
        assert witness.count() == 3


async def test_a_result_whose_file_is_gone_stops_the_run_and_is_not_paid_again() -> None:
    witness = Witness()
    witness.script("text.generate", 1, Succeeded(result=long(INLINE_LIMIT * 2), cost=9))
    async with witnessed(witness) as (engine, _):
        run = (await engine.run(TEXT)).run
    witness.disk.files.clear()
    async with witnessed(witness) as (engine, _):
        stopped = await engine.resume(run)
        assert (stopped.status, stopped.reason, stopped.exit_code, witness.count()) == ("stopped", "TS-S003", 7, 2)
        assert stopped.error is not None
        assert "cannot be read" in stopped.error.message
        await assert_standing(engine, run)
        quick = await engine.run(TEXT)
        assert quick.status == "completed"


@pytest.mark.parametrize("value", [None, True, 0, -0.0, "", [], {}, {"nested": [1, {"deep": None}]}])
async def test_whatever_a_script_returns_is_its_result(value: Any) -> None:
    async with witnessed() as (engine, _):
        report = await engine.run("async def orchestrate(ctx, args):\n    return args\n", value)
        assert (report.status, repr(report.result)) == ("completed", repr(value))


async def test_what_is_no_data_is_no_result() -> None:
    async with witnessed() as (engine, witness):
        report = await engine.run(
            TEXT.replace('return [len(text["text"]), text["text"][-3:], image["width"]]', "return {*text}")
        )
        assert (report.status, report.result, report.calls.executed) == ("failed", None, 2)
        assert report.error is not None
        assert "sorted(" in report.error.message
        resumed = await engine.resume(report.run, TEXT)
        assert (resumed.status, resumed.calls.replayed, witness.count()) == ("completed", 2, 2)


async def test_prints_are_kept_with_the_run() -> None:
    script = "async def orchestrate(ctx, args):\n    print('one', 2)\n    ctx.log('three')\n    return 1\n"
    async with witnessed() as (engine, _):
        report = await engine.run(script)
        assert report.logs == "one 2\nthree"
