"""Keeping a result: its bytes become files, its large values too, before the record that names them is written."""

from typing import Any

import msgspec

from tallystick.contract.events import FileRef, Stored
from tallystick.contract.payload import PayloadError, digest
from tallystick.engine.journal import Journal
from tallystick.providers import catalogue
from tallystick.providers.protocol import Blob

INLINE_LIMIT = 64 << 10
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
            digest(value)
            catalogue.validate_result(capability, value)
        except (PayloadError, catalogue.ResultRefusedError) as error:
            raise UnusableResultError(f"the provider's answer is not a {capability} result: {error}", value) from None
        return Kept(await self._stored(value), tuple(files))

    async def keep_raw(self, raw: Any) -> Stored:
        """Store an answer that cannot be used, as it came as far as JSON can say it."""
        try:
            value = await self._with_references(raw, [])
            digest(value)
        except PayloadError:
            value = repr(raw)[:INLINE_LIMIT]
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

    async def _with_references(self, value: Any, files: list[FileRef]) -> Any:
        if isinstance(value, Blob):
            ref = await self._journal.put_file(value.data, value.media_type)
            files.append(ref)
            return artifact_reference(ref)
        if isinstance(value, dict):
            return {key: await self._with_references(item, files) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [await self._with_references(item, files) for item in value]
        return value
