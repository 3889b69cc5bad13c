"""What a try came to, and the checks that tries belong to."""

import msgspec

#: The checks that need a whole engine (``tallystick.engine.acceptance``).
ENGINE_CHECKS = ("RPC authorization", "artifact export", "budget downgrade", "concurrency", "capability audit")

CHECKS = (
    "network isolation",
    "read-only filesystem",
    "non-root execution",
    "seccomp",
    "namespaces and kernel",
    "processes and signals",
    "environment and secrets",
    "resource limits",
    "memory limit",
    "timeout",
    "output limits",
    "frame protocol",
    *ENGINE_CHECKS,
)


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One try: the named check that it belongs to, its own name, whether the wall held, and what was seen."""

    check: str
    name: str
    ok: bool
    detail: str
