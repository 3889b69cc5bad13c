"""Builds the image that guests run in: one recipe, on a registry's base or on one made of this host's interpreter."""

import hashlib
import io
import platform
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any

import aiohttp
import anyio
import anyio.to_thread
import msgspec
from aiodocker import Docker
from aiodocker.exceptions import DockerError

from tallystick.sandbox import frames
from tallystick.sandbox.docker.client import Engine, EngineError
from tallystick.sandbox.docker.discovery import Endpoint
from tallystick.sandbox.docker.pin import Pin, PinFile
from tallystick.sandbox.protocol import SandboxError

Progress = Callable[[str], None]

#: The base for each version of this interpreter, by the digest of its index for all machines. A guest runs the same
#: version as its host, so that a script means the same under every driver, and so that msgspec's module fits.
BASES = {
    (3, 11): "python:3.11-slim@sha256:9c900dea9e8fb7e16277c179b555cc72d29a352dbc33cff48ad5a0412fd5bfc7",
    (3, 12): "python:3.12-slim@sha256:57cd7c3a7a273101a6485ba99423ee568157882804b1124b4dd04266317710de",
    (3, 13): "python:3.13-slim@sha256:6771159cd4fa5d9bba1258caf0b82e6b73458c694d178ad97c5e925c2d0e1a91",
}
REPOSITORY = "tallystick-guest"
HOST_BASE = "tallystick-host-base"

#: Seconds without a word from a registry after which there is none, and from the engine during a build.
REGISTRY_PATIENCE = 10.0
BUILD_PATIENCE = 300.0

_HERE = Path(__file__).parent
_OPTIONS = ("-s", "-P", "-S", "-B")
_HOST_BASE = b"FROM scratch\nADD files.tar /\nENV LD_LIBRARY_PATH=/usr/lib/guest PYTHONHASHSEED=0\n"


class Recipe(msgspec.Struct, frozen=True):
    """What an image is built from: the files of the build by name, and the digest of all that decides the result."""

    files: dict[str, bytes]
    digest: str


def recipe() -> Recipe:
    """Return the recipe of this installation."""
    portion = Path(str(frames.__file__)).parent
    library = Path(str(msgspec.__file__)).parent
    files = {"Dockerfile": (_HERE / "Dockerfile").read_bytes(), "guest/collect.py": (_HERE / "collect.py").read_bytes()}
    for path in (portion / "__init__.py", portion / "frames.py", *(portion / "guest").glob("*.py")):
        files[f"guest/tallystick/sandbox/{path.relative_to(portion).as_posix()}"] = path.read_bytes()
    for path in (*library.glob("*.py"), *library.glob("*.so")):
        files[f"guest/msgspec/{path.name}"] = path.read_bytes()
    digest = hashlib.sha256(f"{sys.version} {platform.machine()}".encode())
    for name, data in sorted(files.items()):
        digest.update(f"\0{name}\0{len(data)}\0".encode() + data)
    return Recipe(files, digest.hexdigest())


async def pinned(engine: Engine, pin_file: PinFile, progress: Progress) -> Pin:
    """Return the pin; build the image first where there is none, where it is gone, or where the guest was updated.

    Raises:
        SandboxError: there is none and none could be built.
    """
    try:
        pin = await anyio.to_thread.run_sync(pin_file.read)
    except ValueError as error:
        raise SandboxError(str(error)) from None
    current = await anyio.to_thread.run_sync(recipe)
    if pin is not None and pin.recipe == current.digest and await _has(engine, pin.image):
        return pin
    if pin is not None:
        progress(
            f"the pinned image {pin.image} {'is gone' if pin.recipe == current.digest else 'holds an older guest'}"
        )
    pin = await build(engine, progress)
    await anyio.to_thread.run_sync(pin_file.write, pin)
    return pin


async def rebuilt(endpoint: Endpoint, pin_file: PinFile, progress: Progress, base: str | None = None) -> Pin:
    """Build the image, whether or not there is one, and pin it; arguments and errors as those of ``build``."""
    engine = Engine(endpoint)
    try:
        pin = await build(engine, progress, base)
    finally:
        await engine.close()
    await anyio.to_thread.run_sync(pin_file.write, pin)
    return pin


async def build(engine: Engine, progress: Progress, base: str | None = None) -> Pin:
    """Build the image and return its pin, which is the caller's to keep. What did not change is not built again.

    Args:
        engine: where to build.
        progress: told each step in a line.
        base: an image to build on that has this version of CPython; None takes the registry's, or makes one of this
            host's interpreter where no registry can be reached.

    Raises:
        SandboxError: it could not be built; the message says why.
    """
    of = await anyio.to_thread.run_sync(recipe)
    await _refuse_other_machines(engine)
    python = platform.python_version()
    if base is None:
        base = BASES.get(sys.version_info[:2], "")
        if await _pulled(engine, base, progress):
            python = ".".join(map(str, sys.version_info[:2]))
        else:
            progress("making a base of this host's interpreter")
            layer = await anyio.to_thread.run_sync(_host_files, of)
            base = await _built(engine, {"Dockerfile": _HOST_BASE, "files.tar": layer}, HOST_BASE)
    progress(f"building the image on {base}")
    image = await _built(engine, of.files, REPOSITORY, {"BASE": base}, progress)
    progress(f"built {image}")
    return Pin(image=image, recipe=of.digest, base=base, python=python)


async def _has(engine: Engine, image: str) -> bool:
    try:
        async with engine.asked("look for an image") as docker:
            await docker.images.inspect(image)
    except EngineError as error:
        if error.status == HTTPStatus.NOT_FOUND:
            return False
        raise
    return True


async def _refuse_other_machines(engine: Engine) -> None:
    async with engine.asked("describe itself") as docker:
        info = await docker.system.info()
    if (info["OSType"], info["Architecture"]) != ("linux", platform.machine()):
        raise SandboxError(
            f"the engine runs {info['OSType']} on {info['Architecture']}, this host linux on {platform.machine()}; the "
            "docker sandbox needs an engine of the same kind"
        )


async def _pulled(engine: Engine, base: str, progress: Progress) -> bool:
    """Have the engine fetch a base; return whether it has it. A registry that is not there is no error."""
    if not base:
        progress("there is no base in the registry for this version of Python")
        return False
    if await _has(engine, base):
        return True
    progress(f"fetching {base}")
    try:
        with anyio.move_on_after(REGISTRY_PATIENCE) as patience:
            async for line in engine.docker.images.pull(base, stream=True):
                patience.deadline = anyio.current_time() + REGISTRY_PATIENCE
                progress(f"fetching: {line.get('status', '')}")
            return True
        progress("the registry does not answer")
    except (DockerError, aiohttp.ClientError) as error:
        progress(f"no registry can be reached ({error})")
    return False


async def _built(
    engine: Engine,
    files: Mapping[str, bytes],
    repository: str,
    arguments: Mapping[str, str] | None = None,
    progress: Progress = lambda _: None,
) -> str:
    """Have the engine build an image and return its id."""
    context = _tar(files)
    tag = f"{repository}:{hashlib.sha256(context).hexdigest()[:12]}"
    async with engine.asked("build the image", BUILD_PATIENCE) as docker:
        async for line in _build(docker, context, tag, arguments or {}):
            text = str(line.get("stream", "")).strip()
            if text and not text.startswith("--->"):
                progress(text)
        return str((await docker.images.inspect(tag))["Id"])


def _build(docker: Docker, context: bytes, tag: str, arguments: Mapping[str, str]) -> Any:
    return docker.images.build(
        fileobj=io.BytesIO(context), encoding="identity", tag=tag, buildargs=arguments, forcerm=True, stream=True
    )


def _host_files(of: Recipe) -> bytes:
    """Return a tar of this interpreter and what a guest needs of its library."""
    with tempfile.TemporaryDirectory() as scratch:
        for name, data in of.files.items():
            path = Path(scratch, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        packages, image = Path(scratch, "guest"), Path(scratch, "image")
        command = [sys.executable, *_OPTIONS, str(packages / "collect.py"), str(packages), str(image)]
        done = subprocess.run(command, env={"PYTHONHASHSEED": "0"}, capture_output=True, text=True, check=False)  # noqa: S603 - our own program
        if done.returncode:
            why = done.stderr.strip().rpartition("\n")[2]
            raise SandboxError(f"this host's interpreter could not be collected for an image: {why}")
        return _tar_of(image)


def _tar(files: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, data in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return out.getvalue()


def _tar_of(folder: Path) -> bytes:
    """Return a tar that depends on the files alone: not on their times, owners or order in the folder."""

    def nobodys(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = entry.mtime = 0
        entry.uname = entry.gname = ""
        return entry

    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for path in sorted(folder.iterdir()):
            tar.add(path, path.name, filter=nobodys)
    return out.getvalue()
