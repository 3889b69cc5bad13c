"""Paths, filters and templates: what a configuration can say, and what it cannot."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.providers.http import paths
from tallystick.providers.http.filters import Attachment, FilterError
from tallystick.providers.http.paths import MISSING
from tallystick.providers.http.templates import SUBJECT, FilesNode, Template

ANSWER = {
    "data": [{"url": "a"}, {"b64": "x"}, {"url": "b", "tags": [1, 2]}],
    "choices": [{"message": {"content": '```json\n{"shots": [1, 2]}\n```'}}],
    "none": None,
    "odd key": {"x-y": 1},
}
WORDS = st.text("{}$|a ", max_size=6)
JSON = st.recursive(
    st.none() | st.integers() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("", ANSWER),
        ("data[0].url", "a"),
        ("data[*].url", ["a", "b"]),
        ("data[*].tags[*]", [[1, 2]]),
        ("data[2].tags[1]", 2),
        ("none", None),
        ("odd key.x-y", 1),
        ("data[3]", MISSING),
        ("data.url", MISSING),
        ("none.x", MISSING),
        ("choices[*].message.gone", []),
        ("choices.message[*]", MISSING),
    ],
)
def test_a_path_finds_what_stands_there(path: str, found: Any) -> None:
    assert paths.parse(path).find(ANSWER) == found


@pytest.mark.parametrize("text", [".", "a..b", "a[", "a[x]", "a[-1]", "[*", "a]", "a{b}"])
def test_what_is_no_path_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a path"):
        paths.parse(text)


@pytest.mark.parametrize(
    ("path", "value", "lacks"),
    [
        ("data[0]", {"data": []}, True),
        ("data[0]", {"data": [1]}, False),
        ("data[0]", {"error": "busy"}, False),
        ("job", {"job": None}, True),
        ("job", {}, False),
        ("", None, True),
        ("", {}, False),
        ("data[0]", MISSING, False),
    ],
)
def test_only_an_answer_to_the_question_says_that_there_is_nothing(path: str, value: Any, lacks: bool) -> None:
    assert paths.parse(path).lacks(value) is lacks


@pytest.mark.parametrize(
    ("template", "filled"),
    [
        ("{data[0].url}", "a"),
        ("{data}", ANSWER["data"]),
        ("{none}", None),
        ("at {data[0].url} and {data[2].url}", "at a and b"),
        ("tags {data[2].tags}, none {none}", "tags [1, 2], none null"),
        ("{{literally}} {data[0].url}", "{literally} a"),
        ("{{}}", "{}"),
        ("{gone}", MISSING),
        ("and {gone}", MISSING),
        ({"a": "{gone}", "b": 1}, {"b": 1}),
        ({"a": {"b": {"c": "{gone}"}}, "d": 1}, {"d": 1}),
        ({"a": {}}, {"a": {}}),
        ({"a": "{gone}"}, MISSING),
        (["{gone}", 1], [1]),
        ([{"a": "{gone}", "b": 1}, {"b": 2}], [{"b": 2}]),
        ([{"a": {"b": "{gone}"}, "c": 1}], []),
        ({"$when": "none", "then": "{data[0].url}"}, "a"),
        ({"x": {"$when": "gone", "then": 1}, "y": 2}, {"y": 2}),
        ([{"$when": "gone", "then": 1}, 2], [2]),
        ("{choices[0].message.content|parse|at:shots[1]}", 2),
        ("{choices[0].message.content|parse|at:gone}", MISSING),
        ("{gone|parse}", MISSING),
        ("{data[2].tags|json}", "[1, 2]"),
        ("{$seed|int31}", 5),
        ("{$size|width}x{$size|height}", "64x48"),
        ("{$nobody}", MISSING),
        (3.5, 3.5),
        (None, None),
    ],
)
def test_a_template_is_filled_in(template: Any, filled: Any) -> None:
    scope = {SUBJECT: ANSWER, "$seed": 2**40 + 5, "$size": "64x48"}
    assert Template(template).fill(scope) == filled


def test_bytes_are_sent_as_text() -> None:
    scope = {SUBJECT: {"image": Attachment(b"\x00\x01", "image/png")}}
    assert Template("{image|base64}").fill(scope) == "AAE="
    assert Template("{image|data_url}").fill(scope) == "data:image/png;base64,AAE="


def test_files_are_given_by_the_one_who_has_them() -> None:
    template = Template({"images": {"$files": "data[*]", "url": "url"}, "one": {"$file": "best", "base64": ""}})
    seen: list[FilesNode] = []

    def files(node: FilesNode) -> str:
        seen.append(node)
        return node.source.path.text

    assert template.fill({SUBJECT: {}}, files) == {"images": "data[*]", "one": "best"}
    assert seen == list(template.files)
    assert [node.many for node in template.files] == [True, False]


@pytest.mark.parametrize(
    ("template", "value", "said"),
    [
        ("{x|parse}", "{", "the text is not JSON"),
        ("{x|parse}", 3, "only text can be read as JSON"),
        ("{x|base64}", "abc", "only an artifact has bytes"),
        ("{x|int31}", "7", "only an integer"),
        ("{x|int31}", True, "only an integer"),
        ("{x|width}", "2K", 'only a size like "1024x768"'),
    ],
)
def test_a_filter_that_cannot_take_its_value_says_so(template: str, value: Any, said: str) -> None:
    with pytest.raises(FilterError, match=said):
        Template(template).fill({SUBJECT: {"x": value}})


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ({"a": [{"b": "{x|shout}"}]}, r'a\[0\]\.b: there is no filter "shout"; there are at:PATH, base64'),
        ({"a": "{x|parse:1}"}, 'a: there is no filter "parse:1"'),
        ({"a": "{}"}, "a: a reference is empty"),
        ({"a": "{b..c}"}, 'a: "b..c" is not a path'),
        ({"a": "one { alone"}, 'a: the brace at 4 of "one { alone" stands alone; write it twice'),
        ({"a": "one } alone"}, "stands alone"),
        ({"a": {"$where": 1}}, r'a: "\$where" is not understood'),
        ({"a": {"$when": "x"}}, r'a: "\$when" is not understood'),
        ({"a": {"$when": "x", "then": 1, "else": 2}}, r'"\$when" is not understood'),
        ({"a": {"$files": "x"}}, "a: files are at base64, at url, or at either"),
        ({"a": {"$files": "x", "url": "y", "size": "z"}}, "nothing else can be said of them"),
    ],
)
def test_a_template_that_cannot_be_is_refused_with_its_place(template: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Template(template)


@given(JSON)
def test_a_template_without_references_is_itself(data: Any) -> None:
    escaped = _escaped(data)
    if not _special(data):
        assert Template(escaped).fill({}) == data


@given(st.dictionaries(st.sampled_from(["a", "b", "c"]), JSON))
def test_a_reference_is_the_value_itself_or_left_out(payload: dict[str, Any]) -> None:
    filled = Template({"keep": True, "a": "{a}", "b": "{b}", "c": "{c}"}).fill({SUBJECT: payload})
    assert filled == {"keep": True, **payload}


@given(st.text("{}$|.[]*a0", max_size=20))
def test_any_text_is_a_template_or_is_refused_in_words(text: str) -> None:
    try:
        template = Template(text)
    except ValueError:
        return
    assert template.fill({SUBJECT: {}}) is not None


def _escaped(data: Any) -> Any:
    match data:
        case str():
            return data.replace("{", "{{").replace("}", "}}")
        case list():
            return [_escaped(one) for one in data]
        case dict():
            return {key: _escaped(value) for key, value in data.items()}
    return data


def _special(data: Any) -> bool:
    match data:
        case list():
            return any(map(_special, data))
        case dict():
            return any(key.startswith("$") for key in data) or any(map(_special, data.values()))
    return False
