"""What bytes are, from the bytes themselves: the type, and for pictures the size. Names and headers may lie."""

import struct

import msgspec

_HEADS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"ID3", "audio/mpeg"),
    (b"OggS", "audio/ogg"),
    (b"fLaC", "audio/flac"),
    (b"\x1aE\xdf\xa3", "video/webm"),
)
_RIFF = {b"WEBP": "image/webp", b"WAVE": "audio/wav"}
_MP4 = {b"M4A ": "audio/mp4", b"qt  ": "video/quicktime", b"avif": "image/avif", b"heic": "image/heic"}
# Eleven bits of a frame of MPEG audio, and the two that say layer III.
_MPEG_SYNC, _MPEG_LAYER, _MPEG_THREE = 0xE0, 0x06, 0x02
# Start-of-frame markers of JPEG; the three left out of the range are tables.
_SOF = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_SOS = 0xDA
_WEBP_MASK = 0x3FFF


class Media(msgspec.Struct, frozen=True):
    """A media type, and the size in pixels of a picture that tells it."""

    type: str
    width: int | None = None
    height: int | None = None


def sniff(data: bytes) -> Media | None:
    """Say what bytes are: a picture, a sound or a clip of a known format, or None."""
    kind = _type(data)
    if kind is None:
        return None
    try:
        size = _size(kind, data)
    except (struct.error, IndexError):
        size = None
    return Media(kind, *size) if size is not None and all(size) else Media(kind)


def _type(data: bytes) -> str | None:
    for head, kind in _HEADS:
        if data.startswith(head):
            return kind
    if data.startswith(b"RIFF"):
        return _RIFF.get(data[8:12])
    if data[4:8] == b"ftyp":
        return _MP4.get(data[8:12], "video/mp4")
    if data[:1] == b"\xff" and len(data) > 1:
        second = data[1]
        if second & _MPEG_SYNC == _MPEG_SYNC and second & _MPEG_LAYER == _MPEG_THREE:
            return "audio/mpeg"
    return None


def _size(kind: str, data: bytes) -> tuple[int, int] | None:
    match kind:
        case "image/png":
            width, height = struct.unpack_from(">II", data, 16)
        case "image/gif":
            width, height = struct.unpack_from("<HH", data, 6)
        case "image/jpeg":
            return _jpeg(data)
        case "image/webp":
            return _webp(data)
        case _:
            return None
    return width, height


def _jpeg(data: bytes) -> tuple[int, int] | None:
    position = 2
    while data[position] == 0xFF:  # noqa: PLR2004 - every segment begins so
        marker = data[position + 1]
        if marker in _SOF:
            height, width = struct.unpack_from(">HH", data, position + 5)
            return width, height
        if marker == _SOS:
            return None
        (length,) = struct.unpack_from(">H", data, position + 2)
        position += 2 + length
    return None


def _webp(data: bytes) -> tuple[int, int] | None:
    match data[12:16]:
        case b"VP8 ":
            width, height = struct.unpack_from("<HH", data, 26)
            return width & _WEBP_MASK, height & _WEBP_MASK
        case b"VP8L":
            (bits,) = struct.unpack_from("<I", data, 21)
            return (bits & _WEBP_MASK) + 1, (bits >> 14 & _WEBP_MASK) + 1
        case b"VP8X":
            width, height = (int.from_bytes(data[start : start + 3], "little") + 1 for start in (24, 27))
            return width, height
        case _:
            return None
