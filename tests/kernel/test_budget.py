"""The restart budget: a pure decision on times."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.kernel import RestartBudget


@pytest.mark.parametrize(
    ("restarts", "now", "expected"),
    [
        ((), 0.0, ((0.0,), 1.0)),
        ((0.0,), 9.0, ((0.0, 9.0), 2.0)),
        ((0.0, 5.0), 9.0, ((0.0, 5.0, 9.0), 4.0)),
        ((0.0, 5.0, 9.0), 9.5, ((0.0, 5.0, 9.0), None)),
        ((0.0, 5.0, 9.0), 10.0, ((5.0, 9.0, 10.0), 4.0)),
        ((0.0, 5.0, 9.0), 100.0, ((100.0,), 1.0)),
    ],
)
def test_what_lies_a_period_back_no_longer_counts(
    restarts: tuple[float, ...], now: float, expected: tuple[tuple[float, ...], float | None]
) -> None:
    assert RestartBudget(intensity=3, period=10, backoff=1).spend(restarts, now) == expected


@given(
    st.lists(st.floats(0, 5), max_size=60),
    st.integers(0, 10),
    st.floats(0.1, 20),
    st.floats(0, 10),
    st.floats(0, 30),
)
def test_no_period_ever_holds_more_restarts_than_the_intensity(
    gaps: list[float], intensity: int, period: float, backoff: float, limit: float
) -> None:
    budget = RestartBudget(intensity=intensity, period=period, backoff=backoff, backoff_limit=limit)
    state, now, granted = tuple[float, ...](), 0.0, list[float]()
    for gap in gaps:
        now += gap
        state, delay = budget.spend(state, now)
        if delay is not None:
            granted.append(now)
            assert delay <= limit
        assert sum(now - at < period for at in granted) <= intensity
