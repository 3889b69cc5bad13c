"""What can be set of the ``http`` provider; a shipped profile is the same settings as data (docs/http-provider.md)."""

import ipaddress
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec

from tallystick.providers.http import paths
from tallystick.providers.http.credentials import KeySettings
from tallystick.providers.http.errors import Errors
from tallystick.providers.http.prices import Price

Seconds = Annotated[float, msgspec.Meta(gt=0)]
Window = Annotated[float, msgspec.Meta(ge=0)]
Bytes = Annotated[int, msgspec.Meta(ge=1)]
HttpPath = Annotated[str, msgspec.Meta(pattern="^/")]
Model = Annotated[str, msgspec.Meta(min_length=1)]

_CREDENTIALS = frozenset({"authorization", "proxy-authorization", "cookie", "x-api-key", "api-key", "x-goog-api-key"})


class _Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What all parts have in common: a name that is not known is refused."""


class Timeouts(_Settings, frozen=True, kw_only=True):
    """Seconds: for the connection, for sending, and for a whole request with its answer."""

    connect: Seconds = 10.0
    send: Seconds = 60.0
    answer: Seconds = 300.0


class Downloads(_Settings, frozen=True, kw_only=True):
    """How the links of an answer are fetched, which happens at once.

    ``max_bytes`` bounds each file, whether behind a link or inline. ``allow``: networks, as ``10.0.0.0/8``, that
    links may lead to although they are private. ``timeout``: seconds for one try; ``tries`` of one link.
    """

    max_bytes: Bytes = 64 << 20
    allow: tuple[str, ...] = ()
    timeout: Seconds = 120.0
    tries: Annotated[int, msgspec.Meta(ge=1, le=10)] = 3

    def __post_init__(self) -> None:
        """Refuse networks that are none."""
        for network in self.allow:
            ipaddress.ip_network(network)


class Job(_Settings, frozen=True, kw_only=True):
    """An operation whose answer is a job to be asked after.

    ``id`` and ``status``: where an answer names the job and its state. ``path``: what is asked (``$job`` is the id).
    A state of ``done`` has the result, one of ``failed`` will never have it, any other is waited for: ``interval``
    seconds at first, then ever longer up to ``max_interval``, for ``deadline`` seconds in all.
    """

    id: str
    path: HttpPath
    status: str = "status"
    done: tuple[str | int, ...]
    failed: tuple[str | int, ...]
    interval: Seconds = 2.0
    max_interval: Seconds = 15.0
    deadline: Seconds = 540.0

    def __post_init__(self) -> None:
        """Refuse paths that are none."""
        for text in (self.id, self.status):
            paths.parse(text)


class Lookup(_Settings, frozen=True, kw_only=True):
    """How the API is asked for what an idempotency key has done: ``path`` (``$key``), and where its entry stands.

    A 404, or nothing at ``entry``, says that it knows no such request.
    """

    path: HttpPath
    entry: str = ""

    def __post_init__(self) -> None:
        """Refuse paths that are none."""
        paths.parse(self.entry)


class OperationSettings(_Settings, frozen=True, kw_only=True):
    """One capability: what is sent, and how its result is read from what comes.

    ``path``, ``headers``, ``body`` and ``result`` are templates (see ``templates``). ``only``: values that a field
    may have, for one that the API does not take; ``ignore``: fields that it has no use for. A payload with any other
    field that is not sent is refused. ``usage``: where the answer says what was used.
    """

    method: Literal["POST", "PUT", "GET"] = "POST"
    path: HttpPath
    headers: dict[str, str] = {}
    body: dict[str, Any] | None = None
    only: dict[str, list[Any]] = {}
    ignore: tuple[str, ...] = ()
    result: dict[str, Any]
    usage: str = "usage"
    job: Job | None = None
    lookup: Lookup | None = None
    price: Price | None = None
    timeout: Seconds | None = None

    def __post_init__(self) -> None:
        """Refuse paths that are none."""
        paths.parse(self.usage)


class HttpSettings(_Settings, frozen=True, kw_only=True):
    """Settings of the ``http`` provider.

    ``name`` is what it calls itself in messages. ``model`` is what ``$model`` means, ``models`` the same for single
    capabilities. ``dedupes_keys`` and ``absence_final_after`` (seconds) are what the API promises of idempotency
    keys, which it takes in ``idempotency_header``; see ``protocol.Profile``. ``max_request`` and ``max_answer`` bound
    bodies in bytes. ``proxy``: whether HTTP_PROXY and its kin count.
    """

    name: Annotated[str, msgspec.Meta(min_length=1)] = "http"
    base_url: str
    key: KeySettings | None = None
    headers: dict[str, str] = {}
    idempotency_header: str | None = None
    dedupes_keys: Window = 0.0
    absence_final_after: Window | None = None
    model: Model | None = None
    models: dict[str, Model] = {}
    operations: Annotated[dict[str, OperationSettings], msgspec.Meta(min_length=1)]
    errors: Errors = Errors()
    downloads: Downloads = Downloads()
    timeouts: Timeouts = Timeouts()
    max_request: Bytes = 64 << 20
    max_answer: Bytes = 128 << 20
    proxy: bool = True

    def __post_init__(self) -> None:
        """Refuse an address that is none, and credentials in plain sight."""
        url = urlsplit(self.base_url)
        if url.scheme not in ("http", "https") or not url.hostname or url.username or url.query or url.fragment:
            raise ValueError("base_url must be an address like https://api.example/v1, without a user or a query")
        if self.dedupes_keys and self.idempotency_header is None:
            raise ValueError("dedupes_keys needs the idempotency_header in which the API takes the key")
        for name in (*self.headers, *(name for one in self.operations.values() for name in one.headers)):
            if name.lower() in _CREDENTIALS:
                raise ValueError(f"the header {name} holds a credential: set key, and keep it out of the configuration")
