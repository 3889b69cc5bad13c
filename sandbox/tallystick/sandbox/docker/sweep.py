"""Removes what a daemon that died left behind, and nothing else."""

from typing import Any

import msgspec

from tallystick.sandbox.docker.client import Engine
from tallystick.sandbox.docker.owner import OWNER, STORE, is_orphan
from tallystick.sandbox.docker.sandbox import remove


class Swept(msgspec.Struct, frozen=True):
    """Containers of guests that a sweep found: ids that it removed, and (id, store, owner) of those that it left."""

    removed: tuple[str, ...] = ()
    left: tuple[tuple[str, str, str], ...] = ()


async def sweep(engine: Engine, store: str) -> Swept:
    """Remove this store's containers whose owner is dead; leave and list all others.

    Raises:
        EngineError: the engine does not list its containers.
    """
    async with engine.asked("list the guests") as docker:
        found = await docker.containers.list(all=True, filters={"label": [STORE]})
    removed, left = [], []
    for container in found:
        described: dict[str, Any] = container._container  # noqa: SLF001 - the listing's row, which the client hands out no other way
        labels = described.get("Labels") or {}
        if is_orphan(labels, store) and await remove(engine, container.id):
            removed.append(container.id)
        else:
            left.append((container.id, labels.get(STORE, ""), labels.get(OWNER, "")))
    return Swept(tuple(removed), tuple(left))
