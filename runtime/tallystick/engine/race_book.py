"""The host's side of a launch's races: who is running, who has won, whose calls nobody waits for (contract.md, 6.4)."""

from collections.abc import Mapping

import msgspec

from tallystick.contract.identity import Identity, Path
from tallystick.contract.source import SiteFact
from tallystick.sandbox.frames import Race, Won, is_race_step, race_step


class _Open(msgspec.Struct):
    identity: Identity
    width: int
    winner: int | None
    written: bool


class RaceBook:
    """The races of one launch.

    Attributes:
        invoked: the races that the script has reached.
    """

    def __init__(self, sites: Mapping[str, SiteFact]) -> None:
        self.invoked: set[Identity] = set()
        self._sites = sites
        self._open: dict[int, _Open] = {}
        self._branches: set[Path] = set()
        self._lost: set[Path] = set()

    def open(self, frame: Race, winner: int | None) -> Identity:
        """Take note of a race that starts; ``winner`` is the journalled one."""
        identity = Identity(frame.site, frame.path, frame.occurrence)
        self.invoked.add(identity)
        self._open[frame.id] = _Open(identity, frame.width, winner, written=winner is not None)
        branches = [self._path(identity, branch) for branch in range(frame.width)]
        self._branches.update(branches if winner is None else branches[winner : winner + 1])
        return identity

    def won(self, frame: Won) -> tuple[Identity, str, int] | None:
        """Take note of a winner: the race's identity, its fingerprint and width; None where there can be none."""
        race = self._open.get(frame.id)
        if race is None or race.winner is not None or frame.winner >= race.width:
            return None
        race.winner = frame.winner
        self._lost.update(self._path(race.identity, branch) for branch in range(race.width) if branch != frame.winner)
        return race.identity, self._sites[race.identity.site].fingerprint, race.width

    def written(self, race: int) -> int | None:
        """Take note that a winner is durable, and return it."""
        found = self._open[race]
        found.written = True
        return found.winner

    @property
    def unwritten(self) -> bool:
        """Whether a winner waits to become durable."""
        return any(race.winner is not None and not race.written for race in self._open.values())

    def has_begun(self, path: Path) -> bool:
        """Whether every branch of a race that a path runs through was started in this launch."""
        return all(path[: depth + 1] in self._branches for depth, step in enumerate(path) if is_race_step(step))

    def is_lost(self, path: Path) -> bool:
        """Whether a path lies in a branch that lost a race of this launch."""
        return bool(self._lost) and any(path[: depth + 1] in self._lost for depth in range(len(path)))

    @staticmethod
    def _path(race: Identity, branch: int) -> Path:
        return (*race.path, race_step(race.site, race.occurrence, branch))
