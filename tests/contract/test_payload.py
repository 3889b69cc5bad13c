"""One rule of equality, and clear refusals of all that it does not cover (contract.md, section 3)."""

import collections
import copy
import datetime as dt
import decimal
import enum
import fractions
import hashlib
import json
import math
import pathlib
import struct
import uuid
from itertools import combinations
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tallystick.contract.payload import MAX_BYTES, MAX_DEPTH, FieldChange, PayloadError, canonical, difference, digest

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 64) - 1)
    | st.integers(-2, 2)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([0.0, -0.0, 1.0, 2.0])
    | texts
)
payloads = st.recursive(
    scalars, lambda parts: st.lists(parts, max_size=4) | st.dictionaries(texts, parts, max_size=4), max_leaves=12
)


def by_the_rule(value: Any) -> Any:
    """Spell the documented rule out, another way than the encoding does."""
    if isinstance(value, dict):
        return ("map", frozenset((tuple(map(ord, key)), by_the_rule(item)) for key, item in value.items()))
    if isinstance(value, list | tuple):
        return ("list", tuple(map(by_the_rule, value)))
    if isinstance(value, float):
        return ("float", struct.pack(">d", value))
    return (type(value).__name__, value)


@given(payloads, payloads)
@example(1, 1.0)
@example(1, True)
@example(0.0, -0.0)
@example({"a": [1]}, {"a": [1.0]})
@example("é", "e\u0301")
def test_two_encodings_are_equal_exactly_when_the_values_are(one: Any, other: Any) -> None:
    equal = by_the_rule(one) == by_the_rule(other)
    assert (canonical(one) == canonical(other)) is equal
    assert (difference(one, other) == []) is equal


@given(payloads, st.randoms(use_true_random=False))
def test_order_of_keys_sharing_and_tuples_do_not_show(value: Any, random: Any) -> None:
    def shuffled(part: Any) -> Any:
        if isinstance(part, dict):
            keys = list(part)
            random.shuffle(keys)
            return {key: shuffled(part[key]) for key in keys}
        if isinstance(part, list):
            return (tuple if random.random() < 0.5 else list)(map(shuffled, part))
        return part

    assert canonical(shuffled(value)) == canonical(value)
    assert canonical([value, value]) == canonical([value, copy.deepcopy(value)])


@given(payloads)
def test_a_payload_survives_the_wire(value: Any) -> None:
    arrived = msgspec.msgpack.decode(msgspec.msgpack.encode(value))
    stored = msgspec.msgpack.decode(canonical(value))
    assert canonical(arrived) == canonical(stored) == canonical(value)
    assert by_the_rule(stored) == by_the_rule(value)
    assert digest(stored) == hashlib.sha256(canonical(value)).hexdigest()


@given(payloads)
def test_the_payload_itself_is_left_alone(value: Any) -> None:
    before = json.dumps(value)
    canonical(value)
    assert json.dumps(value) == before


def test_the_bytes_are_what_the_definition_says() -> None:
    value: Any = {"b": [1, -1, 1.0], "a": None, "\uffff": True, "\U0001f600": "é", "aa": {}}
    assert canonical(value) == (
        b"\x85"
        b"\xa1a\xc0"
        b"\xa2aa\x80"
        b"\xa1b\x93\x01\xff\xcb\x3f\xf0\x00\x00\x00\x00\x00\x00"
        b"\xa3\xef\xbf\xbf\xc3"
        b"\xa4\xf0\x9f\x98\x80\xa2\xc3\xa9"
    )


@pytest.mark.parametrize(
    "apart",
    [
        (1024, 1024.0),
        (True, 1),
        (False, 0),
        (-0.0, 0),
        (-0.0, 0.0),
        (0.1 + 0.2, 0.3),
        (None, "null"),
        ("1", 1),
        ([], {}),
    ],
)
def test_pairs_that_the_rule_tells_apart_are_named_as_a_change(apart: tuple[Any, Any]) -> None:
    assert digest({"size": apart[0]}) != digest({"size": apart[1]})
    (change,) = difference({"size": apart[0]}, {"size": apart[1]})
    assert str(change) == f"payload.size: {apart[0]!r} -> {apart[1]!r}"


def test_pairs_that_the_rule_calls_equal() -> None:
    assert digest({"size": 1e2}) == digest({"size": 100.0})
    assert digest((1, 2)) == digest([1, 2])
    assert digest({"a": None}) != digest({})


class Text(str):
    __slots__ = ()


class Fields(dict[str, Any]):
    pass


class Kind(enum.Enum):
    ONE = 1


async def work() -> None: ...


REFUSED: list[tuple[Any, str, str]] = [
    ({"a", "b"}, "is of type set", "sorted(...)"),
    (frozenset("a"), "is of type frozenset", "sorted(...)"),
    (b"x", "is of type bytes", "artifact"),
    (dt.datetime(2024, 1, 2, tzinfo=dt.UTC), "is of type datetime", ".isoformat()"),
    (dt.date(2024, 1, 2), "is of type date", ".isoformat()"),
    (dt.timedelta(1), "is of type timedelta", ".total_seconds()"),
    (decimal.Decimal(1), "is of type Decimal", "str(...)"),
    (fractions.Fraction(1), "is of type Fraction", "float(...)"),
    (uuid.UUID(int=1), "is of type UUID", "str(...)"),
    (pathlib.PurePosixPath("x"), "is of type PurePosixPath", "str(...)"),
    (Kind.ONE, "is of type Kind", ".value"),
    (range(3), "is of type range", "list(...)"),
    ({}.keys(), "is of type dict_keys", "list(...)"),
    ((x for x in "a"), "is of type generator", "list(...)"),
    (Text("a"), "is of type Text", "str(...)"),
    (Fields(), "is of type Fields", "dict(...)"),
    (collections.Counter("a"), "is of type Counter", "dict(...)"),
    (ValueError("x"), "is of type ValueError", "str(...)"),
    (work, "is of type function", "call it"),
    (object(), "is of type object", "lists and dicts"),
    (float("nan"), "is nan", "None"),
    (float("inf"), "is inf", "None"),
    (-math.inf, "is -inf", "None"),
    (1 << 64, "more than 64 bits", "string"),
    (-(1 << 63) - 1, "more than 64 bits", "string"),
    ("a\ud800", "lone surrogate", "remove it"),
    ({1: "a", "1": "b"}, "has the key 1, which is not a string", "str(1)"),
    ({None: 1}, "has the key None", "str(None)"),
    ({Text("a"): 1}, "has the key 'a'", "str('a')"),
    ({"\udfff": 1}, "lone surrogate", "remove it"),
]


@pytest.mark.parametrize(("value", "problem", "hint"), REFUSED, ids=[problem for _, problem, _ in REFUSED])
def test_a_value_that_is_no_payload_is_refused_with_its_path_and_what_to_write(
    value: Any, problem: str, hint: str
) -> None:
    with pytest.raises(PayloadError) as caught:
        canonical({"images": [1, (2, {"size": value})]})
    assert caught.value.path == "payload.images[1][1].size"
    assert problem in caught.value.message
    assert str(caught.value) == caught.value.message
    assert hint in caught.value.hint


def test_a_coroutine_that_was_not_awaited_is_named_as_such() -> None:
    coroutine = work()
    with pytest.raises(PayloadError) as caught:
        digest({"image": coroutine}, "result")
    coroutine.close()
    assert caught.value.path == "result.image"
    assert "await" in caught.value.hint


def test_a_key_that_is_no_word_is_quoted_in_the_path() -> None:
    with pytest.raises(PayloadError) as caught:
        canonical({'a "b"': {"k" * 100: math.nan}})
    assert caught.value.path == 'payload["a \\"b\\""]["' + "k" * 60 + '…"]'


def nested(levels: int) -> Any:
    value: Any = []
    for _ in range(levels - 1):
        value = [value]
    return value


def test_depth_is_limited_so_that_nothing_can_hold_itself() -> None:
    canonical(nested(MAX_DEPTH))
    with pytest.raises(PayloadError, match="nested deeper than 64 levels"):
        canonical(nested(MAX_DEPTH + 1))
    loop: dict[str, Any] = {}
    loop["self"] = loop
    with pytest.raises(PayloadError, match="nested deeper") as caught:
        canonical(loop)
    assert "holds itself" in caught.value.hint


def test_size_is_limited_also_where_parts_are_shared() -> None:
    canonical("x" * (MAX_BYTES - 5))
    shared: Any = ["x" * 1000]
    hollow: Any = []
    for _ in range(60):
        shared, hollow = [shared, shared], [hollow, hollow]
    floats = [0.5] * (MAX_BYTES // 8)
    for large in ("x" * MAX_BYTES, [None] * (MAX_BYTES + 1), floats, {"k" * MAX_BYTES: 1}, shared, hollow):
        with pytest.raises(PayloadError, match="payload is larger than 1,048,576 bytes"):
            canonical(large)


def test_a_difference_names_each_field_that_is_new_gone_or_other() -> None:
    old = {"prompt": "a mug", "size": 1024, "tags": ["a", "b"], "seed": 1, "deep": {"x": [1, {"y": None}]}}
    new = {"prompt": "a cup", "size": 1024, "tags": ["a"], "n": 2, "deep": {"x": [1, {"y": [0]}]}}
    assert difference(old, new) == [
        FieldChange("payload.deep.x[1].y", "None", "[0]"),
        FieldChange("payload.n", "(absent)", "2"),
        FieldChange("payload.prompt", "'a mug'", "'a cup'"),
        FieldChange("payload.seed", "1", "(absent)"),
        FieldChange("payload.tags[1]", "'b'", "(absent)"),
    ]


def test_long_texts_are_shown_where_they_part() -> None:
    style = "soft daylight, pale oak table, " * 5
    (change,) = difference({"p": style + "a wide frame" + style}, {"p": style + "a tall frame" + style})
    assert "…" in change.old
    assert "a wide frame" in change.old
    assert "a tall frame" in change.new
    assert len(change.old) < 70
    (change,) = difference("x" * 500, "x" * 500 + "y")
    assert (change.old, change.new) == ("'…" + "x" * 20 + "'", "'…" + "x" * 20 + "y'")


def test_large_values_and_many_changes_are_cut_short() -> None:
    (change,) = difference({"a": None}, {"a": {str(n): list(range(100)) for n in range(100)}})
    assert len(change.new) < 200
    assert len(difference(list(range(100)), [None] * 100)) == 8
    assert len(difference(list(range(100)), [None] * 100, limit=2)) == 2


def test_the_pairs_of_one_list_are_all_different() -> None:
    values: list[Any] = [
        None,
        True,
        False,
        0,
        1,
        0.0,
        -0.0,
        1.0,
        "",
        "0",
        [],
        {},
        [None],
        [[]],
        {"": None},
        {"a": 1},
        {"a": 1.0},
    ]
    assert not [(a, b) for a, b in combinations(values, 2) if digest(a) == digest(b)]
