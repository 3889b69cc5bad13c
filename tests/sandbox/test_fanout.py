import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox_support import Play, echo, failing, played, script

GEN = """
async def gen(ctx, i):
    return await ctx.run("image.generate", i, _site="gen/#1")
"""
TWO_STEPS = """
async def gen(ctx, i):
    first = await ctx.run("image.generate", i, _site="gen/#1")
    return await ctx.run("image.edit", first, _site="gen/#2")
"""


def test_branches_run_under_their_own_path_and_results_keep_their_order() -> None:
    play = Play(script("return await ctx.parallel([gen(ctx, i) for i in 'abc'])", GEN))
    a, b, c = play.open
    assert play.identities == [("gen/#1", (0,), 0), ("gen/#1", (1,), 0), ("gen/#1", (2,), 0)]
    play.answer(c)
    play.answer(a)
    play.answer(b)
    assert play.result == ["a", "b", "c"]


def test_a_branch_may_be_a_call_a_coroutine_or_another_fanout() -> None:
    body = """
    return await ctx.parallel([
        ctx.run("a", 1, _site="x"),
        gen(ctx, 2),
        ctx.parallel([gen(ctx, 3), ctx.run("a", 4, _site="y")]),
        ctx.pipeline([5], lambda v: v + 1),
    ])
    """
    play = played(body, GEN)
    assert play.result == [1, 2, [3, 4], [6]]
    assert play.identities == [("x", (0,), 0), ("gen/#1", (1,), 0), ("gen/#1", (2, 0), 0), ("y", (2, 1), 0)]


def test_occurrences_count_one_site_under_one_path() -> None:
    body = """
    async def branch():
        for i in range(2):
            await ctx.run("a", i, _site="s")
    await branch()
    await ctx.parallel([branch(), branch()])
    await ctx.parallel([branch()])
    """
    assert sorted(played(body).identities) == [
        *(("s", (), occurrence) for occurrence in range(2)),
        *(("s", (0,), occurrence) for occurrence in range(4)),
        *(("s", (1,), occurrence) for occurrence in range(2)),
    ]


def test_the_path_is_that_of_the_branch_that_awaits() -> None:
    body = """
    call = ctx.run("a", 1, _site="s")
    made = gen(ctx, 2)
    async def branch():
        return [await call, await made]
    return await ctx.parallel([ctx.run("a", 0, _site="s"), branch()])
    """
    play = played(body, GEN)
    assert play.identities == [("s", (0,), 0), ("s", (1,), 0), ("gen/#1", (1,), 0)]


def test_the_first_error_by_position_is_raised_whichever_came_first() -> None:
    play = Play(script("return await ctx.parallel([gen(ctx, i) for i in range(3)])", GEN))
    zero, one, two = play.open
    play.answer(two, by=failing(2))
    play.answer(zero)
    play.answer(one, by=failing(1))
    assert play.crash.text == "rate_limited: no 1"
    assert play.crash.capability_error == one.id


def test_a_failing_branch_lets_its_siblings_run_to_their_end() -> None:
    play = Play(script("return await ctx.parallel([gen(ctx, i) for i in range(3)])", TWO_STEPS))
    zero, *others = play.open
    assert play.answer(zero, by=failing(0)) == []
    second = play.answer(*others)
    assert [call.site for call in second] == ["gen/#2", "gen/#2"]
    play.answer(*second)
    assert play.crash.kind == "CapabilityError"


def test_tolerated_failures_are_falsy_values_in_their_place() -> None:
    body = """
    rows = await ctx.parallel([gen(ctx, i) for i in range(3)], tolerate=True)
    return [row if row or row == 0 else [row.kind, row.text, isinstance(row, Failed)] for row in rows]
    """
    assert played(body, GEN, by=failing(1)).result == [0, ["rate_limited", "no 1", True], 2]


def test_a_bug_in_a_branch_is_raised_even_where_failures_are_tolerated() -> None:
    body = """
    async def bug():
        return {}["missing"]
    return await ctx.parallel([gen(ctx, 1), bug(), gen(ctx, 2)], tolerate=True)
    """
    crash = played(body, GEN, by=failing(1)).crash
    assert (crash.kind, crash.text) == ("KeyError", "'missing'")


def test_a_fanout_can_be_caught_and_the_script_goes_on() -> None:
    body = """
    try:
        await ctx.parallel([gen(ctx, 1), gen(ctx, 2)])
    except CapabilityError as error:
        return await ctx.run("b", error.text, _site="s")
    """
    assert played(body, GEN, by=failing(2)).result == "no 2"


@pytest.mark.parametrize("fanout", ["ctx.parallel([])", "ctx.pipeline([], gen)", "ctx.parallel(())"])
def test_an_empty_fanout_is_an_empty_list(fanout: str) -> None:
    assert played(f"return await {fanout}", GEN).frames[:-1] == []
    assert played(f"return await {fanout}", GEN).result == []


def test_an_empty_dag_is_an_empty_dict() -> None:
    assert played("return await ctx.dag({})").result == {}


@pytest.mark.parametrize(
    ("expression", "kind", "text"),
    [
        ("ctx.parallel([gen(ctx, 1), 7])", "TypeError", "branch 1 is a int, not awaitable"),
        ("ctx.parallel([gen])", "TypeError", "branch 0 is a function, not awaitable; call it"),
        ("ctx.parallel({gen(ctx, 1)})", "TypeError", "a set, which has no order"),
        ("ctx.parallel([made, made])", "RuntimeError", "branch 1 is the same object as branch 0"),
        ("ctx.parallel([done])", "RuntimeError", "branch 0 was already awaited"),
        ("ctx.parallel([call])", "RuntimeError", "branch 0 was already awaited"),
        ("ctx.pipeline([1], 7)", "TypeError", "stage 0 is a int"),
        ("ctx.pipeline({1}, gen)", "TypeError", "a set, which has no order"),
        ("ctx.parallel(7)", "TypeError", "not iterable"),
        ("call", "RuntimeError", "this ctx.run('a', ...) was already awaited; call it again"),
        ("empty", "RuntimeError", "this ctx.parallel(...) was already awaited"),
    ],
)
def test_a_fanout_of_something_else_says_which_and_what(expression: str, kind: str, text: str) -> None:
    body = f"""
    done, made, call, empty = gen(ctx, 0), gen(ctx, 1), ctx.run("a", 2, _site="s"), ctx.parallel([])
    await done, await call, await empty
    try:
        return await {expression}
    finally:
        made.close()
    """
    crash = played(body, GEN).crash
    assert crash.kind == kind
    assert text in crash.text


def test_a_coroutine_that_runs_elsewhere_cannot_be_a_branch_too() -> None:
    body = """
    made = gen(ctx, 1)
    return await ctx.parallel([ctx.parallel([made]), ctx.parallel([made])])
    """
    assert played(body, GEN).crash.kind == "RuntimeError"


@pytest.mark.filterwarnings("ignore:coroutine 'orchestrate")  # the branches that do not start
def test_fanouts_nest_only_so_deep() -> None:
    body = """
    async def nest(n):
        return await ctx.parallel([nest(n - 1)]) if n else "bottom"
    return [await nest(64), await nest(65)]
    """
    assert "nested in 64 fanouts" in played(body).crash.text


def test_the_window_holds_calls_back_in_their_order() -> None:
    play = Play(script("return await ctx.parallel([gen(ctx, i) for i in range(5)])", GEN), window=2)
    assert [call.payload for call in play.open] == [0, 1]
    assert [call.payload for call in play.answer(play.open[1])] == [2]
    assert [call.payload for call in play.answer(*play.open)] == [3, 4]
    assert [call.id for call in play.calls] == [1, 2, 3, 4, 5]


def test_all_waiting_answers_are_taken_in_the_order_they_came() -> None:
    play = Play(script("return await ctx.parallel([gen(ctx, i) for i in range(3)])", TWO_STEPS))
    zero, one, two = play.open
    assert [call.path for call in play.answer(two, zero, one)] == [(2,), (0,), (1,)]


def test_items_go_through_the_stages_side_by_side_and_stages_may_be_plain() -> None:
    body = """
    return await ctx.pipeline(
        args, lambda v: v * 10, lambda v: ctx.run("a", v, _site="s"), lambda v: gen(ctx, v + 1), lambda v: [v]
    )
    """
    play = Play(script(body, GEN), [1, 2])
    one, two = play.open
    (next_two,) = play.answer(two)
    assert (next_two.site, next_two.path, next_two.payload) == ("gen/#1", (1,), 21)
    play.answer(one)
    assert play.to_end().result == [[11], [21]]


def test_an_item_that_fails_in_a_pipeline_lets_the_others_finish_all_stages() -> None:
    body = """
    rows = await ctx.pipeline([1, 2], lambda v: gen(ctx, v), lambda v: gen(ctx, v * 10), tolerate=True)
    return [row and row for row in rows if row]
    """
    assert played(body, GEN, by=failing(1)).result == [20]


@given(st.data())
def test_neither_the_order_of_answers_nor_the_window_changes_identities_or_results(data: st.DataObject) -> None:
    source = script(
        """
        async def shot(i):
            parts = []
            for k in range(2):
                parts.append(await ctx.run("a", [i, k], _site="s1"))
            return await ctx.parallel([gen(ctx, [i, p]) for p in parts], tolerate=True)
        shots = await ctx.parallel([shot(i) for i in range(3)], tolerate=True)
        graph = await ctx.dag({
            "a": ([], lambda d: gen(ctx, "a")),
            "b": ([], lambda d: gen(ctx, "b")),
            "c": (["a", "b"], lambda d: gen(ctx, [d["a"], d["b"]])),
        })
        return [[len(shot) for shot in shots], graph]
        """,
        GEN,
    )
    reference = Play(source).to_end()
    play = Play(source, window=data.draw(st.integers(1, 8)))
    while play.open:
        order = data.draw(st.permutations(play.open))
        play.answer(*order[: data.draw(st.integers(1, len(order)))])
    assert sorted(map(str, play.identities)) == sorted(map(str, reference.identities))
    assert play.result == reference.result
    assert {str(i): c.payload for i, c in zip(play.identities, play.calls, strict=True)} == {
        str(i): c.payload for i, c in zip(reference.identities, reference.calls, strict=True)
    }


@given(st.data())
def test_the_same_answers_in_the_same_order_give_the_same_frames(data: st.DataObject) -> None:
    source = script("return await ctx.parallel([gen(ctx, i) for i in range(4)])", TWO_STEPS)
    one, other = Play(source), Play(source)
    while one.open:
        chosen = data.draw(st.lists(st.sampled_from(one.open), min_size=1, unique=True))
        one.answer(*chosen, by=echo)
        other.answer(*chosen, by=echo)
    assert one.frames == other.frames
