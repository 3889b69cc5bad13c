"""Keys derived from an identity: the effect key and the sample seed (contract.md, sections 6.1 and 6.2).

Both are made by the host and never read from the script. Their encodings are versioned and pinned by golden
files: the same logical call keeps its key over retries, restarts and releases.
"""

import hashlib
import hmac
import json

from tallystick.contract.identity import Identity

EFFECT_KEY_SCHEME = "k1"
SEED_SCHEME = "n1"


def effect_key(secret: bytes, run: str, identity: Identity, *, capability: str, digest: str, decisions: int) -> str:
    """Return the idempotency key of one logical call, 40 hex digits (contract.md, section 6.2).

    Args:
        secret: the store's own key.
        run: the run's id.
        identity: where the call stands and how it was reached.
        capability: what it calls: after a failure a rewrite may call another one at an identity, with equal payload.
        digest: its payload digest, hex.
        decisions: how many operator decisions opened this identity again; each makes another logical call.
    """
    message = json.dumps([EFFECT_KEY_SCHEME, run, identity.canonical().decode(), capability, digest, decisions])
    return "ts-" + hmac.new(secret, message.encode(), hashlib.sha256).hexdigest()[:40]


def sample_seed(run_seed: int, identity: Identity, take: str | None) -> int:
    """Return the seed of one sample, 0 to 2**63 - 1: its own for each identity and take, the same on a rerun."""
    message = json.dumps([SEED_SCHEME, run_seed, identity.canonical().decode(), take])
    return int.from_bytes(hashlib.sha256(message.encode()).digest()[:8], "big") >> 1


def revision_digest(source: str, canonical_args: bytes) -> str:
    """Return the hex SHA-256 that names a revision: its source and its args (contract.md, section 1)."""
    hasher = hashlib.sha256(b"r1")
    for part in (source.encode("utf-8", "surrogatepass"), canonical_args):
        hasher.update(len(part).to_bytes(8, "big"))
        hasher.update(part)
    return hasher.hexdigest()
