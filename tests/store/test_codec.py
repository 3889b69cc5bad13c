"""The bytes on disk: pinned, and no change of them goes unnoticed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.contract.errors import StoreCorruptError
from tallystick.store.codec import decode_events, encode_events, seal, seal_row, sequence_key, unseal, unseal_row
from tallystick.store.conformance import committed, created, row

KEY = sequence_key(7)


@pytest.fixture
def batch() -> bytes:
    return seal("log", KEY, encode_events([created("run-1"), committed("run-1", 0, {"text": "ü", "size": 1024})]))


def test_the_frame_of_format_1_is_pinned() -> None:
    assert KEY.hex() == "0000000000000007"
    assert seal("log", KEY, b"body").hex() == "014efc1428626f6479"


def test_a_value_is_read_in_its_place_only() -> None:
    value = seal("log", KEY, b"body")
    assert bytes(unseal("log", KEY, value)) == b"body"
    with pytest.raises(StoreCorruptError, match="sequence 8 cannot be used: its checksum"):
        unseal("log", sequence_key(8), value)
    with pytest.raises(StoreCorruptError, match="checksum"):
        unseal("index", KEY, value)


def test_every_flipped_bit_of_a_batch_is_noticed(batch: bytes) -> None:
    for place in range(len(batch)):
        for bit in range(8):
            flipped = bytearray(batch)
            flipped[place] ^= 1 << bit
            with pytest.raises(StoreCorruptError, match="sequence 7") as refusal:
                decode_events(KEY, bytes(flipped))
            assert refusal.value.details == {"table": "log", "sequence": 7}


def test_every_cut_of_a_batch_is_noticed(batch: bytes) -> None:
    for length in range(len(batch)):
        with pytest.raises(StoreCorruptError, match="sequence 7"):
            decode_events(KEY, batch[:length])


def test_an_unknown_format_names_both_versions(batch: bytes) -> None:
    with pytest.raises(StoreCorruptError, match="it has format 2, and this build reads format 1"):
        decode_events(KEY, b"\x02" + batch[1:])


def test_a_sound_frame_around_nonsense_is_damage() -> None:
    with pytest.raises(StoreCorruptError, match="this build cannot read it"):
        decode_events(KEY, seal("log", KEY, b"\x91\x81\xa4type\xa3new"))
    with pytest.raises(StoreCorruptError, match="'run-1' of the table runs cannot be used: this build"):
        unseal_row(b"run-1", seal("runs", b"run-1", b"\xc0"))


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_damage_and_nothing_worse(data: bytes) -> None:
    with pytest.raises(StoreCorruptError):
        decode_events(KEY, data)


def test_a_row_is_read_back() -> None:
    key, value = seal_row(row("run-1"))
    assert unseal_row(key, value) == row("run-1")
