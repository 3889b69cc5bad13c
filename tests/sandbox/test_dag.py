import pytest

from sandbox_support import Play, failing, played, script

DIAMOND = """
async def node(ctx, name, needed):
    return await ctx.run("a", [name, needed], _site="node/#1")

def graph(ctx):
    return {
        "last": (["left", "right"], lambda d: node(ctx, "last", sorted(d))),
        "left": (["first"], lambda d: node(ctx, "left", d["first"])),
        "right": (["first"], lambda d: node(ctx, "right", d["first"])),
        "first": ([], lambda d: node(ctx, "first", d)),
    }
"""


def test_nodes_start_when_what_they_need_is_there_under_their_own_names() -> None:
    play = Play(script("return await ctx.dag(graph(ctx))", DIAMOND))
    (first,) = play.open
    assert (first.path, first.payload) == (("first",), ["first", {}])
    left, right = play.answer(first)
    assert [call.path for call in (left, right)] == [("left",), ("right",)]
    assert play.answer(right) == []
    (last,) = play.answer(left)
    assert (last.path, last.payload) == (("last",), ["last", ["left", "right"]])
    play.answer(last)
    assert list(play.result) == ["last", "left", "right", "first"]
    assert play.result["last"] == ["last", ["left", "right"]]


def test_nodes_may_be_plain_functions() -> None:
    assert played('return await ctx.dag({"b": (("a",), lambda d: d["a"] + 1), "a": ([], lambda d: 1)})').result == {
        "b": 2,
        "a": 1,
    }


def test_what_needs_a_failed_node_does_not_run_and_the_rest_does() -> None:
    play = Play(script("return await ctx.dag(graph(ctx))", DIAMOND))
    left, right = play.answer(*play.open)
    play.answer(left, by=failing(left.payload))
    assert play.guest.last is None
    play.answer(right)
    assert play.crash.text == f"rate_limited: no {left.payload}"
    assert len(play.calls) == 3


def test_nothing_runs_behind_a_failed_first_node() -> None:
    play = played("return await ctx.dag(graph(ctx))", DIAMOND, by=failing(["first", {}]))
    assert play.crash.capability_error == 1
    assert len(play.calls) == 1


def test_a_long_chain_behind_a_failed_node_is_left_out() -> None:
    body = """
    names = [f"n{i}" for i in range(2000)]
    chain = {name: ([f"n{i - 1}"] if i else [], lambda d, i=i: ctx.run("a", i, _site="s")) for i, name in enumerate(names)}
    return await ctx.dag(chain)
    """
    play = played(body, by=failing(0))
    assert play.crash.text == "rate_limited: no 0"
    assert len(play.calls) == 1


def test_the_first_error_in_the_order_of_the_nodes_is_raised() -> None:
    body = """
    return await ctx.dag({name: ([], lambda d, name=name: ctx.run("a", name, _site="s")) for name in ["x", "y", "z"]})
    """
    play = Play(script(body))
    x, y, z = play.open
    play.answer(z, by=failing("z"))
    play.answer(y, by=failing("y"))
    play.answer(x)
    assert play.crash.text == "rate_limited: no y"


def test_a_node_behind_a_tolerated_failure_gets_the_failed_value() -> None:
    body = """
    done = await ctx.dag({
        "a": ([], lambda d: ctx.run("a", "a", _site="s")),
        "b": (["a"], lambda d: "none" if not d["a"] else "some"),
    }, tolerate=True)
    return [bool(done["a"]), done["b"]]
    """
    assert played(body, by=failing("a")).result == [False, "none"]


@pytest.mark.parametrize(
    ("graph", "kind", "text"),
    [
        ("[1]", "TypeError", "{name: ([dependency, ...], function)}, not a list"),
        ("{1: ([], f)}", "TypeError", "1 is no node name"),
        ("{'': ([], f)}", "TypeError", "'' is no node name"),
        ("{'orchestrate/race1:0:0': ([], f)}", "TypeError", "is what the branch of a race is called"),
        ("{'a': f}", "TypeError", "node 'a' must be a pair"),
        ("{'a': ([], 3)}", "TypeError", "node 'a' must be a pair"),
        ("{'a': ('b', f)}", "TypeError", "the dependencies of node 'a' must be a list"),
        (
            "{'a': (['b'], f), 'c': ([], f)}",
            "ValueError",
            "node 'a' depends on 'b', which is no node; there are ['a', 'c']",
        ),
        ("{'a': (['a'], f)}", "ValueError", "'a' -> 'a' wait for each other"),
        (
            "{'z': (['a'], f), 'a': (['b'], f), 'b': (['c'], f), 'c': (['a'], f)}",
            "ValueError",
            "'a' -> 'b' -> 'c' -> 'a'",
        ),
    ],
)
def test_a_graph_that_cannot_run_says_why(graph: str, kind: str, text: str) -> None:
    crash = played(f"return await ctx.dag({graph})", "def f(d): return 1").crash
    assert crash.kind == kind
    assert text in crash.text
