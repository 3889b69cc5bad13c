"""What the upstream of the tests makes: real pictures, each its own, and data that fits a JSON schema."""

import hashlib
import struct
import zlib
from typing import Any


def picture(width: int, height: int, *words: object) -> bytes:
    """Return a PNG of one bit a pixel; other words make another picture."""
    digest = hashlib.sha256(repr(words).encode()).digest()
    row = b"\0" + (digest * (width // 256 + 1))[: (width + 7) // 8]
    head = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(row * height, 1)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*part) for part in parts)


def fitting(schema: Any, words: str) -> Any:
    """Return data that fits the common part of JSON schemas; ``words`` stand where text does."""
    match schema.get("type"):
        case "object":
            return {name: fitting(part, f"{words} {name}") for name, part in schema.get("properties", {}).items()}
        case "array":
            return [fitting(schema.get("items", {}), f"{words} {number}") for number in (1, 2)]
        case "boolean":
            return True
        case "number":
            return schema.get("minimum", 0.5)
        case "integer":
            return schema.get("minimum", 3)
        case _:
            return schema.get("enum", [words])[0]


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
