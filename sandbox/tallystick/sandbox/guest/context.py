"""``ctx``, the only thing that a script can reach the world with (contract.md, sections 4 and 6.4)."""

from collections.abc import Callable
from typing import Any

from tallystick.sandbox.frames import MAX_NAME
from tallystick.sandbox.guest import requests
from tallystick.sandbox.guest.plain import NotPlainError, snapshot_payload
from tallystick.sandbox.guest.requests import Invocation, Request
from tallystick.sandbox.guest.values import CapabilityError


class Context:
    """Makes requests; the trampoline carries them out when a branch awaits them."""

    __slots__ = ("_log",)

    def __init__(self, log: Callable[[Any], None]) -> None:
        self._log = log

    def run(self, capability: str, payload: Any, take: str | None = None, *, _site: str | None = None) -> Request:
        """Return the request to call a capability once with this payload, as it is now.

        Args:
            capability: its name, ``image.generate`` say.
            payload: plain JSON-like data.
            take: a name for a wanted fresh sample of the very same payload.

        Raises:
            CapabilityError: the payload or the take cannot be sent; ``kind`` is ``invalid_request``.
            TypeError: the capability is not a text, or the host did not annotate this call.
        """
        if type(capability) is not str or len(capability) > MAX_NAME:
            raise TypeError("ctx.run takes the name of a capability, a short text, and then its payload")
        if type(_site) is not str:
            raise TypeError(f"this call of {capability} has no site; write it out as ctx.run({capability!r}, ...)")
        if take is not None and (type(take) is not str or not take.isprintable() or len(take) > MAX_NAME):
            raise CapabilityError("invalid_request", f"take is a short text that names a sample, not {take!r:.60}")
        try:
            return Request(Invocation(_site, capability, snapshot_payload(payload), take))
        except NotPlainError as error:
            raise CapabilityError("invalid_request", str(error)) from None

    def parallel(self, branches: Any, *, tolerate: bool = False) -> Request:
        """Return the request to run branches side by side; its result is the list of theirs, in their order.

        All branches settle; then the first error by position is raised. With ``tolerate`` a branch that failed with
        a ``CapabilityError`` is a ``Failed`` value in the list instead; any other error is raised all the same.
        """
        return Request(requests.parallel(branches, tolerate=tolerate))

    def pipeline(self, items: Any, *stages: Callable[[Any], Any], tolerate: bool = False) -> Request:
        """Return the request to take each item through all stages, items side by side; a stage may be async."""
        return Request(requests.pipeline(items, stages, tolerate=tolerate))

    def dag(self, graph: dict[str, Any], *, tolerate: bool = False) -> Request:
        """Return the request to run ``{name: ([dependency, ...], function)}``; its result is a dict by name.

        Each function gets a dict of its dependencies' results; it may be async. A function that needs a failed one
        does not run, unless failures are tolerated: then it gets the ``Failed`` value.
        """
        return Request(requests.dag(graph, tolerate=tolerate))

    def race(self, branches: Any, *, _site: str | None = None) -> Request:
        """Return the request to run branches side by side until one succeeds; its result is that one's.

        The winner is written down: a later launch of the run gets the same one. Losers start no further call. When
        all fail, the first error by position is raised.

        Raises:
            TypeError: a branch is not awaitable, or the host did not annotate this race.
        """
        if type(_site) is not str:
            raise TypeError("this race has no site; write it out as ctx.race(...)")
        return Request(requests.race(branches, _site))

    def log(self, text: Any) -> None:
        """Add a line to the run's log."""
        self._log(text)
