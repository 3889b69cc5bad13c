import struct
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.sandbox.frames import (
    HEAD,
    MAX_FRAME,
    MAX_VALUES,
    Call,
    Crash,
    Done,
    Frame,
    FrameError,
    Log,
    Ready,
    Reply,
    Splitter,
    Start,
    pack,
)
from tallystick.sandbox.inbox import Inbox

NONCE = "n"
PLENTY = 1 << 30
CALL = Call(
    nonce=NONCE, id=1, site="s", path=(0, "a"), occurrence=0, capability="c", payload={"a": [1, None]}, seen=(3,)
)
FRAMES = [Ready(nonce=NONCE), CALL, Log(nonce=NONCE, text="x"), Done(nonce=NONCE, value=[1.5])]

# A call whose payload is to follow: eight fields, the last one is open.
OPEN_CALL = b"\x88\xa1t\xa4call\xa5nonce\xa1n\xa2id\x01\xa4site\xa1s\xa4path\x90\xaaoccurrence\x00\xaacapability\xa1c\xa7payload"


def body(frame: Frame) -> bytes:
    return pack(frame)[HEAD.size :]


def framed(data: bytes) -> bytes:
    return HEAD.pack(len(data)) + data


def ready_inbox(allowance: int = PLENTY) -> Inbox:
    inbox = Inbox(NONCE, allowance)
    inbox.feed(pack(Ready(nonce=NONCE)))
    return inbox


@given(st.data())
def test_frames_survive_any_cut_of_the_stream(data: st.DataObject) -> None:
    stream = b"".join(map(pack, FRAMES))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=20)))
    inbox = Inbox(NONCE, PLENTY)
    heard = [
        frame
        for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)
        for frame in inbox.feed(stream[start:end])
    ]
    assert heard == FRAMES
    inbox.end()


def test_frames_survive_a_cut_at_every_byte() -> None:
    stream = b"".join(map(pack, FRAMES))
    inbox = Inbox(NONCE, PLENTY)
    assert [frame for byte in stream for frame in inbox.feed(bytes([byte]))] == FRAMES


def test_a_stream_that_ends_within_a_frame_is_a_breach() -> None:
    inbox = ready_inbox()
    inbox.feed(pack(CALL)[:-1])
    with pytest.raises(FrameError, match=f"ended within a frame, after {len(pack(CALL)) - 1} bytes"):
        inbox.end()


def test_an_oversized_frame_is_refused_by_its_head_alone() -> None:
    splitter = Splitter()
    with pytest.raises(FrameError, match="announces 4,294,967,295 bytes"):
        splitter.feed(b"\xff\xff\xff\xff")
    with pytest.raises(FrameError, match="announces"):
        Splitter().feed(HEAD.pack(MAX_FRAME + 1))
    assert Splitter().feed(HEAD.pack(MAX_FRAME)) == []


@pytest.mark.parametrize(
    "frame",
    [
        Reply(nonce=NONCE, id=1, value="x" * MAX_FRAME),
        Reply(nonce=NONCE, id=1, value={1, object()}),
        Reply(nonce=NONCE, id=1, value="\ud800"),
        Reply(nonce=NONCE, id=1, value=1 << 70),
    ],
    ids=["size", "type", "surrogate", "integer"],
)
def test_what_cannot_be_a_frame_is_not_packed(frame: Frame) -> None:
    with pytest.raises(FrameError, match="Reply frame"):
        pack(frame)


def nested(levels: int) -> bytes:
    return b"\x91" * levels + b"\xc0"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1\xc1\xc1",
        b"\xc0",
        body(CALL) + b"\xc0",
        body(CALL)[:-1],
        body(Start(nonce=NONCE, source="", args=None)),
        body(Reply(nonce=NONCE, id=1)),
        msgspec.msgpack.encode({"t": "nothing", "nonce": NONCE}),
        msgspec.msgpack.encode({"t": "done"}),
        msgspec.msgpack.encode({"t": "done", "nonce": NONCE, "admin": True}),
        msgspec.msgpack.encode({"t": "log", "nonce": NONCE, "text": "x" * 70_000}),
        msgspec.msgpack.encode({"t": "done", "nonce": "x" * 65}),
        body(CALL).replace(b"\xa2id\x01", b"\xa2id\x00"),
        body(CALL).replace(b"\xa2id\x01", b"\xa2id\xff"),
        body(CALL).replace(b"\xa2id\x01", b"\xa2id\xcf" + b"\xff" * 8),
        body(CALL).replace(b"\xa2id\x01", b"\xa2id\xcb" + b"\x00" * 8),
        body(CALL).replace(b"\xaaoccurrence\x00", b"\xaaoccurrence\xff"),
        body(CALL).replace(b"\x92\x00\xa1a", b"\x92\xff\xa1a"),
        body(CALL).replace(b"\x92\x00\xa1a", b"\xdc\x00\x41" + b"\x00" * 65),
        body(CALL).replace(b"\xa4site\xa1s", b"\xa4site\xda\x10\x01" + b"s" * 4097),
        OPEN_CALL + nested(200_000),
        OPEN_CALL + nested(65),
        OPEN_CALL + b"\xdd\xff\xff\xff\xff",
        OPEN_CALL + b"\xdf\xff\xff\xff\xff",
        OPEN_CALL + b"\xa1\xff",
        OPEN_CALL + b"\xa3\xed\xa0\x80",
        OPEN_CALL + b"\x81\x80\x01",
        OPEN_CALL + b"\x81\x01\x01",
        OPEN_CALL + b"\x81\x91\x01\x01",
        OPEN_CALL + b"\xc4\x01a",
        OPEN_CALL + b"\xd4\x05a",
        OPEN_CALL + b"\xd6\xff\x00\x00\x00\x00",
        OPEN_CALL + b"\xcb\x7f\xf8" + b"\x00" * 6,
        OPEN_CALL + b"\xdd" + struct.pack(">I", MAX_VALUES) + b"\x90" * MAX_VALUES,
        body(Done(nonce=NONCE, value=float("inf"))),
    ],
    ids=lambda data: f"{data[:12].hex()}-{len(data)}",
)
def test_what_is_not_a_guests_frame_is_a_breach(data: bytes) -> None:
    with pytest.raises(FrameError):
        ready_inbox().feed(framed(data))


def test_the_open_call_of_these_tests_is_a_call_once_it_is_closed() -> None:
    (call,) = ready_inbox().feed(framed(OPEN_CALL + nested(64)))
    assert isinstance(call, Call)


@given(st.binary(max_size=200))
def test_no_bytes_make_anything_but_frames_or_a_breach(data: bytes) -> None:
    try:
        frames = ready_inbox().feed(framed(data))
    except FrameError:
        return
    assert all(isinstance(frame, Frame) for frame in frames)


@given(st.data())
def test_a_damaged_frame_is_a_frame_or_a_breach(data: st.DataObject) -> None:
    damaged = bytearray(
        body(data.draw(st.sampled_from([CALL, Crash(nonce=NONCE, kind="k", text="t", where=((1, "f"),))])))
    )
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    try:
        frames = ready_inbox().feed(framed(bytes(damaged)))
    except FrameError:
        return
    assert len(frames) == 1


@pytest.mark.parametrize(
    ("frames", "text"),
    [
        ([CALL], "a frame before Ready"),
        ([Ready(nonce=NONCE), Ready(nonce=NONCE)], "a second Ready"),
        ([Ready(nonce="other")], "another launch's nonce"),
        ([Ready(nonce=NONCE), Done(nonce=NONCE), CALL], "a Call frame after the last one"),
        (
            [Ready(nonce=NONCE), Crash(nonce=NONCE, kind="k", text=""), Done(nonce=NONCE)],
            "a Done frame after the last one",
        ),
    ],
    ids=["early", "twice", "nonce", "call-after-done", "done-after-crash"],
)
def test_frames_out_of_order_or_of_another_launch_are_a_breach(frames: list[Frame], text: str) -> None:
    with pytest.raises(FrameError, match=text):
        Inbox(NONCE, PLENTY).feed(b"".join(map(pack, frames)))


def test_the_allowance_counts_every_byte_that_comes() -> None:
    inbox = ready_inbox(allowance=100)
    with pytest.raises(FrameError, match="allowance"):
        inbox.feed(b"\0" * 100)
    assert inbox.exceeded


@pytest.mark.parametrize("frame", [CALL, Done(nonce=NONCE), Crash(nonce=NONCE, kind="k", text="t", capability_error=4)])
def test_a_frame_says_no_more_than_it_must(frame: Any) -> None:
    decoded = msgspec.msgpack.decode(body(frame))
    assert "take" not in decoded
    assert decoded["nonce"] == NONCE
