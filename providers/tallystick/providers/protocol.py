"""What a provider is: one async call with a closed set of outcomes (architecture.md, section 6; contract.md, 6.2)."""

from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias, runtime_checkable

import msgspec

from tallystick.contract.capability import FailureKind

API_VERSION = 1


class Blob(msgspec.Struct, frozen=True):
    """Bytes inside a result. The broker stores them by content and puts an artifact reference in their place."""

    data: bytes
    media_type: str


class Succeeded(msgspec.Struct, frozen=True, kw_only=True):
    """Done and usable. ``result`` is JSON-like with ``Blob`` leaves; ``cost`` in micro-dollars, None when unknown."""

    result: Any
    usage: dict[str, Any] = {}
    cost: int | None = None
    job: str | None = None


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """Definitely not done. ``text`` is the provider's own, ``retry_after`` in seconds."""

    kind: FailureKind
    text: str
    retry_after: float | None = None
    cost: int | None = 0


class Unusable(msgspec.Struct, frozen=True, kw_only=True):
    """Answered and billed, but empty, broken or against the schema; ``raw`` is the answer as it came."""

    raw: Any
    text: str
    cost: int | None = None


class Unknown(msgspec.Struct, frozen=True, kw_only=True):
    """Perhaps done: a timeout, a reset, a cut-off answer. ``kind`` is what a read-only call shows its script.

    ``raw`` is an answer that came but could not be completed: its links name what was paid for and not fetched.
    """

    reason: str
    kind: FailureKind = "timeout"
    job: str | None = None
    cost: int | None = None
    raw: Any = None


Outcome: TypeAlias = Succeeded | Refused | Unusable | Unknown


class Absent(msgspec.Struct, frozen=True, kw_only=True):
    """What a look-up found: the provider knows no such request. It counts only after ``absence_final_after``."""

    text: str


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """What makes one call's sample its own.

    ``seed`` (0 to 2**63-1) derives from identity, take and the run's seed: independent samples of one payload
    differ, and are the same on a rerun. ``execution`` counts this capability's executions in the run from 1;
    ``faults`` and ``latency`` (seconds) are the run's scripted failures, which only the local provider obeys.
    """

    seed: int
    execution: int = 1
    faults: tuple[str, ...] = ()
    latency: float = 0.0


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider promises about resent and looked-up calls (contract.md, 6.2). Times are seconds."""

    dedupes_keys: float = 0.0
    absence_final_after: float | None = None


class Artifacts(Protocol):
    """How a provider reads the bytes behind an artifact reference of a payload."""

    def get_file(self, sha256: str) -> bytes:
        """Return the bytes of an artifact by the hex SHA-256 of its content.

        Raises:
            StoreError: there is no such artifact, or its bytes are damaged.
        """


class Provider(Protocol):
    """One way to execute capabilities. An instance is used by one event loop, by many calls at once."""

    api_version: int
    name: str
    capabilities: frozenset[str]
    profile: Profile

    async def call(self, capability: str, payload: Mapping[str, Any], key: str, sample: Sample) -> Outcome:
        """Execute once and say how it ended; never retry a side effect, never raise for a provider's answer.

        Args:
            capability: one of ``capabilities``.
            payload: canonical JSON-like data, checked against the catalogue.
            key: the idempotency key, to pass on where the provider takes one.
            sample: the seed of this sample.
        """

    async def close(self) -> None:
        """Release connections. Calls in flight have settled before this is called."""


class Tracker(Protocol):
    """What a caller wants to know of a call before its end. Each method returns when the fact is durable."""

    async def submitted(self, job: str) -> None:
        """Note the provider's id of the work, which outlives the connection."""

    async def answered(self, raw: Any, cost: int | None) -> None:
        """Note the answer as it came (see ``Unusable.raw``) and its cost, before the links in it are fetched."""


@runtime_checkable
class Tracked(Protocol):
    """A provider that has something to say before a call ends; ``call`` is the same without a listener."""

    async def call_tracked(
        self, capability: str, payload: Mapping[str, Any], key: str, sample: Sample, tracker: Tracker
    ) -> Outcome:
        """Execute once, as ``Provider.call`` does; what ``tracker`` raises is passed on."""


@runtime_checkable
class LooksUp(Protocol):
    """A provider that can be asked what became of a call (contract.md, 6.2). Asking is free and may be repeated."""

    async def lookup(self, capability: str, payload: Mapping[str, Any], key: str, job: str | None) -> Outcome | Absent:
        """Say how an earlier call ended; work that still runs is waited for.

        Args:
            capability: the capability of that call.
            payload: its payload.
            key: its idempotency key.
            job: the provider's id of its work, where one is known.

        Returns:
            ``Unknown`` where nobody can say: no id and no look-up by key, or the provider cannot be reached.
        """


@runtime_checkable
class Reprocesses(Protocol):
    """A provider that can make an outcome of an answer that was kept, without a new call."""

    async def reprocess(self, capability: str, payload: Mapping[str, Any], raw: Any) -> Outcome:
        """Read a kept ``raw`` again, and fetch what its links name; its blobs may have become artifact references."""


@runtime_checkable
class Advises(Protocol):
    """A provider that can see what its way to the API may do to a call: a gateway that sends again, say."""

    async def advice(self) -> tuple[str, ...]:
        """Return a sentence for each thing that an operator should see to, nothing where all is well.

        It asks the gateway, which is free, and never raises for what it cannot learn: that is a sentence, too.
        """


@runtime_checkable
class Prices(Protocol):
    """A provider that knows beforehand whether its answers will come with a cost."""

    def prices(self, capability: str) -> bool:
        """Tell whether calls of a capability are priced by its settings; False where the cost stays unknown."""
