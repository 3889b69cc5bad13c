"""Shifts that no look at a source can see, and what stops each: the paper's Table II and its section VI.C.

Every candidate here passes the gate. What comes then is counted by the provider, with the plan and without it.
"""

from typing import NamedTuple

import pytest

from engine_support import House
from engine_witness import assert_standing, witnessed
from tallystick.bench.paper.cases import (
    FANOUT,
    FANOUT_INSERTED_AHEAD,
    ONE,
    RETRY_LOOP,
    RETRY_LOOP_WIDENED,
    SHIFTS,
)
from tallystick.contract.errors import TallyError
from tallystick.engine.messages import RunReport

SEQUENCE, LOOP, WIDENED = ONE, RETRY_LOOP, RETRY_LOOP_WIDENED
DAG = """
async def orchestrate(ctx, args):
    async def draw(deps):
        return await ctx.run("image.generate", {"prompt": "a cover"})

    return sorted(await ctx.dag({"front": ([], draw)}))
"""


class Ended(NamedTuple):
    """How a resume ended: its code, None when it completed; its hits, and how many repeats it warned of."""

    code: str | None
    hits: int
    warned: int = 0


async def resumed(engine: House, run: str, candidate: str, *, preflight: bool, policy: str = "auto") -> Ended:
    """Resume with a candidate that the gate accepts."""
    before = engine.provider.count()
    assert (await engine.gate(run, candidate)).accepted
    try:
        report = await engine.resume(run, candidate, preflight=preflight, limits={"repeat_policy": policy})
    except TallyError as error:
        return Ended(error.code, engine.provider.count() - before)
    return Ended(report.reason, engine.provider.count() - before, warned(report))


def warned(report: RunReport) -> int:
    return sum("already paid" in warning for warning in report.warnings)


async def committed(engine: House, script: str) -> str:
    report = await engine.run(script)
    assert report.status == "completed"
    return report.run


both = pytest.mark.parametrize("preflight", [True, False], ids=["planned", "unplanned"])


@both
@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("off", Ended(None, 3)),
        ("warn", Ended(None, 3, 3)),
        ("deny", Ended("TS-P005", 0)),
        ("auto", Ended("TS-P005", 0)),
    ],
)
async def test_a_loop_widened_from_three_to_six_pays_what_the_policy_lets_it(
    policy: str, expected: Ended, preflight: bool
) -> None:
    async with witnessed() as (engine, _):
        run = await committed(engine, LOOP)
        assert await resumed(engine, run, WIDENED, preflight=preflight, policy=policy) == expected
        report = await assert_standing(engine, run)
        assert len((await engine.history(run)).records) == 3 + expected.hits
        assert report.orphans == ()


async def test_a_branch_inserted_at_the_free_place_of_a_failed_one_diverges_behind_one_execution_at_most() -> None:
    inserted = FANOUT.replace('"harbour", ', '"harbour", "ferry", ')
    async with witnessed() as (engine, witness):
        witness.fail("image.generate", 2, "invalid_request")
        run = (await engine.run(FANOUT)).run
        assert witness.count() == 3
        assert await resumed(engine, run, inserted, preflight=True) == Ended("TS-D001", 0)
        ended = await resumed(engine, run, inserted, preflight=False)
        assert (ended.code, ended.hits <= 1) == ("TS-D001", True)
        assert all(hit.payload == {"prompt": "ferry"} for hit in witness.hits[3:])
        await assert_standing(engine, run)


@both
async def test_a_branch_inserted_for_a_new_result_diverges_after_that_one_execution(preflight: bool) -> None:
    inserted = FANOUT.replace(
        "    return await ctx.parallel([shot(prompt) for prompt in SHOTS])",
        """\
    idea = await ctx.run("text.generate", {"prompt": "one more shot"})
    return await ctx.parallel([shot(prompt) for prompt in [idea["text"], *SHOTS]])""",
    )
    async with witnessed() as (engine, witness):
        run = await committed(engine, FANOUT)
        assert await resumed(engine, run, inserted, preflight=preflight) == Ended("TS-D001", 1)
        assert witness.count("image.generate") == 3
        assert len((await engine.history(run)).records) == 4
        await assert_standing(engine, run)


@both
async def test_a_branch_inserted_ahead_of_committed_ones_diverges_before_any_execution(preflight: bool) -> None:
    async with witnessed() as (engine, _):
        run = await committed(engine, FANOUT)
        assert await resumed(engine, run, FANOUT_INSERTED_AHEAD, preflight=preflight) == Ended("TS-D001", 0)
        await assert_standing(engine, run)


class Row(NamedTuple):
    """A row of Table II, as it ends here."""

    script: str
    candidate: str
    ended: Ended


TABLE_II = {
    **{name: Row(each.script, each.candidate, Ended(each.code, each.hits)) for name, each in SHIFTS.items()},
    "equal call in another function": Row(
        SEQUENCE,
        f"{SEQUENCE.replace('    return', '    await again(ctx)' + chr(10) + '    return')}\n\n"
        'async def again(ctx):\n    await ctx.run("image.generate", {"prompt": "a kiln"})\n',
        Ended("TS-P005", 0),
    ),
    "equal branch behind": Row(FANOUT, FANOUT.replace('"crane"]', '"crane", "harbour"]'), Ended("TS-P005", 0)),
    "fanout turned into a loop": Row(
        FANOUT,
        FANOUT.replace("await ctx.parallel([shot(prompt) for prompt in SHOTS])", "[await shot(one) for one in SHOTS]"),
        Ended("TS-P005", 0),
    ),
    "dag node renamed": Row(DAG, DAG.replace("front", "cover"), Ended("TS-P005", 0)),
}


@both
@pytest.mark.parametrize("row", TABLE_II.values(), ids=TABLE_II)
async def test_a_shift_ends_as_its_row_of_the_table_says(row: Row, preflight: bool) -> None:
    async with witnessed() as (engine, _):
        run = await committed(engine, row.script)
        assert await resumed(engine, run, row.candidate, preflight=preflight) == row.ended
        await assert_standing(engine, run)


@pytest.mark.parametrize(
    ("name", "paid"),
    [
        ("duplicate insertion", "orchestrate/#1 [] 0"),
        ("equal branch behind", "orchestrate.shot/#1 [0] 0"),
        ("fanout turned into a loop", "orchestrate.shot/#1 [0] 0"),
    ],
)
async def test_the_residual_row_is_paid_twice_where_the_policy_only_warns(name: str, paid: str) -> None:
    row = TABLE_II[name]
    async with witnessed() as (engine, _):
        run = await committed(engine, row.script)
        ended = await resumed(engine, run, row.candidate, preflight=True, policy="warn")
        assert ended.code is None
        assert ended.hits == ended.warned > 0
        report = await engine.host.service.report(run)
        assert any(paid in warning for warning in report.warnings)
