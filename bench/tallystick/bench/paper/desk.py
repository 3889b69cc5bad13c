"""An engine in memory in front of a provider that counts: what the paper's episodes are run on."""

from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

from tallystick.bench.engine import Engine, engine, served_by
from tallystick.contract.errors import TallyError
from tallystick.engine.messages import GateReport, GateRequest, Limits, ReconcileRequest
from tallystick.providers.catalogue import CATALOGUE
from tallystick.providers.protocol import API_VERSION, Blob, Outcome, Profile, Refused, Sample, Succeeded
from tallystick.sandbox.memory import MemoryDriver
from tallystick.store.memory import MemoryStore
from tallystick.store.protocol import Store

GRANTS = tuple(CATALOGUE)
COST = 20_000
"""Micro-dollars of every call."""


class CountingProvider:
    """Answers every call and counts it; fails the nth call of a capability, or each whose payload contains a text.

    ``asked`` are the prompts in the order in which they came, ``answered`` how many calls had a result.
    """

    api_version = API_VERSION
    name = "counting"
    capabilities = frozenset(CATALOGUE)
    profile = Profile()

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.answered = 0
        self.fails: dict[tuple[str, int], Outcome] = {}
        self.refuses: dict[str, Outcome] = {}
        self._seen: Counter[str] = Counter()

    @property
    def calls(self) -> int:
        """How many calls came."""
        return len(self.asked)

    async def call(self, capability: str, payload: Mapping[str, Any], key: str, sample: Sample) -> Outcome:
        """See ``protocol.Provider``."""
        self._seen[capability] += 1
        self.asked.append(payload.get("prompt"))
        failure = self.fails.get((capability, self._seen[capability]))
        failure = failure or next((each for text, each in self.refuses.items() if text in str(payload)), None)
        if failure is not None:
            return failure
        self.answered += 1
        return Succeeded(result=_result(capability, payload, f"{key} {sample.seed}"), cost=COST)

    async def close(self) -> None:
        """See ``protocol.Provider``."""


def _result(capability: str, payload: Mapping[str, Any], own: str) -> Any:
    match capability:
        case "image.generate":
            images = [Blob(f"{own} {number}".encode(), "image/png") for number in range(payload.get("n", 1))]
            return {"images": images, "width": 64, "height": 48}
        case "review.visual":
            return {"ok": True, "score": 0.9, "notes": "fine"}
        case _:
            return {"text": "a line", "data": None}


class Desk:
    """An engine, and the provider behind it."""

    def __init__(self, running: Engine, provider: CountingProvider) -> None:
        self.engine = running
        self.provider = provider

    def fail(self, capability: str, nth: int, kind: Any = "invalid_request") -> None:
        """Let the nth call of a capability be refused."""
        self.provider.fails[capability, nth] = Refused(kind=kind, text="refused")

    async def run(self, source: str, args: Any = None, **limits: Any) -> Any:
        """Run a script to the end of its first launch."""
        return await self.engine.run(source, args, grants=GRANTS, limits=limits)

    async def resume(self, run: str, source: str | None = None, **options: Any) -> Any:
        """Resume a run to the end of the launch; ``limits`` as ``Limits`` has them."""
        limits = Limits(**options.pop("limits", {}))
        return await self.engine.resume(run, source, limits=limits, **options)

    async def code_of(self, run: str, source: str | None = None, **options: Any) -> str | None:
        """Resume a run, and return the code that it ends with: None where it completes."""
        try:
            report = await self.resume(run, source, **options)
        except TallyError as error:
            return error.code
        return str(report.reason) if report.reason else None

    async def gate(self, run: str, source: str) -> GateReport:
        """Ask the gate for a candidate."""
        return await self.engine.host.service.gate(run, GateRequest(source))

    async def rerun(self, source: str, args: Any = None) -> tuple[int, int]:
        """Run a script from nothing; return its calls, and those with a result."""
        calls, answered = self.provider.calls, self.provider.answered
        report = await self.run(source, args)
        assert report.status == "completed", report.error
        return self.provider.calls - calls, self.provider.answered - answered

    async def certified(self, run: str) -> bool:
        """Whether every certificate of a run recomputes without differences."""
        return (await self.engine.host.inquiry.certificate(run, check=True)).differences == ()

    async def settle(self, run: str, attempt: int, **decision: Any) -> None:
        """Decide an unresolved attempt, as an operator does."""
        request = ReconcileRequest(who="bench", why="the case says so", **decision)
        await self.engine.host.operator.reconcile(run, attempt, request)


@asynccontextmanager
async def desk(store: Store | None = None, provider: Any = None, **daemon: Any) -> AsyncIterator[Desk]:
    """Run an engine with a provider, by default with nothing in its store."""
    provider = provider or CountingProvider()
    config = served_by(provider.name, {each: {"concurrency": 256} for each in CATALOGUE}, warm=0, **daemon)
    with closing(store or MemoryStore()) as kept:
        async with engine(
            kept, config, MemoryDriver(), home=Path("/nowhere"), providers={provider.name: provider}
        ) as running:
            yield Desk(running, provider)
