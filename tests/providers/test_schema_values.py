from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.providers.local.dice import Dice
from tallystick.providers.local.schema_values import SchemaError, value_for

WORDS = ["parcel", "harbour", "lamp"]


def make(schema: Any, seed: int = 1) -> Any:
    return value_for(schema, WORDS, Dice(seed))


def test_a_triage_schema_gets_a_triage() -> None:
    schema = {
        "type": "object",
        "properties": {
            "category": {"type": "string", "enum": ["billing", "shipping"]},
            "urgency": {"type": "integer", "minimum": 1, "maximum": 5},
            "reason": {"type": "string", "maxLength": 12},
            "tags": {"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 4},
        },
        "required": ["category", "urgency"],
        "additionalProperties": False,
    }
    for seed in range(50):
        data = make(schema, seed)
        assert set(data) == {"category", "urgency", "reason", "tags"}
        assert data["category"] in ("billing", "shipping")
        assert type(data["urgency"]) is int
        assert 1 <= data["urgency"] <= 5
        assert 0 < len(data["reason"]) <= 12
        assert 2 <= len(data["tags"]) <= 4
        assert all(isinstance(tag, str) for tag in data["tags"])


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"const": {"a": [1]}}, {"a": [1]}),
        ({"enum": [None]}, None),
        ({"type": ["null", "string"]}, None),
        ({"type": "integer", "exclusiveMinimum": 4, "exclusiveMaximum": 6}, 5),
        ({"type": "integer", "minimum": 7, "maximum": 13, "multipleOf": 5}, 10),
        ({"type": "number", "minimum": 2.5, "maximum": 2.5}, 2.5),
        ({"anyOf": [{"const": 1}, {"const": 2}]}, 1),
        ({"allOf": [{"properties": {"a": {"const": 1}}}, {"properties": {"b": {"const": 2}}}]}, {"a": 1, "b": 2}),
        ({"$ref": "#/$defs/one", "$defs": {"one": {"const": 1}}}, 1),
        ({"prefixItems": [{"const": 1}, {"const": 2}], "maxItems": 2}, [1, 2]),
        ({"type": "object", "properties": {}, "additionalProperties": False}, {}),
        ({"type": "string", "maxLength": 0}, ""),
    ],
)
def test_a_schema_that_leaves_one_value_gets_it(schema: Any, value: Any) -> None:
    assert make(schema) == value


def test_a_required_field_without_a_definition_is_made_of_what_others_may_be() -> None:
    assert isinstance(make({"required": ["a"], "additionalProperties": {"type": "integer"}})["a"], int)
    assert isinstance(make({"type": "object", "required": ["a"]})["a"], str)


def test_a_map_of_strings_is_a_map_of_strings() -> None:
    data = make({"type": "object", "additionalProperties": {"type": "string"}})
    assert data
    assert all(isinstance(value, str) for value in data.values())


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (False, "False is not a schema"),
        ("string", "'string' is not a schema"),
        ({"type": "strin"}, "no type 'strin'"),
        ({"type": "string", "pattern": "^a+$"}, 'schema: the local provider cannot make values for "pattern"'),
        (
            {"type": "object", "required": ["size"], "additionalProperties": False},
            'required property "size" is not defined',
        ),
        ({"properties": {"a": {"items": {"enum": []}}}}, r'schema\.a\[0\]: "enum" must be a list'),
        ({"properties": [1]}, "a keyword has a value of the wrong kind"),
        ({"type": "integer", "multipleOf": 0}, "a keyword has a value of the wrong kind"),
        ({"type": "integer", "minimum": "1"}, "a keyword has a value of the wrong kind"),
        ({"type": "integer", "minimum": 3, "maximum": 2}, "nothing lies between 3 and 2"),
        ({"type": "string", "minLength": 10**9}, "nothing lies between"),
        ({"type": "array", "minItems": 10**9}, "asks for more than 5,000 values"),
        ({"type": "array", "minItems": 2, "uniqueItems": True, "items": {"const": 1}}, "2 distinct items"),
        ({"$ref": "#"}, "nested deeper than 24 levels"),
        ({"$ref": "#/$defs/none"}, "refers to nothing"),
        ({"$ref": "https://example.org/s.json"}, "refers to another document"),
        ({"allOf": [True]}, "is not a schema that can be merged"),
    ],
)
def test_a_schema_without_a_value_is_refused_with_the_place(schema: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        make(schema)


NUMBER = st.integers(-100, 100) | st.integers(-100_000, 100_000).map(lambda thousandths: thousandths / 1_000)


@given(low=NUMBER, high=NUMBER, exclusive=st.booleans(), seed=st.integers(0, 9))
def test_a_number_lies_within_its_limits(low: float, high: float, exclusive: bool, seed: int) -> None:
    names = ("exclusiveMinimum", "exclusiveMaximum") if exclusive else ("minimum", "maximum")
    schema = {"type": "number", names[0]: low, names[1]: high}
    try:
        value = make(schema, seed)
    except SchemaError:
        assert low >= high if exclusive else low > high
    else:
        assert low < value < high if exclusive else low <= value <= high


@given(low=st.integers(-50, 50), high=st.integers(-50, 50), step=st.integers(1, 9), seed=st.integers(0, 9))
def test_a_whole_number_is_a_multiple_within_its_limits(low: int, high: int, step: int, seed: int) -> None:
    possible = [value for value in range(low, high + 1) if value % step == 0]
    schema = {"type": "integer", "minimum": low, "maximum": high, "multipleOf": step}
    if possible:
        assert make(schema, seed) in possible
    else:
        with pytest.raises(SchemaError):
            make(schema, seed)
