"""HTTP over the daemon's unix socket.

The standard library's client does all that is needed here and loads five times as fast as the alternatives, which
every command would otherwise wait for.
"""

import http.client
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from tallystick.contract.errors import DaemonError, TallyError
from tallystick.engine.messages import ErrorBody, exit_code_of
from tallystick.engine.money_messages import FileReference

T = TypeVar("T")

#: Seconds that a daemon may take to answer what it answers at once; None where it may have to wait for calls.
ANSWER_TIMEOUT = 60.0


class RefusedError(TallyError):
    """The daemon refused a request; code, message, hint and details are its own."""

    def __init__(self, body: ErrorBody) -> None:
        super().__init__(body.error.message, hint=body.error.hint, code=body.error.code, details=body.details)
        self.exit_code = exit_code_of(body.error.code)


class Client:
    """Asks one daemon. Every request has its own connection, so a client may be used from any thread."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def answers(self) -> bool:
        """True when somebody accepts connections at the socket.

        Raises:
            DaemonError: what stands at the path is not a socket of this user.
        """
        refuse_foreign(self.path)
        try:
            with _connect(self.path, ANSWER_TIMEOUT):
                return True
        except (FileNotFoundError, ConnectionRefusedError):
            return False
        except OSError as error:
            raise DaemonError(f"the daemon's socket {self.path} cannot be used: {error.strerror}") from None

    def get(self, path: str, kind: type[T], **query: Any) -> T:
        """Ask for a resource of the API, decoded and checked as ``kind``.

        Raises:
            RefusedError: the daemon refused.
            DaemonError: it cannot be reached, went away, or speaks another language.
        """
        asked = {name: value for name, value in query.items() if value is not None}
        return self._decoded("GET", path + ("?" + urlencode(asked) if asked else ""), kind, None, ANSWER_TIMEOUT)

    def post(self, path: str, kind: type[T], body: Any = None, *, timeout: float | None = ANSWER_TIMEOUT) -> T:
        """Send a request, decoded and checked as ``kind``; errors as ``get``.

        Args:
            path: below ``/v1``.
            kind: what comes back.
            body: a Struct, sent as JSON.
            timeout: seconds, None for an answer that waits for calls in flight.
        """
        return self._decoded("POST", path, kind, body, timeout)

    def file(self, sha256: str) -> bytes:
        """Return the bytes of an artifact; errors as ``get``."""
        with self._exchange("GET", f"/v1/files/{quote(sha256, safe='')}", None, ANSWER_TIMEOUT) as response:
            return response.read()

    def put_file(self, data: bytes, media_type: str | None = None) -> FileReference:
        """Have a file kept by its content, and return how payloads refer to it; errors as ``get``."""
        path = "/v1/files" + ("?" + urlencode({"media_type": media_type}) if media_type is not None else "")
        return self._decoded("POST", path, FileReference, data, ANSWER_TIMEOUT)

    @contextmanager
    def lines(self, path: str) -> Iterator[Iterator[str]]:
        """Open a stream and yield an iterator over its lines, without their ends; errors as ``get``."""
        with self._exchange("GET", path, None, None) as response:
            yield (line.decode("utf-8", "replace").rstrip("\r\n") for line in response)

    def _decoded(self, method: str, path: str, kind: type[T], body: Any, timeout: float | None) -> T:
        with self._exchange(method, path, body, timeout) as response:
            answer = response.read()
        try:
            return msgspec.json.decode(answer, type=kind)
        except msgspec.DecodeError as error:
            raise DaemonError(
                f"the daemon's answer to {method} {path} is not understood: {error}",
                hint="it may be of another version: `tally daemon stop`, and try again",
            ) from None

    @contextmanager
    def _exchange(self, method: str, path: str, body: Any, timeout: float | None) -> Iterator[http.client.HTTPResponse]:
        connection = http.client.HTTPConnection("tally")
        try:
            connection.sock = _connect(self.path, timeout)
            content = body if isinstance(body, bytes | None) else msgspec.json.encode(body)
            kind = "application/octet-stream" if isinstance(body, bytes) else "application/json"
            connection.request(method, path, content, {"Content-Type": kind, "Connection": "close"})
            response = connection.getresponse()
            if response.status >= http.client.BAD_REQUEST:
                raise _refusal(response)
            yield response
        except TimeoutError:
            raise DaemonError(
                f"the daemon did not answer within {timeout:g} s", hint="see `tally daemon logs`"
            ) from None
        except (OSError, http.client.HTTPException) as error:
            raise DaemonError(
                f"the connection to the daemon at {self.path} was lost: {str(error) or type(error).__name__}",
                hint="what was journalled is kept; see `tally daemon status` and `tally daemon logs`",
            ) from None
        finally:
            connection.close()


def run_path(run: str, *rest: str | int) -> str:
    """Return the API path of a run, named by a prefix of its id or ``last``, or of something below it."""
    return "/".join(["/v1/runs", *(quote(str(part), safe="") for part in (run, *rest))])


def refuse_foreign(path: Path) -> None:
    """Look at what stands at the socket's path before anything is sent to it.

    Raises:
        DaemonError: it is not a socket, or it belongs to another user.
    """
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    except OSError as error:
        raise DaemonError(f"the daemon's socket {path} cannot be looked at: {error.strerror}") from None
    if not stat.S_ISSOCK(found.st_mode):
        raise DaemonError(
            f"{path} is not a socket; nothing was sent to it", hint="move it away, the daemon needs that name"
        )
    if found.st_uid != os.geteuid():
        raise DaemonError(
            f"the socket {path} belongs to user {found.st_uid}; nothing was sent to it",
            hint="point TALLYSTICK_HOME at a folder of your own",
        )


def _connect(path: Path, timeout: float | None) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(timeout)
        connection.connect(str(path))
    except BaseException:
        connection.close()
        raise
    return connection


def _refusal(response: http.client.HTTPResponse) -> TallyError:
    try:
        return RefusedError(msgspec.json.decode(response.read(), type=ErrorBody))
    except msgspec.DecodeError:
        return DaemonError(
            f"the daemon answered {response.status} {response.reason} without a reason",
            hint="see `tally daemon logs`; it may be of another version: `tally daemon stop`, and try again",
        )
