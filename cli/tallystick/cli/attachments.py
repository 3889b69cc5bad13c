"""Files inside a result that is given by hand: ``{"$file": "picture.png"}`` becomes the bytes of that file."""

import base64
from pathlib import Path
from typing import Any

from tallystick.contract.errors import UsageError

#: What a request may have is 8 MiB, and base64 makes four bytes of three.
MAX_BYTES = 5 * 1024 * 1024
KNOWN = "png, jpeg, gif, webp, avif, heic, wav, mp3, ogg, flac, m4a, mp4, webm, mov"

_FILE, _TYPE = "$file", "media_type"


def with_files(value: Any, folder: Path) -> Any:
    """Put the files that a JSON value names into it, as ``{"$base64": ..., "media_type": ...}``.

    A file's type is read off its first bytes, unless the entry names it (``"media_type": "image/tiff"``).

    Args:
        value: a JSON value.
        folder: where relative names start from.

    Raises:
        UsageError: an entry of another shape, a file that cannot be read, of no known type, or too many bytes.
    """
    return _Reader(folder).filled(value)


class _Reader:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._room = MAX_BYTES

    def filled(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.filled(item) for item in value]
        if not isinstance(value, dict):
            return value
        if _FILE in value:
            return self._attached(value)
        return {name: self.filled(item) for name, item in value.items()}

    def _attached(self, entry: dict[str, Any]) -> dict[str, str]:
        name, kind = entry[_FILE], entry.get(_TYPE)
        if not (isinstance(name, str) and isinstance(kind, str | None) and entry.keys() <= {_FILE, _TYPE}):
            raise UsageError(
                f"{_FILE} stands beside something else, or is no name of a file: {', '.join(sorted(entry))}",
                hint='write {"$file": "picture.png"}, with "media_type": "image/png" where the type must be named',
            )
        path = self._folder / name
        data = self._read(path)
        kind = kind or _type(data)
        if kind is None:
            raise UsageError(
                f"nobody can tell from its first bytes what {path} is; nothing was sent",
                hint=f"known are {KNOWN}; for another one name the type: "
                f'{{"$file": "{path.name}", "media_type": "image/tiff"}}',
            )
        return {"$base64": base64.b64encode(data).decode(), _TYPE: kind}

    def _read(self, path: Path) -> bytes:
        try:
            with path.open("rb") as stream:
                data = stream.read(self._room + 1)
        except OSError as error:
            raise UsageError(
                f"the file {path} of the result cannot be read: {error.strerror}; nothing was sent",
                hint="names are looked up in the folder of the result's file",
            ) from None
        except ValueError as error:
            raise UsageError(f"the file {str(path)!r} of the result cannot be read: {error}", hint="check it") from None
        if len(data) > self._room:
            raise UsageError(
                f"the files of the result have more than {MAX_BYTES >> 20} MiB together, at {path}; nothing was sent",
                hint="make them smaller",
            )
        self._room -= len(data)
        return data


def _type(data: bytes) -> str | None:
    from tallystick.providers.http.media import sniff

    media = sniff(data)
    return None if media is None else media.type
