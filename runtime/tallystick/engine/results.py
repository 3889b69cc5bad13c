"""Keeping a result: its bytes become files, its large values too, before the record that names them is written."""

from typing import Any

import anyio.to_thread
import msgspec

from tallystick.contract.events import AttemptStarted, FileRef, Record, Stored
from tallystick.contract.payload import MAX_DEPTH, PayloadError, canonical
from tallystick.engine.journal import Journal
from tallystick.providers import catalogue
from tallystick.providers.protocol import Blob

#: A result of more bytes than this is a file.
INLINE_LIMIT = 64 << 10
#: What was paid for is kept whatever its size; more than this is no answer but a flood.
SIZE_LIMIT = 1 << 30
JSON = "application/json"


class UnusableResultError(Exception):
    """An answer that came, and was billed, but is not what the capability promises; ``raw`` is all of it."""

    def __init__(self, message: str, raw: Any) -> None:
        super().__init__(message)
        self.raw = raw


class Kept(msgspec.Struct, frozen=True):
    """A result as a record stores it, and the files that it names."""

    result: Stored
    artifacts: tuple[FileRef, ...]

    def record(self, started: AttemptStarted, *, cost: int | None, usage: dict[str, Any] | None = None) -> Record:
        """Return the record of the attempt that this is the result of; ``cost`` in micro-dollars, None when unknown."""
        return Record(
            identity=started.identity,
            capability=started.capability,
            fingerprint=started.fingerprint,
            digest=started.digest,
            take=started.take,
            result=self.result,
            artifacts=self.artifacts,
            usage=usage or {},
            cost=cost,
            revision=started.revision,
            launch=started.launch,
            attempt=started.attempt,
        )


def artifact_reference(ref: FileRef) -> dict[str, Any]:
    """Return the reference that travels in payloads and results in place of a file's bytes (contract.md, section 3)."""
    return {"$artifact": f"sha256:{ref.sha256}", "media_type": ref.media_type, "bytes": ref.size}


class ResultKeeper:
    """Turns a provider's result into what the journal stores, and back."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def keep(self, capability: str, result: Any) -> Kept:
        """Store a result's files and check it against the catalogue.

        Raises:
            UnusableResultError: the result is not JSON-like, or against the capability's schema.
            StoreError: a file could not be written.
        """
        files: list[FileRef] = []
        value = await self._with_references(result, files)
        try:
            _require_plain(value)
            catalogue.validate_result(capability, value)
        except (PayloadError, catalogue.ResultRefusedError) as error:
            raise UnusableResultError(f"the provider's answer is no result of {capability}: {error}", value) from None
        return Kept(await self._stored(value), tuple(files))

    async def keep_raw(self, raw: Any) -> Stored:
        """Store an answer that cannot be used, as it came as far as JSON can say it."""
        value = await self._with_references(raw, [])
        try:
            _require_plain(value)
        except PayloadError:
            value = _as_text(value)
        return await self._stored(value)

    async def _stored(self, value: Any) -> Stored:
        encoded = msgspec.json.encode(value)
        if len(encoded) <= INLINE_LIMIT:
            return Stored(inline=value)
        return Stored(file=await self._journal.put_file(encoded, JSON))

    def load(self, stored: Stored) -> Any:
        """Read a stored value back.

        Raises:
            StoreCorruptError: its file is missing or damaged.
        """
        if stored.file is None:
            return stored.inline
        return msgspec.json.decode(self._journal.store.get_file(stored.file.sha256))

    async def read(self, stored: Stored | None) -> Any:
        """Read a value back off the loop where it is a file; None for none.

        Raises:
            StoreCorruptError: its file is missing or damaged.
        """
        if stored is None or stored.file is None:
            return stored and stored.inline
        return await anyio.to_thread.run_sync(self.load, stored)

    async def _with_references(self, value: Any, files: list[FileRef], depth: int = 0) -> Any:
        if depth > MAX_DEPTH:
            return value  # deeper than any result may be: the check that follows refuses it
        if isinstance(value, Blob):
            ref = await self._journal.put_file(value.data, value.media_type)
            files.append(ref)
            return artifact_reference(ref)
        if isinstance(value, dict):
            return {key: await self._with_references(item, files, depth + 1) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [await self._with_references(item, files, depth + 1) for item in value]
        return value


def _require_plain(value: Any) -> None:
    canonical(value, "result", SIZE_LIMIT)


def _as_text(value: Any) -> str:
    try:
        return repr(value)
    except Exception as error:  # noqa: BLE001 - a stranger's object may fail in any way when it is shown
        return f"(a {type(value).__name__} that cannot be shown: {type(error).__name__})"
