"""Fetching what the links of an answer name, at once: links die, and a replay must not depend on one."""

import ipaddress
import socket
from collections.abc import Awaitable, Callable

import anyio
import httpx

from tallystick.kernel import Clock, cancel_after
from tallystick.providers.http.addresses import may_be_reached
from tallystick.providers.http.exchange import tls
from tallystick.providers.http.settings import Downloads

Resolve = Callable[[str, int], Awaitable[list[str]]]

_HOPS = 4
_PAUSE = 0.5
_SHOWN = 120
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})


class DownloadError(Exception):
    """A link could not be fetched. ``lasting``: it will not be fetched later either."""

    def __init__(self, message: str, *, lasting: bool) -> None:
        super().__init__(message)
        self.lasting = lasting


async def resolve(host: str, port: int) -> list[str]:
    """Return the addresses of a host; raises ``OSError`` when it has none."""
    found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


class Downloader:
    """Fetches links without any credential. Every address is looked at before it is connected to, on each hop.

    Fetching is reading: what breaks is tried again, up to ``tries`` times.
    """

    def __init__(self, settings: Downloads, clock: Clock, *, proxy: bool = True, resolver: Resolve = resolve) -> None:
        self._settings = settings
        self._allowed = tuple(map(ipaddress.ip_network, settings.allow))
        self._clock = clock
        self._resolver = resolver
        # A connection is known by its address alone; kept open, it would serve another host of that address.
        limits = httpx.Limits(max_keepalive_connections=0)
        self._client = httpx.AsyncClient(verify=tls(), trust_env=proxy, timeout=settings.timeout, limits=limits)

    async def fetch(self, link: str) -> bytes:
        """Return all of the bytes behind a link.

        Raises:
            DownloadError: it leads nowhere, to a private address or to too much, or it broke each time.
        """
        for attempt in range(self._settings.tries):
            await self._clock.sleep(_PAUSE * attempt)
            last = f"nothing came within {self._settings.timeout:g} s"
            try:
                with cancel_after(self._clock, self._settings.timeout):
                    return await self._follow(link)
            except DownloadError as error:
                if error.lasting:
                    raise
                last = str(error)
            except httpx.HTTPError as error:
                last = f"it broke: {str(error) or type(error).__name__}"
        raise DownloadError(f"{last} (tried {self._settings.tries} times)", lasting=False)

    async def close(self) -> None:
        """Release the connections."""
        await self._client.aclose()

    async def _follow(self, link: str) -> bytes:
        for _ in range(_HOPS):
            url = _checked(link)
            address = await self._address(url)
            # The name goes into the Host header and the handshake; the connection goes to the address that was checked.
            async with self._client.stream(
                "GET",
                url.copy_with(host=address),
                headers={"Host": url.netloc.decode("ascii"), "Accept-Encoding": "identity"},
                extensions={"sni_hostname": url.raw_host.decode("ascii")},
            ) as response:
                if response.is_redirect and "location" in response.headers:
                    link = str(url.join(response.headers["location"]))
                    continue
                return await self._read(response)
        raise DownloadError(f"it was passed on more than {_HOPS - 1} times", lasting=True)

    async def _address(self, url: httpx.URL) -> str:
        try:
            port = url.port or (443 if url.scheme == "https" else 80)
            addresses = await self._resolver(url.raw_host.decode("ascii"), port)
        except OSError as error:
            raise DownloadError(f"{url.host} is not found: {error}", lasting=False) from None
        if not addresses or not all(may_be_reached(one, self._allowed) for one in addresses):
            raise DownloadError(
                f"{url.host} is a private address, to which an answer must not lead; downloads.allow can permit it",
                lasting=True,
            )
        return addresses[0]

    async def _read(self, response: httpx.Response) -> bytes:
        if response.status_code != httpx.codes.OK:
            lasting = response.status_code not in _PASSING
            raise DownloadError(f"the status is {response.status_code}", lasting=lasting)
        limit = self._settings.max_bytes
        too_large = DownloadError(f"it has more than {limit} bytes; downloads.max_bytes is the limit", lasting=True)
        announced = response.headers.get("content-length", "")
        if announced.isdecimal() and int(announced) > limit:
            raise too_large
        body = bytearray()
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > limit:
                raise too_large
        return bytes(body)


def _checked(link: str) -> httpx.URL:
    try:
        url = httpx.URL(link)
    except httpx.InvalidURL:
        url = httpx.URL("")
    if url.scheme not in ("http", "https") or not url.host or url.userinfo:
        raise DownloadError(f'"{link[:_SHOWN]}" is not a link', lasting=True)
    return url
