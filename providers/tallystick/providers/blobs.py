"""Bytes in results: how a result's blobs become artifact references, and back to what they refer to."""

import hashlib
from collections.abc import Callable
from typing import Any

from tallystick.providers.protocol import Blob


def reference(blob: Blob) -> dict[str, Any]:
    """Return the artifact reference of a blob: ``{"$artifact": "sha256:<hex>", "media_type": str, "bytes": int}``."""
    digest = hashlib.sha256(blob.data).hexdigest()
    return {"$artifact": f"sha256:{digest}", "media_type": blob.media_type, "bytes": len(blob.data)}


def replace_blobs(result: Any, replace: Callable[[Blob], Any] = reference) -> Any:
    """Return a copy of a JSON-like result in which ``replace`` has been asked for the value of each blob.

    Blobs are met in the order of the result, each once; a caller that stores them does so in ``replace``.
    """
    match result:
        case Blob():
            return replace(result)
        case dict():
            return {key: replace_blobs(value, replace) for key, value in result.items()}
        case list() | tuple():
            return [replace_blobs(value, replace) for value in result]
        case _:
            return result


def referred(artifact: Any) -> str:
    """Return the hex SHA-256 that an artifact reference of a checked payload names."""
    return str(artifact["$artifact"]).removeprefix("sha256:")
