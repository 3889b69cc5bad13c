"""The ``docker`` driver: the guest in a container of a pinned image, checked once it runs, before it gets a script."""

import os
import secrets
import signal
from collections.abc import Callable, Sequence
from http import HTTPStatus

import anyio
from aiodocker.containers import DockerContainer

from tallystick.sandbox.docker import owner
from tallystick.sandbox.docker.attached import attach
from tallystick.sandbox.docker.client import Engine, EngineError
from tallystick.sandbox.docker.discovery import Endpoint, find
from tallystick.sandbox.docker.image import pinned
from tallystick.sandbox.docker.kernel_view import seen_differences
from tallystick.sandbox.docker.pin import PinFile
from tallystick.sandbox.docker.profile import container, differences
from tallystick.sandbox.docker.sandbox import DockerSandbox, remove
from tallystick.sandbox.docker.sweep import Swept, sweep
from tallystick.sandbox.frames import Boot, FrameError, Ready, ToHost
from tallystick.sandbox.protocol import EndOfGuest, Limits, SandboxError

START_SECONDS = 60.0
#: Containers that are started at the same time. Each keeps a core busy for a while: more only wait for each other.
STARTS_AT_ONCE = max(2, os.cpu_count() or 2)

_OPTIONS = ("-s", "-P", "-S", "-B", "-c")


def program(code: str) -> str:
    """Return a program for a container of the image: ``code``, with the guest's modules within reach."""
    return f"import sys; sys.path += ['/opt/guest']; sys.modules['typing_extensions'] = None\n{code}"


# The first process of a container gets no signal that it does not handle. So that the limit of processor time ends it
# and names itself, the handler is the C library's own exit: it needs no turn of the interpreter, which a script could
# keep from it.
GUEST = program(f"""
import ctypes
from tallystick.sandbox.guest.process import main
library = ctypes.CDLL(None)
library.signal({int(signal.SIGXCPU)}, ctypes.cast(library._exit, ctypes.c_void_p))
main()
""")


class DockerDriver:
    """Opens guests in containers.

    The first guest takes a moment longer: the engine is found, what a dead daemon of this store left is swept away,
    and the image is built where there is none yet.

    Args:
        store: the id of the store that this daemon owns; it marks the containers that are this daemon's to remove.
        image: the id of the image, or the file that pins it; from a file the image is built when it is missing.
        endpoint: the engine; None looks where ``DOCKER_HOST`` says, then at the usual sockets.
        progress: told what takes long, a line at a time.
        guest: the Python source that the container runs; only tests of hostile guests name another.
    """

    name = "docker"

    def __init__(
        self,
        *,
        store: str,
        image: PinFile | str,
        endpoint: Endpoint | None = None,
        progress: Callable[[str], None] = lambda _: None,
        guest: str = GUEST,
    ) -> None:
        self.image = image if isinstance(image, str) else ""
        self.swept = Swept()
        self._store = store
        self._pin_file = image if isinstance(image, PinFile) else None
        self._endpoint = endpoint
        self._progress = progress
        self._command = ["/usr/bin/python3", *_OPTIONS, guest]
        self._owner = owner.current()
        self._engine: Engine | None = None
        self._preparing = anyio.Lock()
        self._starts = anyio.Semaphore(STARTS_AT_ONCE)
        self._open: set[DockerSandbox] = set()
        self._leftovers: set[str] = set()

    async def open(self, limits: Limits, nonce: str) -> DockerSandbox:
        """Start a guest, wait for its Ready frame, verify its confinement, and return it warm.

        Raises:
            SandboxError: it cannot be started or confined here, or what started is not what was asked for.
        """
        engine = await self.prepare()
        async with self._starts:
            name, settings = f"tallystick-{secrets.token_hex(8)}", self._settings(limits, nonce)
            created = await self._create(engine, name, settings)
            try:
                with anyio.fail_after(START_SECONDS):
                    attached = await attach(engine.endpoint, f"/{engine.docker.api_version}/containers/{created.id}", limits.stderr)
            except BaseException as error:
                with anyio.CancelScope(shield=True):
                    self._let_go(created.id, await remove(engine, created.id))
                if isinstance(error, (OSError, TimeoutError)):
                    raise SandboxError(f"the guest's streams could not be attached: {error}") from error
                raise
            sandbox = DockerSandbox(engine, created, attached, limits, nonce, self._forget)
            self._open.add(sandbox)
            try:
                with anyio.fail_after(START_SECONDS):
                    await self._start(engine, created, sandbox, settings, limits, nonce)
            except (EndOfGuest, FrameError, TimeoutError) as error:
                raise _not_started(error, await sandbox.kill()) from None
            except BaseException:
                await sandbox.kill()
                raise
        return sandbox
