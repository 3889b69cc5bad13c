"""The gate's findings and how it words them (contract.md, section 5)."""

from textwrap import dedent

import msgspec
import pytest

from tallystick.contract.errors import PrefixConflictError
from tallystick.contract.gate import FrozenSite, Verdict, freeze, gate
from tallystick.contract.script import Script, read_script
from tallystick.contract.source import Counterexample, Span

BODY = """
async def orchestrate(ctx, args):
    prompt = args["prompt"]
    base = await ctx.run("image.generate", {"prompt": prompt, "size": "1024x1024"})
    return base["images"][0]
"""
CALL = 'base = await ctx.run("image.generate", {"prompt": prompt, "size": "1024x1024"})'


def script(source: str) -> Script:
    return read_script(dedent(source).lstrip("\n"))


def frozen(source: str, *held: str) -> dict[str, FrozenSite]:
    original = script(source)
    return freeze(FrozenSite.of(original, fact, held=fact.site in held) for fact in original.sites)


def judge(old: str, new: str, *held: str) -> Verdict:
    return gate(frozen(old, *held), script(new))


def findings(verdict: Verdict) -> list[tuple[str, str, str | None]]:
    assert verdict.accepted is not bool(verdict.counterexamples)
    return [(found.site, found.kind, found.moved_to) for found in verdict.counterexamples]


def only(verdict: Verdict) -> Counterexample:
    (found,) = verdict.counterexamples
    return found


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (CALL, f"{CALL}\n    edit = await ctx.run('image.edit', {{'image': base}})"),
        (CALL, f"note = 1\n    if note:\n        note = 2\n    {CALL}"),
        ('prompt = args["prompt"]', "prompt = args['other'].strip() or 'a mug'"),
        (
            CALL,
            'base = await ctx.run(\n        "image.generate",  # why\n        {"prompt": (prompt), \'size\': "1024x" "1024"},\n    )',
        ),
        ("return base", "for x in range(3):\n        await ctx.run('image.edit', {'image': base})\n    return base"),
    ],
)
def test_what_leaves_the_committed_call_alone_is_accepted(old: str, new: str) -> None:
    assert judge(BODY, BODY.replace(old, new)) == Verdict(accepted=True)


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        (CALL.replace("1024x1024", "512x512"), [("orchestrate/#1", "call_changed", None)]),
        (CALL.replace('"1024x1024"', "args['size']"), [("orchestrate/#1", "call_changed", None)]),
        (CALL.replace("})", "}, take='2')"), [("orchestrate/#1", "call_changed", None)]),
        (CALL.replace("image.generate", "image.edit"), [("orchestrate/#1", "capability_changed", None)]),
        (CALL.replace('"image.generate"', "args['c']"), [("orchestrate/#1", "capability_changed", None)]),
        (f"if True:\n        {CALL}", [("orchestrate/#1", "removed", "orchestrate/if1/#1")]),
        ("base = args", [("orchestrate/#1", "removed", None)]),
        (f"await ctx.run('text.generate', {{}})\n    {CALL}", [("orchestrate/#1", "capability_changed", None)]),
        (f"await ctx.run('image.generate', {{}})\n    {CALL}", [("orchestrate/#1", "call_changed", None)]),
    ],
)
def test_what_touches_the_committed_call_is_stopped(new: str, expected: list[tuple[str, str, str | None]]) -> None:
    assert findings(judge(BODY, BODY.replace(CALL, new))) == expected


def test_a_call_that_moved_into_a_helper_is_named_there() -> None:
    found = only(
        judge(
            """
            async def orchestrate(ctx, args):
                return await ctx.parallel([ctx.run("image.generate", {"prompt": s}) for s in args["shots"][:4]])
            """,
            """
            async def gen_one(ctx, s):
                return await ctx.run("image.generate", {"prompt": s})


            async def orchestrate(ctx, args):
                return await ctx.parallel([gen_one(ctx, s) for s in args["shots"][:4]])
            """,
        )
    )
    assert found == Counterexample(
        site="orchestrate/#1",
        kind="removed",
        message=(
            "the committed call orchestrate/#1 (image.generate, line 2) is not in the rewrite; an equal call stands at "
            "gen_one/#1 (line 2), where it is new work and would be paid for again"
        ),
        hint="leave the call in its function and block: elsewhere it is another call. Change the statements around it",
        old_span=Span(2, 31, 2, 71),
        old_text='ctx.run("image.generate", {"prompt": s})',
        new_span=Span(2, 17, 2, 57),
        new_text='ctx.run("image.generate", {"prompt": s})',
        moved_to="gen_one/#1",
    )


THREE = """
async def orchestrate(ctx, args):
    a = await ctx.run("image.generate", {"prompt": "a"})
    b = await ctx.run("image.generate", {"prompt": "b"})
    c = await ctx.run("image.generate", {"prompt": "c"})
"""


def test_a_call_inserted_ahead_is_recognised_by_where_the_committed_ones_went() -> None:
    verdict = judge(
        THREE, THREE.replace("    b =", '    x = await ctx.run("image.generate", {"prompt": "x"})\n    b =')
    )
    assert findings(verdict) == [("orchestrate/#2", "call_changed", None), ("orchestrate/#3", "call_changed", None)]
    first = verdict.counterexamples[0]
    assert first.message == (
        "the committed call orchestrate/#2 (image.generate, line 3) is another expression in the rewrite (line 3); its "
        "expression now stands at orchestrate/#3 (line 4), which is where a call or block put ahead of it pushes it"
    )
    assert first.hint == "keep the committed call ahead: append the new call or block after it, not before"
    assert (first.old_text[-11:], (first.new_text or "")[-11:]) == ('mpt": "b"})', 'mpt": "x"})')


def test_a_call_deleted_ahead_is_recognised_too() -> None:
    verdict = judge(THREE, THREE.replace('    a = await ctx.run("image.generate", {"prompt": "a"})\n', ""))
    assert findings(verdict) == [
        ("orchestrate/#1", "call_changed", None),
        ("orchestrate/#2", "call_changed", None),
        ("orchestrate/#3", "removed", None),
    ]
    assert "goes" not in verdict.counterexamples[0].message
    for found, place in zip(verdict.counterexamples[1:], ("orchestrate/#1", "orchestrate/#2"), strict=True):
        assert f"stands at {place} " in found.message
        assert "slides when a call or block ahead of it goes" in found.message
        assert "leave the calls ahead of it where they were" in found.hint


def test_a_block_with_a_call_inserted_ahead_pushes_a_block() -> None:
    old = "async def f(ctx):\n    for x in a:\n        await ctx.run('b', {'x': x})\n"
    new = "async def f(ctx):\n    for y in a:\n        await ctx.run('b', {'y': y})\n" + old.partition("\n")[2]
    found = only(judge(old, new))
    assert "stands at f/for2/#1 (line 5), which is where a call or block put ahead of it pushes it" in found.message


def test_an_equal_call_that_stands_where_it_always_stood_is_not_taken_for_the_moved_one() -> None:
    twins = THREE.replace('"c"', '"a"')
    found = only(judge(twins, twins.replace('{"prompt": "a"}', '{"prompt": "z"}', 1)))
    assert (found.site, found.kind, found.moved_to) == ("orchestrate/#1", "call_changed", None)
    assert "orchestrate/#3" not in found.message
    assert "append a new call after it and use that result" in found.hint


def test_a_held_site_reports_any_difference_as_unresolved_moved_ahead_of_the_other_kinds() -> None:
    for change in ("{'prompt': 'z'}", "{'prompt': 'a'}); await ctx.run('x', {}"):
        new = THREE.replace('ctx.run("image.generate", {"prompt": "a"})', f"ctx.run('video.edit', {change})")
        assert findings(judge(THREE, new, "orchestrate/#1"))[0] == ("orchestrate/#1", "unresolved_moved", None)
    found = only(judge(BODY, BODY.replace(CALL, f"if True:\n        {CALL}"), "orchestrate/#1"))
    assert (found.kind, found.moved_to) == ("unresolved_moved", "orchestrate/if1/#1")
    assert found.message.startswith("the call with an unsettled attempt orchestrate/#1 (image.generate, line 3)")
    assert "settle its attempt first" in found.hint
    assert judge(BODY, BODY, "orchestrate/#1").accepted


def test_a_retired_site_is_released_unless_it_is_held() -> None:
    gone = script(BODY.replace(CALL, "base = args"))
    assert gate(frozen(BODY), gone, frozenset({"orchestrate/#1"})).accepted
    assert not gate(frozen(BODY), gone, frozenset({"orchestrate/#2"})).accepted
    assert not gate(frozen(BODY, "orchestrate/#1"), gone, frozenset({"orchestrate/#1"})).accepted


def test_a_journalled_race_is_frozen_like_a_call() -> None:
    old = "async def f(ctx):\n    return await ctx.race([g(1), g(2)])\n"
    assert findings(judge(old, old.replace("g(2)", "g(3)"))) == [("f/race1", "call_changed", None)]
    found = only(judge(old, old.replace("return", "if 1: return")))
    assert (found.kind, found.moved_to) == ("removed", "f/if1/race1")
    assert found.message.startswith("the journalled race f/race1 (ctx.race, line 2) is not in the rewrite")


def test_counterexamples_are_sorted_by_site_one_each() -> None:
    source = "async def f(ctx):\n" + "".join(f"    await ctx.run('a', {{'x': {n}}})\n" for n in range(12))
    sites = [found.site for found in judge(source, "async def f(ctx):\n    pass\n").counterexamples]
    assert sites == sorted(f"f/#{n + 1}" for n in range(12))


def test_nothing_frozen_accepts_everything() -> None:
    assert gate({}, script(BODY)).accepted


def test_entries_of_one_site_become_one_with_the_latest_place() -> None:
    (entry,) = frozen(BODY).values()
    later = msgspec.structs.replace(entry, span=Span(9, 0, 9, 1), text="later")
    held = msgspec.structs.replace(entry, held=True)
    assert freeze([held, entry, later]) == {entry.site: msgspec.structs.replace(later, held=True)}


@pytest.mark.parametrize("change", [{"fingerprint": "0" * 64}, {"capability": "image.edit"}])
def test_records_of_one_site_that_disagree_are_a_conflict_not_a_verdict(change: dict[str, str]) -> None:
    (entry,) = frozen(BODY).values()
    with pytest.raises(PrefixConflictError, match="the records of orchestrate/#1 disagree") as caught:
        freeze([entry, msgspec.structs.replace(entry, **change)])
    assert "nothing was started" in caught.value.message
    assert caught.value.hint
