"""A run's artifacts as files: named by the call that made them, and never over another file; and files brought in."""

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from pathlib import Path

from tallystick.cli.client import run_path
from tallystick.cli.terminal import count as many
from tallystick.cli.terminal import note, say, say_json
from tallystick.contract.errors import UsageError
from tallystick.engine.messages import Artifact

_EXTENSIONS = {
    "application/json": ".json",
    "audio/flac": ".flac",
    "audio/mp4": ".m4a",
    "audio/mpeg": ".mp3",
    "audio/ogg": ".ogg",
    "audio/wav": ".wav",
    "image/avif": ".avif",
    "image/gif": ".gif",
    "image/heic": ".heic",
    "image/jpeg": ".jpg",
    "image/png": ".png",
    "image/webp": ".webp",
    "text/plain": ".txt",
    "video/mp4": ".mp4",
    "video/quicktime": ".mov",
    "video/webm": ".webm",
}
_MAX_STEM = 120


def name_of(artifact: Artifact) -> str:
    """Return a file's name: site, path and occurrence of its call, and its type: ``orchestrate.draw-1_2_0.png``."""
    identity = artifact.identity
    path = ".".join(map(str, identity.path))
    parts = (identity.site.replace("/#", "-").replace("/", "-"), path, str(identity.occurrence))
    stem = "_".join(re.sub(r"[^A-Za-z0-9.-]+", "-", part) for part in parts if part)
    return stem[:_MAX_STEM].lstrip(".") + _EXTENSIONS.get(artifact.media_type, ".bin")


def export(artifacts: Iterable[Artifact], folder: Path, read: Callable[[str], bytes]) -> list[Path]:
    """Write artifacts into a folder, which is made; what stands there with the same bytes is left as it is.

    Args:
        artifacts: what to write.
        folder: where to.
        read: returns the bytes of a hash.

    Returns:
        The absolute path of each, in their order.

    Raises:
        UsageError: the folder or a file in it cannot be written.
    """
    written: list[Path] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for artifact in artifacts:
            data = read(artifact.sha256)
            known = set(written)
            free = (path for path in _candidates(folder.absolute() / name_of(artifact)) if path not in known)
            written.append(next(path for path in free if _put(path, data)))
    except OSError as error:
        raise UsageError(
            f"the files cannot be written to {folder}: {error.strerror}; {len(written)} were",
            hint="name a folder that can be written: --export DIR",
        ) from None
    return written


def _candidates(path: Path) -> Iterator[Path]:
    yield path
    yield from (path.with_name(f"{path.stem}-{number}{path.suffix}") for number in count(2))


def _put(path: Path, data: bytes) -> bool:
    """Make a file of these bytes; False when another one has the name."""
    try:
        with path.open("xb") as stream:
            stream.write(data)
    except FileExistsError:
        return path.is_file() and path.stat().st_size == len(data) and path.read_bytes() == data
    return True


def list_or_write(run: str, folder: Path | None, *, as_json: bool) -> int:
    """Show the artifacts of a run, or write them into a folder; return the exit status."""
    from tallystick.cli import reports, spawn

    client = spawn.connect()
    found = client.get(run_path(run, "artifacts"), tuple[Artifact, ...])
    files = [] if folder is None else export(found, folder, client.file)
    if as_json:
        say_json({"artifacts": found, "files": [str(path) for path in files]})
    elif not found:
        note("no artifacts: no committed call of this run has made a file")
    elif folder is None:
        say(reports.artifacts(found))
        note(f"`tally artifacts {run} --export DIR` writes them out")
    else:
        for path in files:
            say(str(path))
        note(f"{many(len(files), 'file')} in {folder}")
    return 0


def bring_in(files: Iterable[Path], media_type: str | None, *, as_json: bool) -> int:
    """Have files kept, and show how payloads refer to them; return the exit status."""
    from tallystick.cli import arguments, spawn

    read = [(path, arguments.read_file(path)) for path in files]
    client = spawn.connect()
    added = [(path, client.put_file(data, media_type)) for path, data in read]
    if as_json:
        say_json({"files": [reference for _, reference in added]})
        return 0
    for path, reference in added:
        say(arguments.shown(reference))
        note(f"{path}: kept until `tally gc`, or for good once a run names it: `tally run SCRIPT --args NAME=@{path}`")
    return 0
