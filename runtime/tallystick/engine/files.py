"""Files that are not results: brought in by a person, referred to by payloads, removed when nothing names them."""

from collections.abc import Iterator
from typing import Any

import anyio.to_thread
import msgspec

from tallystick.contract.errors import UsageError
from tallystick.engine.journal import Journal
from tallystick.engine.money_messages import FileReference, SweepReport, SweepRequest
from tallystick.kernel import Clock
from tallystick.providers.http.media import sniff
from tallystick.store.protocol import Store

#: What one file may have, in bytes.
MAX_FILE = 64 << 20
#: Seconds that a file is kept although nothing names it: its record may be on the way.
MIN_AGE = 3_600.0


class Files:
    """Takes files in, and removes those that nothing names."""

    def __init__(self, journal: Journal, clock: Clock) -> None:
        self._journal = journal
        self._clock = clock

    async def add(self, data: bytes, media_type: str | None) -> FileReference:
        """Keep a file by its content; the same bytes twice are one file.

        Args:
            data: its bytes.
            media_type: what it is, None to go by its first bytes.

        Raises:
            UsageError: it is empty, or nobody can tell what it is; nothing was kept.
            StoreError: the disk refused.
        """
        if not data:
            raise UsageError("the file is empty; nothing was kept")
        if media_type is None:
            media = sniff(data)
            if media is None:
                raise UsageError(
                    "nobody can tell from its first bytes what the file is; nothing was kept",
                    hint="name its type: --type image/tiff",
                )
            media_type = media.type
        ref = await self._journal.put_file(data, media_type)
        return FileReference(sha256=f"sha256:{ref.sha256}", media_type=ref.media_type, bytes=ref.size)

    async def sweep(self, request: SweepRequest) -> SweepReport:
        """Remove files that no event names and that nobody has touched for so long.

        Raises:
            UsageError: the time is too short for a record that is on the way.
            StoreCorruptError: an event is damaged, so that nobody knows what it names; nothing was removed.
        """
        if not request.older_than >= MIN_AGE:
            raise UsageError(
                f"files must be kept for {MIN_AGE:g} s at least: the record that names one may be on its way",
                hint="--older-than 1h, or more",
            )
        before = self._clock.now() - request.older_than
        store = self._journal.store
        swept = await anyio.to_thread.run_sync(lambda: store.sweep(before, remove=not request.dry_run))
        return SweepReport(dry_run=request.dry_run, **msgspec.structs.asdict(swept))


def missing_file(payload: Any, store: Store) -> str | None:
    """Return what is said against a payload that refers to a file which is not there; None where all are."""
    for name in referred(payload):
        if not store.has_file(name.removeprefix("sha256:")):
            return (
                f"the payload refers to {name[:23]}..., and the store has no such file: pass on what a call has "
                "returned, or bring a file in with tally artifacts add"
            )
    return None


def referred(value: Any) -> Iterator[str]:
    """Yield the names of the files that JSON-like data refers to."""
    if isinstance(value, dict):
        name = value.get("$artifact")
        if isinstance(name, str):
            yield name
        for item in value.values():
            yield from referred(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from referred(item)
