"""What clients and the daemon say to each other about money and files; see ``messages``."""

from typing import Any, Literal

import msgspec

from tallystick.contract.identity import Identity


class CostLine(msgspec.Struct, frozen=True, kw_only=True):
    """What some calls have cost: ``usd`` is what is known, beside ``unpriced`` calls of which nobody knows it.

    ``reserved_usd`` is set aside for calls in flight and for those without a price.
    """

    name: str
    calls: int = 0
    usd: float = 0.0
    unpriced: int = 0
    reserved_usd: float = 0.0
    tokens: int = 0


class LaunchCost(msgspec.Struct, frozen=True, kw_only=True):
    """What one launch has paid, and what its replays had cost when they were paid."""

    launch: int
    revision: int
    paid: CostLine
    replayed: int = 0
    saved_usd: float = 0.0
    saved_unpriced: int = 0


class CostReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a run has cost. ``rerun_usd`` is what it would have cost had each launch paid for all of its calls anew."""

    run: str
    total: CostLine
    by_capability: tuple[CostLine, ...] = ()
    by_site: tuple[CostLine, ...] = ()
    by_outcome: tuple[CostLine, ...] = ()
    by_launch: tuple[LaunchCost, ...] = ()
    rerun_usd: float = 0.0
    rerun_unpriced: int = 0


class WaitingCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call that is not made before a person has approved of it: exactly what would be sent, and what it may cost.

    ``decision`` is None where nobody has decided yet, with ``who`` and ``why`` where somebody has.
    """

    identity: Identity
    capability: str
    payload: Any
    digest: str
    take: str | None = None
    estimate_usd: float = 0.0
    decision: Literal["approved", "denied"] | None = None
    who: str = ""
    why: str = ""


class ApprovalRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Approve of one call that waits, once, or deny it. ``digest`` is that of the payload which was looked at."""

    identity: Identity
    digest: str
    approve: bool = True
    who: str
    why: str = ""


class FileReference(msgspec.Struct, frozen=True):
    """A file that is kept, as payloads refer to it: ``{"$artifact": "sha256:…", "media_type": str, "bytes": int}``."""

    sha256: str = msgspec.field(name="$artifact")
    media_type: str
    bytes: int


class SweepRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Remove the files that nothing names and nobody has touched for ``older_than`` seconds, or only count them."""

    older_than: float = 86_400.0
    dry_run: bool = False


class SweepReport(msgspec.Struct, frozen=True, kw_only=True):
    """What was removed, or would be; ``kept`` files are named by nothing and were touched while they were looked at."""

    dry_run: bool
    removed: int
    bytes: int
    kept: int
