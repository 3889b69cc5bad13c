"""The ``docker`` driver: the guest in a container of a pinned image, checked once it runs, before it gets a script."""

import os
import secrets
import signal
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any

import anyio
import anyio.to_thread
from aiodocker.containers import DockerContainer

from tallystick.sandbox.docker import owner
from tallystick.sandbox.docker.attached import Attached, attach
from tallystick.sandbox.docker.client import Engine, EngineError
from tallystick.sandbox.docker.discovery import Endpoint, find
from tallystick.sandbox.docker.image import pinned
from tallystick.sandbox.docker.kernel_view import seen_differences
from tallystick.sandbox.docker.pin import PinFile
from tallystick.sandbox.docker.profile import container, differences
from tallystick.sandbox.docker.sandbox import DockerSandbox, remove
from tallystick.sandbox.docker.sweep import Swept, sweep
from tallystick.sandbox.frames import Boot, FrameError, Ready, ToHost
from tallystick.sandbox.guest.process import EXIT_UNCONFINED
from tallystick.sandbox.protocol import EndOfGuest, Exit, Limits, SandboxError

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
        image: the id of the image, or the file that pins it; from a file the image is built when it is missing, and a
            file that was rewritten (``tally image build``) holds for every guest that is started from then on.
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
        self._read: tuple[int, int] | None = None
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
        image = self.image
        settings = container(image, self._command, limits, owner.labels(self._store, self._owner, nonce))
        async with self._starts:
            created = await self._create(engine, settings)
            try:
                attached = await self._attach(engine, created, limits)
            except BaseException:
                with anyio.CancelScope(shield=True):
                    await self._remove(engine, created.id)
                raise
            sandbox = DockerSandbox(
                engine, created, attached, image=image, limits=limits, nonce=nonce, forget=self._forget
            )
            self._open.add(sandbox)
            try:
                with anyio.fail_after(START_SECONDS):
                    await self._start(engine, created, sandbox, settings, _boot(limits, nonce))
            except (EndOfGuest, FrameError, TimeoutError) as error:
                raise _not_started(error, await sandbox.kill()) from None
            except BaseException:
                await sandbox.kill()
                raise
        return sandbox

    async def prepare(self) -> Engine:
        """Find the engine, sweep, and have the image, once; later calls return at once.

        Raises:
            SandboxError: one of these failed; the next call tries again.
        """
        async with self._preparing:
            if self._engine is None:
                self._engine = await self._connected()
            engine = self._engine
            if self._pin_file is not None and (not self.image or self._read != self._pin_file.stamp()):
                self.image = (await pinned(engine, self._pin_file, self._progress)).image
                self._read = self._pin_file.stamp()
            for each in tuple(self._leftovers):
                await self._remove(engine, each)
        return engine

    async def close(self) -> None:
        """Kill every guest still open, and let go of the engine."""
        async with anyio.create_task_group() as tasks:
            for sandbox in tuple(self._open):
                tasks.start_soon(sandbox.kill)
        engine, self._engine = self._engine, None
        if engine is not None:
            await engine.close()

    async def _connected(self) -> Engine:
        try:
            engine = Engine(self._endpoint or find())
        except ValueError as error:
            raise SandboxError(str(error)) from None
        try:
            self.swept = await sweep(engine, self._store)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await engine.close()
            raise
        return engine

    async def _create(self, engine: Engine, settings: dict[str, Any]) -> DockerContainer:
        name = f"tallystick-{secrets.token_hex(8)}"
        try:
            # A request that is cancelled makes its container all the same, and nobody learns its id.
            with anyio.CancelScope(shield=True):
                async with engine.asked("create a guest") as docker:
                    created = await docker.containers.create(settings, name=name)
        except BaseException as error:
            self._leftovers.add(name)  # whether there is one is not known; the next start removes it
            if isinstance(error, EngineError) and error.status == HTTPStatus.NOT_FOUND and self._pin_file is not None:
                self.image = ""
            raise
        return created

    async def _attach(self, engine: Engine, created: DockerContainer, limits: Limits) -> Attached:
        path = f"/{engine.docker.api_version}/containers/{created.id}"
        try:
            with anyio.fail_after(START_SECONDS):
                return await attach(engine.endpoint, path, limits.stderr)
        except OSError as error:  # a TimeoutError is one
            raise SandboxError(f"the guest's streams could not be attached: {error}") from error

    async def _start(
        self, engine: Engine, created: DockerContainer, sandbox: DockerSandbox, settings: dict[str, Any], boot: Boot
    ) -> None:
        async with engine.asked("start a guest"):
            await created.start()
        await sandbox.send([boot])
        _verify(await sandbox.receive())
        async with engine.asked("describe a guest"):
            found = await created.show()
        wrong = [*differences(settings, found), *await anyio.to_thread.run_sync(seen_differences, found)]
        if wrong:
            raise SandboxError(
                "the container that started is not what was asked for, so it got no script and was removed: "
                + "; ".join(map(str, wrong))
            )

    def _forget(self, sandbox: DockerSandbox, removed: bool) -> None:
        self._open.discard(sandbox)
        if not removed:
            self._leftovers.add(sandbox.id)

    async def _remove(self, engine: Engine, container_or_name: str) -> None:
        self._leftovers.add(container_or_name)
        if await remove(engine, container_or_name):
            self._leftovers.discard(container_or_name)


def _boot(limits: Limits, nonce: str) -> Boot:
    """Return the first frame: the guest sees no parent, and does without Landlock, for the container is its wall."""
    return Boot(
        nonce=nonce,
        parent=0,
        memory=limits.memory,
        cpu_seconds=limits.cpu_seconds,
        open_files=limits.open_files,
        stderr=limits.stderr,
        allow_missing=("landlock",),
    )


def _verify(received: Sequence[ToHost]) -> None:
    ready = received[0]
    if not isinstance(ready, Ready) or len(received) > 1:
        raise FrameError("a guest answers its boot with Ready, and then waits")
    if not ready.seccomp:
        raise SandboxError("the guest runs without its own filter of system calls; it was ended")


def _not_started(error: Exception, exit_: Exit) -> SandboxError:
    if exit_.code == EXIT_UNCONFINED:
        return SandboxError(f"the guest could not be confined, so it was not used. {exit_.text}")
    if isinstance(error, TimeoutError):
        error = TimeoutError(f"no sign of life within {START_SECONDS:g} s")
    return SandboxError(f"the guest did not start: {error}. {exit_.text or f'It ended by {exit_.cause}.'}")
