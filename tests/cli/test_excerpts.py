from hypothesis import given
from hypothesis import strategies as st

from tallystick.cli.excerpts import MAX_WIDTH, excerpt, split_lines
from tallystick.cli.findings import NamedSource, counterexample, verdict, violation
from tallystick.contract.source import Counterexample, Span, Violation

SOURCE = """\
async def orchestrate(ctx, args):
    while True:
        await ctx.run("text.generate", {"prompt": "x"})
"""


def shown(source: str, span: Span) -> str:
    return excerpt(split_lines(source), span, "shots.py").plain


def test_a_span_is_shown_with_its_place_its_line_and_carets() -> None:
    assert shown(SOURCE, Span(2, 4, 2, 14)).split("\n") == [
        " --> shots.py:2:5",
        "  |",
        "2 |     while True:",
        "  |     ^^^^^^^^^^",
    ]


def test_a_span_over_lines_is_underlined_on_each() -> None:
    assert shown(SOURCE, Span(2, 4, 3, 55)).split("\n") == [
        " --> shots.py:2:5",
        "  |",
        "2 |     while True:",
        "  |     ^^^^^^^^^^^",
        '3 |         await ctx.run("text.generate", {"prompt": "x"})',
        "  |         " + "^" * 47,
    ]


def test_a_long_span_is_cut() -> None:
    lines = [f"x{number}" for number in range(30)]
    text = shown("\n".join(lines), Span(1, 0, 30, 3))
    assert text.endswith("6 | x5\n  | ^^\n  | ...")


def test_carets_stand_under_wide_characters_and_tabs() -> None:
    assert shown("\tx = '漢字' + y", Span(1, 12, 1, 13)).split("\n")[2:] == [
        "1 |     x = '漢字' + y",
        "  |                  ^",
    ]


def test_a_long_line_is_cut_around_the_span() -> None:
    text = shown("a" * 5_000 + "BAD" + "c" * 5_000, Span(1, 5_000, 1, 5_003))
    code, carets = text.split("\n")[2:]
    assert code == "1 | ..." + "a" * 50 + "BAD" + "c" * (MAX_WIDTH - 53) + "..."
    assert carets.index("^") == code.index("BAD")
    assert carets.count("^") == 3


def test_control_and_direction_characters_are_escaped() -> None:
    text = shown("x = '\x1b[2J\u202e'", Span(1, 4, 1, 11))
    assert "1 | x = '\\x1b[2J\\u202e'" in text
    assert "\x1b" not in text


@given(st.text(), *[st.integers(0, 12)] * 4)
def test_any_span_over_any_source_can_be_shown(source: str, line: int, column: int, lines: int, columns: int) -> None:
    text = excerpt(split_lines(source), Span(line + 1, column, line + 1 + lines, columns), "f").plain
    assert text.startswith(" ")
    assert "-->" in text


@given(st.text(alphabet=st.characters(max_codepoint=0x2FF)))
def test_nothing_that_drives_a_terminal_is_ever_shown(source: str) -> None:
    text = shown(source, Span(1, 0, 3, 4))
    assert not [c for c in text if (ord(c) < 32 and c != "\n") or 0x7F <= ord(c) < 0xA0]


def test_a_violation_reads_like_a_compilers_message() -> None:
    found = Violation("R03", "error", Span(2, 4, 2, 14), "this loop has no static bound", "write for _ in range(8)")
    assert violation(found, NamedSource("shots.py", SOURCE)).plain.split("\n") == [
        "error[R03]: this loop has no static bound",
        " --> shots.py:2:5",
        "  |",
        "2 |     while True:",
        "  |     ^^^^^^^^^^",
        "   = help: write for _ in range(8)",
    ]


def test_a_counterexample_shows_the_committed_call_the_new_one_and_the_way_out() -> None:
    old = NamedSource("revision 0", 'x = await ctx.run("a.b", {"n": 1})')
    new = NamedSource("new.py", '\nx = await ctx.run("a.b", {"n": 2})')
    found = Counterexample(
        site="orchestrate/#1",
        kind="call_changed",
        message="the committed call has another expression",
        hint="leave it as it is and append a new call",
        old_span=Span(1, 10, 1, 34),
        old_text='ctx.run("a.b", {"n": 1})',
        new_span=Span(2, 10, 2, 34),
        new_text='ctx.run("a.b", {"n": 2})',
    )
    assert counterexample(found, old, new).plain.split("\n") == [
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
    found = Counterexample(
        site="orchestrate/#1",
        kind="removed",
        message="the committed call is gone",
        hint="",
        old_span=Span(7, 10, 8, 6),
        old_text='ctx.run("a.b",\n    x)',
        moved_to="draw/#1",
    )
    assert counterexample(found, later, later).plain.split("\n")[2:] == [
        " --> an earlier revision:7:11",
        "  |",
        '7 |           ctx.run("a.b",',
        "  |           ^^^^^^^^^^^^^^",
        "8 |     x)",
        "  |     ^^",
        "   = note: an equal call stands at draw/#1",
    ]


def test_the_verdict_counts() -> None:
    error = Violation("R03", "error", Span(1, 0, 1, 1), "m", "h")
    warning = Violation("R12", "warning", Span(1, 0, 1, 1), "m", "h")
    assert verdict([error, error, warning]).plain == "2 errors, 1 warning"
    assert verdict([]).plain == "no findings"
