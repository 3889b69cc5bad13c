"""The certificate: what a run's records were at the end of a launch, so that a later change is named (contract.md, 8).

Every record is a leaf, the hash of all that it says; the leaves in the order of their identities are hashed into a
chain. A certificate lists the leaves that are new since the one before, and the log sequence up to which it speaks:
each can be recomputed at its own cut for as long as the log exists.
"""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from tallystick.contract.events import CertificateIssued, Leaf, Record
from tallystick.contract.identity import Identity

SCHEME = "c1"

_encoder = msgspec.json.Encoder(order="deterministic")


class Difference(msgspec.Struct, frozen=True):
    """A record that is not what a certificate says: gone, there without having been certified, or another."""

    launch: int
    kind: Literal["missing", "extra", "changed", "chain"]
    identity: Identity | None
    message: str


def leaf(record: Record) -> Leaf:
    """Return a record's leaf: the hash of everything it says, its result and files by their own hashes."""
    return Leaf(record.identity, hashlib.sha256(_encoder.encode([SCHEME, record])).hexdigest())


def chain(run: str, leaves: Iterable[Leaf]) -> str:
    """Return the hash over all leaves in the order of site, path, occurrence."""
    link = hashlib.sha256(f"{SCHEME} {run}".encode()).digest()
    for each in sorted(leaves, key=lambda one: one.identity.sort_key):
        link = hashlib.sha256(link + each.identity.canonical() + bytes.fromhex(each.hash)).digest()
    return link.hex()


def issue(
    run: str,
    launch: int,
    *,
    at: float,
    cut: int,
    records: Mapping[Identity, Record],
    earlier: Iterable[CertificateIssued],
) -> CertificateIssued:
    """Certify the records of a run as they stand at log sequence ``cut``."""
    known = {each.identity for certificate in earlier for each in certificate.added}
    leaves = {identity: leaf(record) for identity, record in records.items()}
    added = sorted(
        (each for identity, each in leaves.items() if identity not in known), key=lambda one: one.identity.sort_key
    )
    frozen = {record.identity.site: (record.capability, record.fingerprint) for record in records.values()}
    return CertificateIssued(
        run=run,
        at=at,
        launch=launch,
        cut=cut,
        entries=len(leaves),
        chain=chain(run, leaves.values()),
        frozen=dict(sorted(frozen.items())),
        added=tuple(added),
    )


def verify(
    certificates: Iterable[CertificateIssued], records_at: Mapping[int, Mapping[Identity, Record]]
) -> list[Difference]:
    """Recompute every certificate of a run at its own cut.

    Args:
        certificates: all of the run, oldest first.
        records_at: for each cut, the records that the log holds up to it.

    Returns:
        What differs; empty when all is as it was certified.
    """
    differences: list[Difference] = []
    expected: dict[Identity, str] = {}
    for certificate in certificates:
        expected |= {each.identity: each.hash for each in certificate.added}
        found = {identity: leaf(record).hash for identity, record in records_at[certificate.cut].items()}
        differences += _differences(certificate.launch, expected, found)
        leaves = [Leaf(identity, value) for identity, value in expected.items()]
        if chain(certificate.run, leaves) != certificate.chain or len(leaves) != certificate.entries:
            what = f"the certificate of launch {certificate.launch} does not fit its own entries"
            differences.append(Difference(certificate.launch, "chain", None, what))
    return differences


def _differences(launch: int, expected: Mapping[Identity, str], found: Mapping[Identity, str]) -> list[Difference]:
    differences = []
    for identity in sorted(expected.keys() | found.keys(), key=lambda one: one.sort_key):
        if identity not in found:
            text = f"{identity} was certified and is gone"
            differences.append(Difference(launch, "missing", identity, text))
        elif identity not in expected:
            text = f"{identity} stands before the cut and was not certified"
            differences.append(Difference(launch, "extra", identity, text))
        elif expected[identity] != found[identity]:
            text = f"{identity} is not what was certified"
            differences.append(Difference(launch, "changed", identity, text))
    return differences
