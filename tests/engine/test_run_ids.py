"""Run ids: sortable by age, and named by what a person remembers of one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.contract.errors import UsageError
from tallystick.engine.run_ids import new_run_id, resolve

KNOWN = ["1kc00000zz111", "1kb00000aa222", "1ka00000aa111"]


@given(st.lists(st.integers(0, 35_000_000_000_000), min_size=2, max_size=20, unique=True))
def test_ids_sort_by_age(milliseconds: list[int]) -> None:
    ids = [new_run_id(moment / 1000) for moment in sorted(milliseconds)]
    assert [one[:9] for one in ids] == sorted(one[:9] for one in ids)


def test_ids_of_one_moment_differ_and_can_be_read_aloud() -> None:
    ids = {new_run_id(1_750_000_000.0) for _ in range(200)}
    assert len(ids) == 200
    assert all(len(one) == 14 and one.isalnum() and one == one.lower() and not set("ilou") & set(one) for one in ids)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("last", KNOWN[0]),
        (" LAST ", KNOWN[0]),
        (KNOWN[1], KNOWN[1]),
        (KNOWN[1].upper(), KNOWN[1]),
        ("1kc", KNOWN[0]),
        ("222", KNOWN[1]),
        ("aa111", KNOWN[2]),
    ],
)
def test_a_run_is_found_by_any_part_that_names_it_alone(text: str, found: str) -> None:
    assert resolve(text, KNOWN) == found


@pytest.mark.parametrize(
    ("text", "known", "said"),
    [
        ("last", [], "there is no run yet"),
        ("1k", KNOWN, "fits 3 runs"),
        ("111", KNOWN, "fits 2 runs"),
        ("nobody", KNOWN, "no run is called 'nobody'"),
        ("", KNOWN, "no run is called ''"),
        ("  ", KNOWN, "no run is called"),
    ],
)
def test_what_names_no_run_or_several_is_refused_with_the_way_on(text: str, known: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said) as refused:
        resolve(text, known)
    assert refused.value.hint


def test_a_whole_id_is_that_run_though_another_ends_in_it() -> None:
    assert resolve("abc", ["xxabc", "abc"]) == "abc"
