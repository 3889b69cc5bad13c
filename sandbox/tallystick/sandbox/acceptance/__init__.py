"""The acceptance of a sandbox: every way out that we know of, tried on a driver, as data.

``run`` tries them all and says of each whether the wall held; ``tallystick.engine.acceptance`` adds what only a whole
engine can show. Each try belongs to one of the named checks (``CHECKS``), which are what the table shows.

The tries are scripts and run in real guests of the driver. A script has no imports; ``inside.PRELUDE`` climbs out of
that, as any determined script could: the wall is the kernel, and then the host.
"""

from tallystick.sandbox.acceptance.check import CHECKS, Check
from tallystick.sandbox.acceptance.run import run

__all__ = ["CHECKS", "Check", "run"]
