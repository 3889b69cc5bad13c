"""From an answer to a result of the catalogue: fields by path, files from base64 or links, and the check at the end."""

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote_to_bytes

import msgspec

from tallystick.providers import catalogue
from tallystick.providers.blobs import replace_blobs
from tallystick.providers.http import filters, media
from tallystick.providers.http.operations import MODEL, Operation
from tallystick.providers.http.paths import MISSING
from tallystick.providers.http.templates import SUBJECT, FilesNode, Scope
from tallystick.providers.protocol import Blob

_FAMILIES = {
    "image": ("image/",),
    "speech": ("audio/",),
    "music": ("audio/",),
    # A clip may come as an animated picture.
    "video": ("video/", "image/gif"),
}
_MAX_FILES = 16
_UNHASHED = "sha256:" + "0" * 64


class UnfitAnswerError(ValueError):
    """An answer came, but it is not what was asked for."""


class Link(msgspec.Struct, frozen=True):
    """Where a file of an answer is, which is not in the answer itself."""

    url: str


def links(operation: Operation, scope: Scope) -> list[str]:
    """Return the links of an answer that must be fetched, in order.

    Raises:
        UnfitAnswerError: the answer has no files where it should, or too many.
    """
    return [found.url for node in operation.result.files for found in _entries(node, scope) if isinstance(found, Link)]


def result(operation: Operation, scope: Scope, fetched: Mapping[str, bytes], max_bytes: int) -> dict[str, Any]:
    """Return the result that an answer holds, its files as blobs.

    Args:
        operation: how it is to be read.
        scope: what paths look into; see ``scope_of``.
        fetched: the bytes behind each of its links.
        max_bytes: what each file may have.

    Raises:
        UnfitAnswerError: something is missing, empty, too large, of another type or against the catalogue.
    """
    blobs = {
        id(node): [_blob(operation.capability, found, fetched, max_bytes) for found in _entries(node, scope)]
        for node in operation.result.files
    }
    sizes = [media.sniff(blob.data) for found in blobs.values() for blob in found]
    size = next((one for one in sizes if one is not None and one.width is not None), None)
    measured = {} if size is None else {"$width": size.width, "$height": size.height}

    def files(node: FilesNode) -> Any:
        return blobs[id(node)] if node.many else blobs[id(node)][0]

    try:
        filled = operation.result.fill({**scope, **measured}, files, absent=None)
        filled = {} if filled is MISSING else filled
    except filters.FilterError as error:
        raise UnfitAnswerError(str(error)) from None
    try:
        catalogue.validate_result(operation.capability, replace_blobs(filled, _reference))
    except catalogue.ResultRefusedError as error:
        raise UnfitAnswerError(error.message) from None
    checked: dict[str, Any] = filled
    return checked


def scope_of(operation: Operation, payload: Mapping[str, Any], answer: Any) -> dict[str, Any]:
    """Return what the paths of a result look into."""
    scope = {SUBJECT: answer, "$payload": payload}
    return scope if operation.model is None else {**scope, MODEL: operation.model}


def _entries(node: FilesNode, scope: Scope) -> Iterator[str | Link]:
    found = node.source.value(scope)
    entries = found if node.many else [found]
    if not isinstance(entries, list) or found is MISSING or not entries:
        raise UnfitAnswerError(f'the answer has no file at "{node.source.path.text}"')
    if len(entries) > _MAX_FILES:
        raise UnfitAnswerError(f"the answer has {len(entries)} files; {_MAX_FILES} are the limit")
    for number, entry in enumerate(entries, 1):
        inline = node.base64.find(entry) if node.base64 is not None else MISSING
        link = node.url.find(entry) if node.url is not None else MISSING
        if isinstance(inline, str) and inline:
            yield inline
        elif isinstance(link, str) and link:
            yield link if link.startswith("data:") else Link(link)
        else:
            raise UnfitAnswerError(f"file {number} of the answer is empty")


def _blob(capability: str, found: str | Link, fetched: Mapping[str, bytes], max_bytes: int) -> Blob:
    data = fetched[found.url] if isinstance(found, Link) else _decoded(found, max_bytes)
    if not data:
        raise UnfitAnswerError("a file of the answer is empty")
    if len(data) > max_bytes:
        raise UnfitAnswerError(f"a file of the answer has {len(data)} bytes; downloads.max_bytes is {max_bytes}")
    kind = media.sniff(data)
    family = _FAMILIES.get(capability.partition(".")[0], ("",))
    if kind is None or not kind.type.startswith(family):
        named = "of no known format" if kind is None else kind.type
        raise UnfitAnswerError(f"a file of the answer is {named}, and must be {' or '.join(family)}")
    return Blob(data, kind.type)


def _decoded(text: str, max_bytes: int) -> bytes:
    if text.startswith("data:"):
        head, _, text = text.partition(",")
        if not head.endswith(";base64"):
            return unquote_to_bytes(text)
    if len(text) // 4 * 3 > max_bytes + 3:
        raise UnfitAnswerError(
            f"a file of the answer has about {len(text) // 4 * 3} bytes; downloads.max_bytes is {max_bytes}"
        )
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        raise UnfitAnswerError("a file of the answer is not base64") from None


def _reference(blob: Blob) -> dict[str, Any]:
    """Return a reference that the catalogue accepts, without the work of hashing: the keeper does that once."""
    return {"$artifact": _UNHASHED, "media_type": blob.media_type, "bytes": len(blob.data)}
