"""Named points where a crash can be asked for, so that tests can prove what a crash there leaves behind.

``TALLYSTICK_FAULT=name`` or ``name:k`` in the daemon's environment kills it with SIGKILL when it reaches that point
for the k-th time. Without the variable a point costs one comparison.
"""

import os
import signal

BEFORE_ATTEMPT = "before-attempt"
ATTEMPT_DURABLE = "attempt-durable"
SUBMITTED = "submitted"
LINKS_KNOWN = "links-known"
ANSWERED = "answered"
COMMITTED = "committed"
#: What every call comes by, and what only those come by whose provider tells of them before their end.
ALL = (BEFORE_ATTEMPT, ATTEMPT_DURABLE, ANSWERED, COMMITTED)
TOLD = (SUBMITTED, LINKS_KNOWN)

_name, _, _count = os.environ.get("TALLYSTICK_FAULT", "").partition(":")
_left = int(_count or 1)


def reach(point: str) -> None:
    """Die here if this is the point and the time that the environment asks for."""
    global _left  # noqa: PLW0603 - counts down over the life of the process
    if point != _name:
        return
    _left -= 1
    if _left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
