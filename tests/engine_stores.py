"""Stores that refuse, for tests of what the engine makes of it."""

from collections.abc import Callable, Sequence

from tallystick.contract.errors import StoreUnavailableError
from tallystick.contract.events import AnyEvent, FileRef
from tallystick.store.memory import MemoryDisk, MemoryStore
from tallystick.store.protocol import RunRow


class RefusingStore(MemoryStore):
    """Refuses batches that hold a refused event, and files while ``files`` says so.

    Attributes:
        refuses: says of each event whether it cannot be written.
        refused: how many batches were refused.
        dead: True after ``die``: nothing is written any more, as if the process had ended there.
    """

    def __init__(self, disk: MemoryDisk) -> None:
        super().__init__(disk)
        self.refuses: Callable[[AnyEvent], bool] = lambda _: False
        self.refuses_files = False
        self.refused = 0
        self.dead = False

    def heal(self) -> None:
        self.refuses = lambda _: False
        self.refuses_files = False

    def die(self) -> None:
        self.dead = True

    def append(self, events: Sequence[AnyEvent], rows: Sequence[RunRow] = ()) -> int:
        if self.dead or any(map(self.refuses, events)):
            self.refused += 1
            raise StoreUnavailableError("the disk is full")
        return super().append(events, rows)

    def put_files(self, items: Sequence[tuple[bytes, str]]) -> list[FileRef]:
        if self.dead or self.refuses_files:
            self.refused += 1
            raise StoreUnavailableError("the disk is full")
        return super().put_files(items)


class Nth:
    """Refuses the nth event that is asked about, counted from 1, whenever it is asked about it again.

    Args:
        nth: which one.
        onwards: refuse every later one too.
    """

    def __init__(self, nth: int, *, onwards: bool = False) -> None:
        self._nth = nth
        self._onwards = onwards
        self._seen: list[AnyEvent] = []

    def __call__(self, event: AnyEvent) -> bool:
        number = next((at for at, seen in enumerate(self._seen, 1) if seen is event), None)
        if number is None:
            self._seen.append(event)
            number = len(self._seen)
        return number == self._nth or (self._onwards and number > self._nth)
