"""The engine's client, and its troubles in words that say what to do."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus

import aiohttp
import anyio
from aiodocker import Docker
from aiodocker.exceptions import DockerError

from tallystick.sandbox.docker.discovery import Endpoint, unreachable
from tallystick.sandbox.protocol import SandboxError

#: Seconds that an engine gets for one request. It answers in milliseconds; under a hundred starts at once, in seconds.
REQUEST_SECONDS = 60.0

_NO_CONNECTION = 900  # what the client calls a request that got no answer


class EngineError(SandboxError):
    """The engine refused, failed or did not answer.

    Attributes:
        status: the HTTP status of its answer, 0 where there was none.
    """

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class Engine:
    """A client of one engine.

    Without the usual bound on connections, for every guest that is waited for holds one; and without keeping any, for
    one that was kept over a restart of the engine fails the first request after it.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        if endpoint.path:
            self._connector: aiohttp.BaseConnector = aiohttp.UnixConnector(endpoint.path, limit=0, force_close=True)
            url = "unix://localhost"
        else:
            self._connector = aiohttp.TCPConnector(limit=0, force_close=True)
            url = str(endpoint)
        # No time limit in here: a quiet stream has not ended, and requests are bounded where they are made.
        self.docker = Docker(url, connector=self._connector, timeout=aiohttp.ClientTimeout(total=None))

    async def close(self) -> None:
        """Drop every connection."""
        await self.docker.close()
        await self._connector.close()

    @asynccontextmanager
    async def asked(self, to: str, seconds: float | None = None) -> AsyncIterator[Docker]:
        """Ask the engine ``to`` do something, within some seconds, ``REQUEST_SECONDS`` if none are given.

        Raises:
            EngineError: it refused or failed, or did not answer in time.
        """
        try:
            with anyio.fail_after(REQUEST_SECONDS if seconds is None else seconds):
                yield self.docker
        except DockerError as error:
            if error.status == _NO_CONNECTION:
                raise EngineError(unreachable(str(self.endpoint), _os_error(error))) from error
            raise EngineError(refusal(to, error.status, error.message), error.status) from error
        except TimeoutError as error:
            raise EngineError(f"{unreachable(str(self.endpoint), error)} (it was asked to {to})") from error
        except (aiohttp.ClientError, OSError, RuntimeError) as error:
            if isinstance(error, RuntimeError) and not self.docker.session.closed:
                raise
            raise EngineError(f"the engine went away while it was asked to {to}: {error}; try again") from error


def refusal(to: str, status: int, message: str) -> str:
    """Say what an engine's error answer means, and what to do."""
    said = message.strip()
    if status == HTTPStatus.NOT_FOUND and "image" in said.lower():
        return f"the engine does not have the pinned image ({said}); build it again with: tally image build"
    if "no space left on device" in said or "disk quota exceeded" in said:
        return (
            f"the engine's disk is full, so it could not {to} ({said}); free some: docker system df shows what takes it"
        )
    return f"the engine could not {to}: {said}"


def _os_error(error: BaseException) -> BaseException:
    """Return the operating system's own error behind a client's."""
    seen: BaseException | None = error
    while seen is not None:
        inner = getattr(seen, "os_error", None)
        if isinstance(inner, OSError):
            return inner
        seen = seen.__cause__ or seen.__context__
    return error
