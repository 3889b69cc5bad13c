"""Which image guests run in: pinned by its id, in a file that the daemon keeps in its state directory."""

import os
from pathlib import Path

import msgspec


class Pin(msgspec.Struct, frozen=True, kw_only=True):
    """One built image.

    ``image`` is its id; ``recipe`` the digest of what it was built from, so that an update of the guest is noticed;
    ``base`` names what it was built on, ``python`` its interpreter's version.
    """

    image: str
    recipe: str
    base: str
    python: str


class PinFile:
    """The pin as a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def stamp(self) -> tuple[int, int] | None:
        """Return what changes whenever the file is replaced; None where there is none."""
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_mtime_ns

    def read(self) -> Pin | None:
        """Return the pin, None where there is none.

        Raises:
            ValueError: the file is not a pin; the message says what to do.
        """
        try:
            return msgspec.json.decode(self.path.read_bytes(), type=Pin)
        except FileNotFoundError:
            return None
        except msgspec.DecodeError as error:
            raise ValueError(
                f"{self.path} is not an image pin ({error}); remove it and run: tally image build"
            ) from None

    def write(self, pin: Pin) -> None:
        """Replace the pin, all or nothing."""
        written = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        written.write_bytes(msgspec.json.format(msgspec.json.encode(pin), indent=2) + b"\n")
        written.replace(self.path)
