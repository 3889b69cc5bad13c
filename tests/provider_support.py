"""Shared by the tests of the providers: artifacts in memory, and calls that must succeed."""

import hashlib
from typing import Any

from tallystick.contract.errors import StoreCorruptError
from tallystick.providers import catalogue
from tallystick.providers.blobs import reference, replace_blobs
from tallystick.providers.local import create
from tallystick.providers.protocol import Blob, Outcome, Sample, Succeeded


class MemoryArtifacts:
    """Artifacts by content, in a dict."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    def put(self, blob: Blob) -> dict[str, Any]:
        self.files[hashlib.sha256(blob.data).hexdigest()] = blob.data
        return reference(blob)

    def get_file(self, sha256: str) -> bytes:
        if sha256 not in self.files:
            raise StoreCorruptError(f"there is no artifact {sha256}")
        return self.files[sha256]


class Studio:
    """A local provider and the artifacts that it reads and whose results are kept."""

    def __init__(self, **settings: Any) -> None:
        self.artifacts = MemoryArtifacts()
        self.provider = create(settings, self.artifacts)

    async def call(self, capability: str, payload: dict[str, Any], **sample: Any) -> Outcome:
        catalogue.validate_payload(capability, payload)
        return await self.provider.call(capability, payload, "key", Sample(**{"seed": 1, **sample}))

    async def result(self, capability: str, payload: dict[str, Any], **sample: Any) -> Any:
        outcome = await self.call(capability, payload, **sample)
        assert isinstance(outcome, Succeeded), outcome
        return replace_blobs(outcome.result, self.artifacts.put)

    def bytes_of(self, artifact: dict[str, Any]) -> bytes:
        return self.artifacts.get_file(artifact["$artifact"].removeprefix("sha256:"))
