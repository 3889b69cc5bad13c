"""How values and fields are laid out for people."""

import json

from hypothesis import given
from hypothesis import strategies as st

from cli_support import rendered
from tallystick.cli.fields import Fields
from tallystick.cli.values import MAX_LINES, WIDTH, compact, pretty

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(max_codepoint=0x17F)),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)
ARTIFACT = {"$artifact": "sha256:" + "ab" * 32, "media_type": "image/png", "bytes": 23390}


@given(JSON)
def test_a_value_that_fits_on_the_screen_is_shown_whole(value: object) -> None:
    shown = pretty(value)
    if shown.count("\n") < MAX_LINES and "$artifact" not in shown and "\\x" not in shown:
        assert json.loads(shown) == value


def test_a_value_is_opened_only_where_it_is_too_wide() -> None:
    wide = ["x" * 40, "y" * 40, "z" * 40]
    assert pretty({"a": {"b": 1}, "c": wide}).split("\n") == [
        "{",
        '  "a": {"b": 1},',
        '  "c": [',
        f'    "{wide[0]}",',
        f'    "{wide[1]}",',
        f'    "{wide[2]}"',
        "  ]",
        "}",
    ]


def test_an_artifact_is_one_line_with_a_short_hash() -> None:
    lines = pretty({"images": [ARTIFACT] * 3}).split("\n")
    assert lines[2] == '    {"$artifact": "sha256:abababababab...", "media_type": "image/png", "bytes": 23390},'
    assert max(map(len, lines)) <= WIDTH


def test_a_long_value_is_cut_and_says_so() -> None:
    assert pretty(["x" * 50] * 100).split("\n")[-1] == "... 62 more lines; --json prints all of it"


def test_short_forms_keep_to_their_limit() -> None:
    assert compact({"prompt": "x" * 100}, 20) == '{"prompt":"xxxxxx...'
    assert compact("abcd", 6) == '"abcd"'


def test_fields_are_wrapped_under_their_beginning_on_a_terminal_only() -> None:
    fields = Fields([("error", "one two three four five six seven"), ("", ""), ("hint", "")])

    assert rendered(fields, width=40, terminal=True) == [
        "  error  one two three four five six",
        "         seven",
    ]
    assert rendered(fields, width=40) == ["  error  one two three four five six seven"]
