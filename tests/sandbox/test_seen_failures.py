from sandbox_support import Play, failing, script

TRY = """
async def attempt(ctx, value):
    try:
        return await ctx.run("a", value, _site="attempt/try1/#1")
    except CapabilityError:
        return await ctx.run("b", value, _site="attempt/try1-except1/#1")
"""


def test_a_branch_has_seen_its_own_failures_and_not_its_siblings() -> None:
    play = Play(script("return await ctx.parallel([attempt(ctx, i) for i in range(2)])", TRY))
    zero, one = play.open
    retried_zero, retried_one = play.answer(zero, one, by=failing(0, 1))
    assert (retried_zero.seen, retried_one.seen) == ((zero.id,), (one.id,))


def test_a_branch_starts_with_what_its_parent_had_seen() -> None:
    body = """
    await attempt(ctx, 1)
    await ctx.parallel([attempt(ctx, 2), attempt(ctx, 3)])
    """
    play = Play(script(body, TRY))
    (first,) = play.open
    (retried,) = play.answer(first, by=failing(1))
    second, third = play.answer(retried)
    assert (second.seen, third.seen) == ((first.id,), (first.id,))


def test_who_joins_a_fanout_has_seen_the_failures_of_all_its_branches() -> None:
    body = """
    await ctx.parallel([attempt(ctx, 1), ctx.run("a", 2, _site="s"), attempt(ctx, 3)], tolerate=True)
    await ctx.run("c", 4, _site="t")
    """
    play = Play(script(body, TRY))
    one, two, three = play.open
    (retried,) = play.answer(one, two, three, by=failing(1, 2))
    assert retried.seen == (one.id,)
    (after,) = play.answer(retried)
    assert after.seen == (one.id, two.id)


def test_a_dag_node_has_seen_the_failures_of_what_it_needs() -> None:
    body = """
    await ctx.dag({
        "a": ([], lambda d: attempt(ctx, 1)),
        "b": ([], lambda d: attempt(ctx, 2)),
        "c": (["a"], lambda d: ctx.run("c", 3, _site="s")),
    })
    """
    play = Play(script(body, TRY))
    one, two = play.open
    (retried_one, _) = play.answer(one, two, by=failing(1, 2))
    (needs_a,) = play.answer(retried_one)
    assert needs_a.seen == (one.id,)
