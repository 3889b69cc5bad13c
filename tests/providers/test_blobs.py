import hashlib

from tallystick.providers.blobs import reference, referred, replace_blobs
from tallystick.providers.protocol import Blob

PICTURE = Blob(b"picture", "image/png")
SOUND = Blob(b"sound", "audio/wav")


def test_a_reference_names_the_content() -> None:
    made = reference(PICTURE)
    assert made == {
        "$artifact": f"sha256:{hashlib.sha256(b'picture').hexdigest()}",
        "media_type": "image/png",
        "bytes": 7,
    }
    assert referred(made) == hashlib.sha256(b"picture").hexdigest()


def test_every_blob_is_replaced_once_in_order_wherever_it_stands() -> None:
    met: list[bytes] = []

    def store(blob: Blob) -> str:
        met.append(blob.data)
        return blob.media_type

    result = {"images": [PICTURE, {"deep": (SOUND,)}], "n": 2, "none": None, "flag": True}
    replaced = replace_blobs(result, store)
    assert replaced == {"images": ["image/png", {"deep": ["audio/wav"]}], "n": 2, "none": None, "flag": True}
    assert met == [b"picture", b"sound"]
    assert result["images"] == [PICTURE, {"deep": (SOUND,)}]
