"""The facts of a script: calls, widths, rounds, and how often each call can happen (contract.md, sections 4 and 6.1)."""

import textwrap

import pytest

from tallystick.contract.checker import check
from tallystick.contract.report import Facts

RUN = 'await ctx.run("text.generate", {"prompt": "x"})'


def facts(lines: str, before: str = "") -> Facts:
    source = f"{textwrap.dedent(before)}\n\nasync def orchestrate(ctx, args):\n{textwrap.indent(textwrap.dedent(lines), '    ')}"
    report = check(source)
    assert report.valid, report.violations
    return report.facts


def bounds(lines: str, before: str = "") -> list[tuple[int | None, int | None]]:
    return list(facts(lines, before).bounds.values())


def test_calls_are_counted_by_capability() -> None:
    found = facts(f"""
        {RUN}
        {RUN}
        return await ctx.run("image.generate", {{}})
    """)
    assert found.calls == {"image.generate": 1, "text.generate": 2}


def test_loops_multiply() -> None:
    assert bounds(f"""
        for i in range(3):
            for x in args["xs"][:4]:
                {RUN}
    """) == [(12, 12)]


def test_the_width_of_a_fanout_counts_in_all_but_not_under_one_path() -> None:
    assert bounds("""
        async def one(x):
            for i in range(2):
                await ctx.run("text.generate", {"prompt": x})
        await ctx.parallel([one(x) for x in args["xs"][:5]])
    """) == [(10, 2)]


def test_two_fanouts_of_one_helper_meet_under_the_same_paths() -> None:
    assert bounds("""
        async def one(x):
            return await ctx.run("text.generate", {"prompt": x})
        await ctx.parallel([one(x) for x in args["xs"][:5]])
        await ctx.parallel([one(x) for x in args["ys"][:3]])
    """) == [(8, 2)]


def test_branches_that_are_written_out_have_a_path_each() -> None:
    assert bounds("""
        async def one(x):
            return await ctx.run("text.generate", {"prompt": x})
        await ctx.parallel([one("a"), one("b"), one("c")])
    """) == [(3, 1)]


def test_a_fanout_in_a_loop_comes_back_to_the_same_paths() -> None:
    assert bounds("""
        for i in range(3):
            await ctx.parallel([ctx.run("text.generate", {"prompt": x}) for x in "ab"])
    """) == [(6, 3)]


def test_a_race_in_a_loop_has_paths_of_its_own_each_time() -> None:
    found = bounds("""
        async def one(x):
            return await ctx.run("text.generate", {"prompt": x})
        for i in range(3):
            await ctx.race([one("a"), one("b")])
    """)
    assert (6, 1) in found
    assert (3, 3) in found  # the race itself


def test_nodes_of_a_dag_have_paths_by_their_names() -> None:
    assert bounds("""
        async def one(deps):
            return await ctx.run("text.generate", {"prompt": "x"})
        await ctx.dag({"a": ([], one), "b": (["a"], one)})
    """) == [(2, 1)]


def test_stages_of_a_pipeline_run_once_for_each_item() -> None:
    assert bounds("""
        await ctx.pipeline(["a", "b"], lambda x: ctx.run("text.generate", {"prompt": x}), lambda r: r)
    """) == [(2, 1)]


def test_direct_calls_of_a_helper_add() -> None:
    assert bounds(
        "await help_me(ctx)\nfor i in range(3):\n    await help_me(ctx)",
        f"async def help_me(ctx):\n    return {RUN}",
    ) == [(4, 4)]


def test_a_call_and_a_fanout_are_under_different_paths() -> None:
    assert bounds("""
        async def one(x):
            return await ctx.run("text.generate", {"prompt": x})
        await one("a")
        await ctx.parallel([one(x) for x in "bc"])
    """) == [(3, 1)]


def test_coroutines_collected_for_a_fanout_run_in_its_branches() -> None:
    assert bounds("""
        async def one(x):
            return await ctx.run("text.generate", {"prompt": x})
        branches = []
        for x in args["xs"][:6]:
            branches.append(one(x))
        await ctx.parallel(branches)
    """) == [(6, 1)]


def test_coroutines_awaited_elsewhere_count_under_any_path() -> None:
    assert bounds("""
        async def one(x):
            return await ctx.run("text.generate", {"prompt": x})
        tasks = [one(x) for x in "abc"]
        for task in tasks:
            await task
    """) == [(3, 3)]


def test_nested_fanouts_multiply_in_all_only() -> None:
    assert bounds("""
        async def cell(x, y):
            return await ctx.run("text.generate", {"prompt": f"{x}{y}"})
        async def row(x):
            return await ctx.parallel([cell(x, y) for y in range(4)])
        await ctx.parallel([row(x) for x in range(3)])
    """) == [(12, 1)]


def test_what_stands_behind_a_check_happens_once_less() -> None:
    assert bounds(f"""
        done = 0
        for x in args["xs"]:
            if done >= 4:
                break
            done += 1
            {RUN}
    """) == [(4, 4)]


def test_a_test_of_a_while_is_evaluated_once_more_than_its_body() -> None:
    assert bounds(f"""
        tries = 0
        while tries < 3 and ({RUN})["data"]:
            tries += 1
    """) == [(4, 4)]


@pytest.mark.parametrize(
    ("loop", "rounds"),
    [
        ("for x in args['xs'][:6]", 6),
        ("for x in range(0, 10, 3)", 4),
        ("for x in range(10, 0, -3)", 4),
        ("for i, x in enumerate('abc')", 3),
        ("for x in zip('abcd', args['xs'])", 4),
        ("for x in args['xs'][2:5]", 3),
        ("for x in args['xs'][-2:]", 2),
        ("for x in ['a'] * 3 + ['b']", 4),
        ("for x in {'a': 1, **dict(b=2, c=3)}", 3),
        ("for x in args['xs']", None),
    ],
)
def test_rounds_are_as_tight_as_they_can_be_read(loop: str, rounds: int | None) -> None:
    assert [fact.rounds for fact in facts(f"{loop}:\n    ctx.log(x)").loops] == [rounds]


def test_an_if_and_its_else_append_once_between_them() -> None:
    found = facts("""
        out = []
        for x in args["xs"][:3]:
            if x:
                out.append(x)
            else:
                out.append(0)
        for x in out:
            ctx.log(x)
    """)
    assert [fact.rounds for fact in found.loops] == [3, 3]


def test_widths_are_told_for_every_fanout() -> None:
    found = facts("""
        await ctx.parallel([ctx.run("text.generate", {}) for x in args["xs"][:7]])
        await ctx.dag({"a": ([], lambda deps: 1)})
    """)
    assert [(fact.kind, fact.width) for fact in found.fanouts] == [("parallel", 7), ("dag", 1)]


def test_the_bounds_are_in_the_facts_of_the_sites() -> None:
    report = check(f"async def orchestrate(ctx, args):\n    for i in range(3):\n        {RUN}\n")
    assert report.script is not None
    assert [(fact.site, fact.total, fact.per_path) for fact in report.script.sites] == [("orchestrate/for1/#1", 3, 3)]
