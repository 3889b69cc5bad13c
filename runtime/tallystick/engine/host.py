"""A running daemon as its API sees it: the parts, and where they live."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import anyio.to_thread
import msgspec

from tallystick.contract.capability import MICROS_PER_USD
from tallystick.engine.approver import Approver
from tallystick.engine.budgets import Budgets
from tallystick.engine.doctor import Doctor
from tallystick.engine.files import Files
from tallystick.engine.inquiry import Inquiry
from tallystick.engine.messages import CapabilityInfo, Status
from tallystick.engine.operator import Operator
from tallystick.engine.service import Service
from tallystick.engine.tree import Engine
from tallystick.kernel import Tree
from tallystick.providers import catalogue


@dataclass(frozen=True, kw_only=True)
class Host:
    """Everything that a request may need.

    ``why_driver`` says why it is this sandbox driver. ``shutdown`` begins an orderly stop and returns at once.
    """

    engine: Engine
    service: Service
    operator: Operator
    approver: Approver
    files: Files
    budgets: Budgets
    doctor: Doctor
    inquiry: Inquiry
    tree: Tree
    why_driver: str
    home: Path
    pid: int
    started: float
    shutdown: Callable[[], None]

    async def status(self) -> Status:
        """Return the daemon as it stands."""
        live = list(self.service.launches.live.values())
        runs = await anyio.to_thread.run_sync(self.service.journal.store.run_count)
        return Status(
            version=version("tallystick"),
            pid=self.pid,
            home=str(self.home),
            store=self.service.journal.store.store_id,
            driver=self.engine.driver_name,
            why_driver=self.why_driver,
            image=self.engine.image,
            started=self.started,
            live=len(live),
            queued=sum(run.phase == "queued" for run in live),
            runs=runs,
            tree=msgspec.to_builtins(self.tree.tree()),
        )

    def capabilities(self) -> list[CapabilityInfo]:
        """Return the catalogue, with what is configured for each line."""
        lines = []
        for name, known in catalogue.CATALOGUE.items():
            shape = catalogue.shape(name)
            spec = self.engine.specs.get(name) or catalogue.spec(name)
            policy = self.engine.policies.get(name)
            lines.append(
                CapabilityInfo(
                    name=name,
                    effect=spec.effect,
                    estimate_usd=spec.estimate / MICROS_PER_USD,
                    payload=shape.payload,
                    result=shape.result,
                    description=known.description,
                    provider=policy.provider if policy is not None else None,
                )
            )
        return lines
