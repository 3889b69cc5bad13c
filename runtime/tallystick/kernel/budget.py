"""How often children may crash, and how long a restart waits: a pure decision."""

import msgspec

from tallystick.kernel.errors import ChildSpecError


class RestartBudget(msgspec.Struct, frozen=True, kw_only=True):
    """Up to ``intensity`` restarts in any ``period``; one more crash is the supervisor's own failure.

    The first restart waits ``backoff`` seconds, each further one within the period twice as long as the one before, up
    to ``backoff_limit``. The sum of the waits must stay below the period, or the budget is never spent.
    """

    intensity: int = 3
    period: float = 5.0
    backoff: float = 0.1
    backoff_limit: float = 30.0

    def __post_init__(self) -> None:
        """Refuse what makes no sense.

        Raises:
            ChildSpecError: a number is out of range.
        """
        if not 0 <= self.intensity <= 100:  # noqa: PLR2004 - more is a loop, not a budget
            raise ChildSpecError(f"a restart budget has an intensity from 0 to 100, not {self.intensity}")
        if self.period <= 0 or self.backoff < 0 or self.backoff_limit < 0:
            raise ChildSpecError(f"a restart budget has a positive period and no negative wait: {self}")

    def spend(self, restarts: tuple[float, ...], now: float) -> tuple[tuple[float, ...], float | None]:
        """Decide on one more restart.

        Args:
            restarts: times of the restarts so far, oldest first, in seconds of a monotonic clock.
            now: the time of the crash.

        Returns:
            The times that still count, this one included, and how long the restart waits; None when there is none left.
        """
        recent = tuple(at for at in restarts if now - at < self.period)
        if len(recent) >= self.intensity:
            return recent, None
        return (*recent, now), min(self.backoff * 2 ** len(recent), self.backoff_limit)
