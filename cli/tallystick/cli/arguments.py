"""A script's args as they are given: JSON, a file of JSON, and files that the args refer to (`picture=@lamp.png`)."""

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from tallystick.cli import inputs
from tallystick.cli.client import Client
from tallystick.contract.errors import UsageError
from tallystick.engine.money_messages import FileReference

#: What one file may have, as the daemon takes it.
MAX_FILE = 64 << 20
_ENTRY = re.compile(r"([A-Za-z_]\w*)=(.*)", re.ASCII | re.DOTALL)
T = TypeVar("T", bound=msgspec.Struct)


class Args(msgspec.Struct, frozen=True):
    """Args that were read, and the bytes of the files that go into them by name."""

    value: Any | msgspec.UnsetType = msgspec.UNSET
    files: dict[str, bytes] = {}

    def or_none(self) -> Any:
        """Return the value; None where none was given."""
        return None if self.value is msgspec.UNSET else self.value


def read(given: Iterable[str] | None) -> Args:
    """Read what ``--args`` was given: JSON or ``@FILE`` at most once, and any number of ``NAME=@FILE``.

    Raises:
        UsageError: two values, no JSON, a file that cannot be read or is too large, or an entry without a file.
    """
    value: Any | msgspec.UnsetType = msgspec.UNSET
    files: dict[str, bytes] = {}
    for text in given or ():
        entry = _ENTRY.fullmatch(text)
        if entry is None:
            if value is not msgspec.UNSET:
                raise UsageError("--args holds two values", hint="give one of JSON; a file in it is NAME=@FILE")
            value = inputs.json_value(text, "--args")
        elif not entry[2].startswith("@"):
            raise UsageError(
                f"--args {entry[1]}=... names no file",
                hint=f'a file is {entry[1]}=@FILE; anything else is JSON: --args \'{{"{entry[1]}": "..."}}\'',
            )
        else:
            files[entry[1]] = read_file(Path(entry[2][1:]))
    return Args(value, files)


def read_file(path: Path) -> bytes:
    """Read a file that is to be brought in.

    Raises:
        UsageError: it cannot be read, is empty, or too large; nothing was sent.
    """
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_FILE + 1)
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"the file {str(path)!r} cannot be read: {said}; nothing was sent") from None
    if not data:
        raise UsageError(f"the file {path} is empty; nothing was sent")
    if len(data) > MAX_FILE:
        raise UsageError(
            f"the file {path} is larger than {MAX_FILE >> 20} MiB; nothing was sent", hint="make it smaller"
        )
    return data


def with_files(client: Client, request: T, args: Args, own: Callable[[], Any] = lambda: None) -> T:
    """Bring in the files of the args and put their references into a request's ``args``.

    Args:
        client: who is asked to keep them.
        request: what is to be sent, its args already those of JSON.
        args: what was read.
        own: fetches the args that the files go into where none were given.

    Raises:
        UsageError: the args are no object, so that there are no names in them.
    """
    if not args.files:
        return request
    value = own() if args.value is msgspec.UNSET else args.value
    if not isinstance(value, dict | None):
        raise UsageError(
            "NAME=@FILE puts a file into an object, and the args are none", hint="--args '{}' --args NAME=@FILE"
        )
    references = {name: client.put_file(data) for name, data in args.files.items()}
    return msgspec.structs.replace(
        request, args={**(value or {}), **{name: msgspec.to_builtins(one) for name, one in references.items()}}
    )


def shown(reference: FileReference) -> str:
    """Return a reference as a script or JSON has it."""
    return msgspec.json.encode(reference).decode()
