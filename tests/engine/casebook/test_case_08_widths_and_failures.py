"""Casebook 8: concurrency 1, an empty list, or all branches failing must not break a fanout."""

import pytest

from engine_witness import Witness, assert_standing, witnessed
from tallystick.contract.payload import canonical
from tallystick.providers.protocol import Refused

SIX = """
async def orchestrate(ctx, args):
    async def shot(number):
        image = await ctx.run("image.generate", {"prompt": f"shot {number}"})
        review = await ctx.run("review.visual", {"image": image["images"][0], "criteria": f"shot {number}"})
        return [number, image["images"][0]["$artifact"], review["score"]]

    return await ctx.parallel([shot(number) for number in range(6)])
"""
EMPTY = """
async def orchestrate(ctx, args):
    async def shot(text):
        return await ctx.run("image.generate", {"prompt": text})

    return [await ctx.parallel([shot(text) for text in args[:6]]), await ctx.pipeline(args[:6], shot)]
"""
TOLERANT = """
async def orchestrate(ctx, args):
    async def shot(number):
        return await ctx.run("text.generate", {"prompt": f"shot {number}"})

    notes = await ctx.parallel([shot(number) for number in range(6)], tolerate=True)
    SUMMED_UP
    return [len(notes), sum(1 for note in notes if note), summary["text"]]
"""
CARELESS = 'summary = await ctx.run("text.generate", {"prompt": f"sum up: {notes}"})'
SMUGGLED = 'summary = await ctx.run("text.generate", {"prompt": "sum up", "schema": {"notes": notes}})'
CAREFUL = """kept = [note["text"] for note in notes if note]
    summary = await ctx.run("text.generate", {"prompt": f"sum up: {kept}"})"""


async def test_every_limit_of_concurrency_gives_the_same_identities_results_and_order() -> None:
    seen = []
    for concurrency in (1, 2, 6, None):
        witness = Witness(shuffle=concurrency or 9)
        async with witnessed(witness) as (engine, _):
            limits = {} if concurrency is None else {"concurrency": concurrency}
            report = await engine.run(SIX, limits=limits)
            assert report.status == "completed"
            assert witness.most_at_once <= (concurrency or 16)
            history = await engine.history(report.run)
            records = {
                str(identity): (one.capability, one.digest, canonical(one.result.inline))
                for identity, one in sorted(history.records.items(), key=lambda item: item[0].sort_key)
            }
            seen.append((report.result, records))
            assert witness.count() == 12
            await assert_standing(engine, report.run)
    assert [one == seen[0] for one in seen] == [True] * 4
    assert [row[0] for row in seen[0][0]] == list(range(6))


async def test_an_empty_fanout_is_an_empty_list_and_leaves_no_record() -> None:
    async with witnessed() as (engine, witness):
        report = await engine.run(EMPTY, [])
        assert (report.status, report.result, witness.count()) == ("completed", [[], []], 0)
        assert (await engine.history(report.run)).attempts == {}
        await assert_standing(engine, report.run)


@pytest.mark.parametrize("summed_up", [CARELESS, SMUGGLED], ids=["as text", "as a value"])
async def test_a_failed_branch_cannot_get_into_a_paid_payload(summed_up: str) -> None:
    async with witnessed() as (engine, witness):
        witness.broken["shot"] = Refused(kind="unavailable", text="secret words of the error")
        report = await engine.run(TOLERANT.replace("SUMMED_UP", summed_up))
        assert report.status == "failed"
        assert report.error is not None
        assert "look at it first" in report.error.message
        assert witness.count() == 6
        await assert_standing(engine, report.run)


async def test_a_script_that_looks_at_failed_branches_goes_on_without_them() -> None:
    async with witnessed() as (engine, witness):
        witness.broken["shot"] = Refused(kind="unavailable", text="secret words of the error")
        report = await engine.run(TOLERANT.replace("SUMMED_UP", CAREFUL))
        assert (report.status, report.result) == ("completed", [6, 0, "Stand-in text."])
        assert [hit.payload["prompt"] for hit in witness.hits][-1] == "sum up: []"
        assert not any("secret" in hit.text for hit in witness.hits)
        await assert_standing(engine, report.run)
