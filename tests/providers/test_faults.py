import pytest

from tallystick.providers.faults import KINDS, Fault, ordered, parse_fault
from tallystick.providers.protocol import Refused, Unknown, Unusable


def test_a_fault_is_capability_execution_kind() -> None:
    fault = parse_fault("image.generate:4:invalid_request")
    assert (fault.capability, fault.execution, fault.kind) == ("image.generate", 4, "invalid_request")
    assert fault.text


def test_the_words_may_follow_and_may_hold_colons() -> None:
    assert parse_fault("image.edit:1:rate_limited:429: retry later").text == "429: retry later"
    assert parse_fault("image.edit:1:rate_limited:").text == parse_fault("image.edit:1:rate_limited").text


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_can_be_ordered_and_ends_as_the_outcome_table_says(kind: str) -> None:
    outcome = parse_fault(f"text.generate:2:{kind}:words").outcome(1_000)
    match kind:
        case "unknown" | "timeout":
            assert outcome == Unknown(reason="words", kind="timeout")
            assert outcome.cost is None
        case "unusable":
            assert outcome == Unusable(raw={}, text="words", cost=1_000)
        case _:
            assert isinstance(outcome, Refused)
            assert (outcome.kind, outcome.text, outcome.cost) == (kind, "words", 0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("image.generate", "write capability:execution:kind"),
        ("image.generate:4", "write capability:execution:kind"),
        ("", "write capability:execution:kind"),
        ("image.generat:4:timeout", 'did you mean "image.generate"'),
        ("image.generate:0:timeout", 'the execution is "0"'),
        ("image.generate:-1:timeout", 'the execution is "-1"'),
        ("image.generate:²:timeout", 'the execution is "²"'),
        ("image.generate:four:timeout", 'the execution is "four"'),
        ("image.generate:4:timeot", 'did you mean "timeout"'),
        ("image.generate:4:zzz", "there are invalid_request, unauthorized"),
    ],
)
def test_what_is_no_fault_is_refused_with_the_part_that_is_wrong(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_fault(text)


def test_only_the_ordered_execution_fails() -> None:
    faults = ("image.generate:2:timeout:first", "text.generate:1:unavailable", "image.generate:2:unusable")
    assert ordered(faults, "image.generate", 1) is None
    assert ordered(faults, "image.generate", 2) == Fault("image.generate", 2, "timeout", "first")
    assert ordered(faults, "text.generate", 2) is None
    assert ordered((), "text.generate", 1) is None
