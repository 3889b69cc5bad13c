import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli_support import rendered
from tallystick.cli.excerpts import MAX_WIDTH, Quotation, split_lines
from tallystick.cli.findings import NamedSource, counterexample, verdict, violation
from tallystick.engine.messages import Conflict, Diagnostic, Excerpt, Region

SOURCE = """\
async def orchestrate(ctx, args):
    while True:
        await ctx.run("text.generate", {"prompt": "x"})
"""


REGIONS = st.tuples(*[st.integers(0, 12)] * 4).map(
    lambda ends: Region(ends[0] + 1, ends[1], sum(ends[:3:2]) + 1, ends[3])
)
LOOP = Diagnostic(
    2, 4, 2, 14, rule="R03", severity="error", message="this loop has no static bound", hint="write for _ in range(8)"
)


def shown(source: str, region: Region, *, width: int = 180, terminal: bool = False) -> list[str]:
    return rendered(Quotation(split_lines(source), region, "shots.py"), width=width, terminal=terminal)


def test_a_region_is_shown_with_its_place_its_line_and_carets() -> None:
    assert shown(SOURCE, Region(2, 4, 2, 14)) == [
        " --> shots.py:2:5",
        "  |",
        "2 |     while True:",
        "  |     ^^^^^^^^^^",
    ]


def test_a_region_over_lines_is_underlined_on_each() -> None:
    assert shown(SOURCE, Region(2, 4, 3, 55)) == [
        " --> shots.py:2:5",
        "  |",
        "2 |     while True:",
        "  |     ^^^^^^^^^^^",
        '3 |         await ctx.run("text.generate", {"prompt": "x"})',
        "  |         " + "^" * 47,
    ]


def test_a_long_region_is_cut() -> None:
    lines = [f"x{number}" for number in range(30)]
    assert shown("\n".join(lines), Region(1, 0, 30, 3))[-3:] == ["6 | x5", "  | ^^", "  | ..."]


def test_carets_stand_under_wide_characters_and_tabs() -> None:
    assert shown("\tx = '漢字' + y", Region(1, 12, 1, 13))[2:] == [
        "1 |     x = '漢字' + y",
        "  |                  ^",
    ]


@pytest.mark.parametrize(("console", "width"), [(1_000, MAX_WIDTH), (60, 56)])
@pytest.mark.parametrize("terminal", [True, False])
def test_a_long_line_is_cut_around_the_region_to_what_there_is_room_for(
    console: int, width: int, terminal: bool
) -> None:
    source = "a" * 5_000 + "BAD" + "c" * 5_000
    code, carets = shown(source, Region(1, 5_000, 1, 5_003), width=console, terminal=terminal)[2:]
    assert len(code) == len("1 | ") + width
    assert code.startswith("1 | ...aaa")
    assert code.endswith("ccc...")
    assert carets.index("^") == code.index("BAD")
    assert carets.count("^") == 3


def test_control_and_direction_characters_are_escaped() -> None:
    lines = shown("x = '\x1b[2J\u202e'", Region(1, 4, 1, 11))
    assert lines[2] == "1 | x = '\\x1b[2J\\u202e'"


@given(st.text(), REGIONS, st.integers(10, 100), st.booleans())
def test_any_region_over_any_source_can_be_shown(source: str, region: Region, width: int, terminal: bool) -> None:
    assert "-->" in shown(source, region, width=width, terminal=terminal)[0]


@given(st.text(alphabet=st.characters(max_codepoint=0x2FF)))
def test_nothing_that_drives_a_terminal_is_ever_shown(source: str) -> None:
    text = "".join(shown(source, Region(1, 0, 3, 4)))
    assert not [c for c in text if ord(c) < 32 or 0x7F <= ord(c) < 0xA0]


def test_a_violation_reads_like_a_compilers_message() -> None:
    assert rendered(violation(LOOP, NamedSource("shots.py", SOURCE))) == [
        "error[R03]: this loop has no static bound",
        " --> shots.py:2:5",
        "  |",
        "2 |     while True:",
        "  |     ^^^^^^^^^^",
        "   = help: write for _ in range(8)",
    ]


def test_a_narrow_terminal_breaks_words_and_no_source() -> None:
    found = msgspec.structs.replace(LOOP, hint="write for _ in range(8), or give the list a slice with a bound")
    assert rendered(violation(found, NamedSource("shots.py", SOURCE)), width=40, terminal=True) == [
        "error[R03]: this loop has no static",
        "  bound",
        " --> shots.py:2:5",
        "  |",
        "2 |     while True:",
        "  |     ^^^^^^^^^^",
        "   = help: write for _ in range(8), or",
        "     give the list a slice with a bound",
    ]


def test_a_counterexample_shows_the_committed_call_the_new_one_and_the_way_out() -> None:
    old = NamedSource("revision 0", 'x = await ctx.run("a.b", {"n": 1})')
    new = NamedSource("new.py", '\nx = await ctx.run("a.b", {"n": 2})')
    found = Conflict(
        site="orchestrate/#1",
        kind="call_changed",
        message="the committed call has another expression",
        hint="leave it as it is and append a new call",
        old=Excerpt(1, 10, 1, 34, text='ctx.run("a.b", {"n": 1})'),
        new=Excerpt(2, 10, 2, 34, text='ctx.run("a.b", {"n": 2})'),
    )
    assert rendered(counterexample(found, old, new)) == [
        "error[call_changed]: the committed call has another expression",
        "   committed at orchestrate/#1:",
        " --> revision 0:1:11",
        "  |",
        '1 | x = await ctx.run("a.b", {"n": 1})',
        "  |           " + "^" * 24,
        "   in the rewrite:",
        " --> new.py:2:11",
        "  |",
        '2 | x = await ctx.run("a.b", {"n": 2})',
        "  |           " + "^" * 24,
        "   = help: leave it as it is and append a new call",
    ]


def test_a_call_committed_by_an_older_revision_is_shown_by_its_own_text() -> None:
    later = NamedSource("revision 1", "# rewritten\n")
    found = Conflict(
        site="orchestrate/#1",
        kind="removed",
        message="the committed call is gone",
        hint="",
        old=Excerpt(7, 10, 8, 6, text='ctx.run("a.b",\n    x)'),
        moved_to="draw/#1",
    )
    assert rendered(counterexample(found, later, later))[2:] == [
        " --> an earlier revision:7:11",
        "  |",
        '7 |           ctx.run("a.b",',
        "  |           ^^^^^^^^^^^^^^",
        "8 |     x)",
        "  |     ^^",
        "   = note: an equal call stands at draw/#1",
    ]


def test_the_verdict_counts() -> None:
    warning = msgspec.structs.replace(LOOP, severity="warning")
    assert verdict([LOOP, LOOP, warning]).plain == "2 errors, 1 warning"
    assert verdict([]).plain == "no findings"
