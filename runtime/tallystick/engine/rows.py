"""The index line of a run, read off its history."""

from tallystick.contract.events import RunCreated, RunStatus
from tallystick.contract.history import History
from tallystick.store.protocol import RunRow


def row_of(history: History, status: RunStatus, at: float, *, live: bool, created: RunCreated | None = None) -> RunRow:
    """Return the line for a run that is now in ``status``; ``created`` where the history does not hold it yet."""
    first = created or history.created
    return RunRow(
        run=history.run,
        name=first.name if first is not None else "",
        status=status,
        created=first.at if first is not None else at,
        updated=at,
        live=live,
        spent=history.spent,
        unpriced=history.unpriced,
    )
