"""Casebook 16: 1024 or 1024.0 - one documented rule for numbers, the same everywhere, and never a second paid hit."""

from pathlib import Path

import pytest

from engine_witness import Witness, assert_diverges, assert_standing, witnessed
from tallystick.contract.payload import digest
from tallystick.sandbox.locked import LockedDriver
from tallystick.store.lmdb_store import LmdbStore

SCRIPT = """
VALUE = {value}


async def orchestrate(ctx, args):
    text = await ctx.run("text.generate", {{"prompt": "measure", "schema": {{"size": VALUE}}}})
    return text["text"]
"""
IMAGE = """
SEED = {value}


async def orchestrate(ctx, args):
    image = await ctx.run("image.generate", {{"prompt": "measure", "seed": SEED}})
    return image["width"]
"""
DIFFERENT = [
    ("1024", "1024.0"),
    ("1024.0", "1024"),
    ("True", "1"),
    ("1", "True"),
    ("0", "-0.0"),
    ("0.0", "-0.0"),
    ("0.1 + 0.2", "0.3"),
    ("100", "1e2"),
    ("1", '"1"'),
]
EQUAL = [("1e2", "100.0"), ("0.1 + 0.2", "0.30000000000000004"), ("0x400", "1024"), ("9007199254740993", "2**53 + 1")]


@pytest.mark.parametrize(("committed", "rewritten"), DIFFERENT)
async def test_numbers_that_the_rule_calls_different_stop_with_the_field_named(committed: str, rewritten: str) -> None:
    async with witnessed() as (engine, witness):
        run = (await engine.run(SCRIPT.format(value=committed))).run
        await assert_diverges(engine, run, SCRIPT.format(value=rewritten), "payload.schema.size: ")
        assert witness.count() == 1
        await assert_standing(engine, run)


@pytest.mark.parametrize(("committed", "rewritten"), EQUAL)
async def test_numbers_that_the_rule_calls_equal_replay(committed: str, rewritten: str) -> None:
    async with witnessed() as (engine, witness):
        run = (await engine.run(SCRIPT.format(value=committed))).run
        again = await engine.resume(run, SCRIPT.format(value=rewritten))
        assert (again.status, again.calls.replayed, witness.count()) == ("completed", 1, 1)
        await assert_standing(engine, run)


async def test_a_committed_image_is_neither_served_nor_paid_again_for_another_type_of_number() -> None:
    async with witnessed() as (engine, witness):
        run = (await engine.run(IMAGE.format(value="1024"))).run
        await assert_diverges(engine, run, IMAGE.format(value="1024.0"), "payload.seed: 1024 -> 1024.0")
        assert witness.count() == 1
        await assert_standing(engine, run)


async def test_a_payload_keeps_its_digest_from_the_guest_to_the_store_and_back(tmp_path: Path) -> None:
    """Through a real guest's frames and the log on disk, closed and opened again; an unchanged script replays."""
    value = "[1024, 1024.0, True, -0.0, 1e2, 0.1 + 0.2, 2**53 + 1, None, 5e-324, [], {}]"
    payload = {
        "prompt": "measure",
        "schema": {"size": [1024, 1024.0, True, -0.0, 1e2, 0.1 + 0.2, 2**53 + 1, None, 5e-324, [], {}]},
    }
    witness = Witness()
    run = ""
    for _ in range(2):
        async with witnessed(witness, store=LmdbStore(tmp_path), driver=LockedDriver()) as (engine, _):
            report = await (engine.resume(run) if run else engine.run(SCRIPT.format(value=value)))
            assert (report.status, witness.count()) == ("completed", 1)
            run = report.run
            (attempt,) = (await engine.history(run)).attempts.values()
            assert attempt.started.digest == digest(attempt.started.payload) == digest(payload)
            assert digest(witness.hits[0].payload) == attempt.started.digest
    assert report.calls.replayed == 1
