"""What bytes are, and where links may lead: decisions of the ``http`` provider without any connection."""

import io
import ipaddress
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from tallystick.providers.http.addresses import may_be_reached
from tallystick.providers.http.media import Media, sniff


def drawn(kind: str, width: int, height: int, **options: Any) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (width, height), (200, 30, 30)).save(file, kind, **options)
    return file.getvalue()


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("PNG", {}),
        ("GIF", {}),
        ("JPEG", {}),
        ("JPEG", {"progressive": True, "exif": b"Exif\x00\x00" + bytes(900)}),
        ("WEBP", {"quality": 80}),
        ("WEBP", {"lossless": True}),
        ("WEBP", {"exif": b"Exif\x00\x00" + bytes(60)}),
    ],
)
@pytest.mark.parametrize("size", [(1, 1), (64, 48), (333, 1000)])
def test_a_picture_tells_its_type_and_size(kind: str, options: dict[str, Any], size: tuple[int, int]) -> None:
    assert sniff(drawn(kind, *size, **options)) == Media(f"image/{kind.lower()}", *size)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"RIFF\x24\x00\x00\x00WAVEfmt ", "audio/wav"),
        (b"ID3\x04\x00", "audio/mpeg"),
        (b"\xff\xfb\x90\x00", "audio/mpeg"),
        (b"OggS\x00", "audio/ogg"),
        (b"fLaC\x00", "audio/flac"),
        (b"\x00\x00\x00\x20ftypM4A ", "audio/mp4"),
        (b"\x00\x00\x00\x20ftypisom", "video/mp4"),
        (b"\x00\x00\x00\x20ftypqt  ", "video/quicktime"),
        (b"\x1aE\xdf\xa3\x01", "video/webm"),
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xff\xd8\xff\xe0\x00\x10JFIF", "image/jpeg"),
        (b"RIFF\x24\x00\x00\x00WEBPVP9 " + bytes(40), "image/webp"),
    ],
)
def test_what_has_no_size_has_a_type(data: bytes, kind: str) -> None:
    assert sniff(data) == Media(kind)


@pytest.mark.parametrize(
    "data", [b"", b"\xff", b"hello", b"<html></html>", b"\xff\xfe\x00h", b"RIFF\x00\x00\x00\x00AVI "]
)
def test_what_is_no_medium_is_none(data: bytes) -> None:
    assert sniff(data) is None


@given(st.sampled_from(["PNG", "GIF", "JPEG", "WEBP"]), st.integers(0, 200), st.binary(max_size=30))
def test_a_damaged_head_is_no_crash(kind: str, cut: int, tail: bytes) -> None:
    found = sniff(drawn(kind, 64, 48)[:cut] + tail)
    assert found is None or found.type


@pytest.mark.parametrize(
    "address",
    [
        *(
            "127.0.0.1",
            "127.8.9.1",
            "0.0.0.0",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
        ),
        *("224.0.0.1", "255.255.255.255", "192.0.2.1", "198.18.0.1", "240.0.0.1"),
        *("::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12::1", "ff02::1", "2001:db8::1", "fec0::1"),
        *(
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "2002:7f00:1::",
            "2002:a00:1::",
        ),
    ],
)
def test_a_private_address_may_not_be_reached(address: str) -> None:
    assert not may_be_reached(address, ())


@pytest.mark.parametrize(
    "address", ["93.184.216.34", "8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::"]
)
def test_a_public_address_may_be_reached(address: str) -> None:
    assert may_be_reached(address, ())


def test_a_network_that_is_allowed_may_be_reached() -> None:
    allowed = (ipaddress.ip_network("10.0.0.0/8"), ipaddress.ip_network("fd00::/8"))
    reached = ["10.1.2.3", "::ffff:10.1.2.3", "fd12::1"]
    assert all(may_be_reached(address, allowed) for address in reached)
    assert not may_be_reached("127.0.0.1", allowed)
    assert not may_be_reached("::1", allowed)


@given(st.integers(0, 2**32 - 1))
def test_a_wrapped_address_is_judged_like_the_bare_one(number: int) -> None:
    bare = ipaddress.IPv4Address(number)
    wrapped = [f"::ffff:{bare}", str(ipaddress.IPv6Address(int(ipaddress.IPv6Address("64:ff9b::")) + number))]
    packed = struct.unpack(">HH", bare.packed)
    wrapped.append(f"2002:{packed[0]:x}:{packed[1]:x}::1")
    assert {may_be_reached(one, ()) for one in wrapped} == {may_be_reached(str(bare), ())}
