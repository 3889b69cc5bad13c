"""A rate of calls, as a bucket of tokens that fills with time: each call takes one."""

#: ``5/s``, ``300/min`` or ``40/h``.
PATTERN = r"^[1-9][0-9]{0,6}/(s|min|h)$"
_SECONDS = {"s": 1, "min": 60, "h": 3_600}


class TokenBucket:
    """So many calls in a time, one second's worth of them at once; what was not used for a while is not saved up.

    Args:
        rate: calls in a time, see ``PATTERN``.
    """

    def __init__(self, rate: str) -> None:
        number, _, unit = rate.partition("/")
        self._each = _SECONDS[unit] / int(number)
        #: Seconds of filling that the bucket holds beyond the token which is taken.
        self._slack = max(0.0, 1.0 - self._each)
        self._full_at = float("-inf")

    def wait(self, now: float) -> float:
        """Return how many seconds the next call must wait; ``now`` is monotonic."""
        return max(0.0, self._full_at - self._slack - now)

    def take(self, now: float) -> None:
        """Take the token of a call that starts ``now``."""
        self._full_at = max(self._full_at, now) + self._each
