"""Shared by the tests of authoring and repair: an engine whose scripts are written by a model with a habit.

The provider of the calls counts what is paid, outside of the product; the model is an OpenAI-compatible server on
loopback, which counts and bills as well.
"""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import upstream_server
from engine_support import ALL, House
from scripted_provider import Hit, ScriptedProvider
from tallystick.bench.repair.habits import HABITS, Book, Rewrites, prompt_of
from tallystick.engine.assembly import running
from tallystick.engine.authoring.choices import AutoRepair, ModelChoice
from tallystick.engine.authoring.messages import AuthorRequest, RepairRequest, WritingReport
from tallystick.engine.authoring.settings import AuthoringSettings
from tallystick.engine.config import CapabilityPolicy, Config, DaemonSettings
from tallystick.engine.messages import Limits
from tallystick.kernel import SystemClock
from tallystick.providers.catalogue import CATALOGUE
from tallystick.providers.protocol import Outcome, Succeeded
from tallystick.sandbox.memory import MemoryDriver
from tallystick.store.memory import MemoryStore
from tallystick.store.protocol import Store
from upstream_server import Upstream

#: Dollars for a token in and out, as the upstream bills them.
PRICE = {"per_million": {"usage.prompt_tokens": 1, "usage.completion_tokens": 4}}

SHOTS = """SIZE = "1024x1024"


async def orchestrate(ctx, args):
    plan = await ctx.run("storyboard.plan", {"brief": "mugs", "shots": 4})

    async def still(shot):
        prompt = shot["prompt"]
        image = await ctx.run("image.generate", {"prompt": prompt, "size": SIZE})
        return image["images"][0]

    stills = await ctx.parallel([still(shot) for shot in plan["shots"][:4]])
    return {"stills": stills}
"""
GOOD = SHOTS.replace('prompt = shot["prompt"]', 'prompt = shot["prompt"] if shot["id"] != "s4" else "A table"')
RESTRUCTURED = """SIZE = "1024x1024"


async def draw(ctx, prompt):
    image = await ctx.run("image.generate", {"prompt": prompt, "size": SIZE})
    return image["images"][0]


async def orchestrate(ctx, args):
    plan = await ctx.run("storyboard.plan", {"brief": "mugs", "shots": 4})
    stills = await ctx.parallel([draw(ctx, shot["prompt"]) for shot in plan["shots"][:4]])
    return {"stills": stills}
"""
EDITED = SHOTS.replace('"size": SIZE', '"size": "512x512"')
BOOK = Book({SHOTS: Rewrites(GOOD, RESTRUCTURED, EDITED), GOOD: Rewrites(GOOD, RESTRUCTURED, EDITED)})


class Till(ScriptedProvider):
    """A provider that also notes what it was paid for."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.paid: list[Hit] = []

    def _answer(self, hit: Hit) -> Outcome:
        outcome = super()._answer(hit)
        if isinstance(outcome, Succeeded):
            self.paid.append(hit)
        return outcome


class Studio(House):
    """An engine, its provider, and the model that is asked for scripts."""

    def __init__(self, house: House, upstream: Upstream) -> None:
        super().__init__(house.host, house.provider)
        self.upstream = upstream
        self.choice = ModelChoice()

    def behave(self, habit: str, book: Book = BOOK) -> None:
        """Give the model a habit."""
        self.upstream.scribe = lambda messages: book.answer(HABITS[habit], prompt_of(messages))

    def say(self, *answers: str) -> None:
        """Have the model give these answers, the last one for ever."""
        left = list(answers)
        self.upstream.scribe = lambda _: left.pop(0) if len(left) > 1 else left[0]

    @property
    def prompts(self) -> list[str]:
        """What the model was asked, each time."""
        return [prompt_of(hit.payload["messages"]) for hit in self.upstream.hits]

    async def repair(self, run: str, **request: Any) -> WritingReport:
        """Have a run repaired, and wait for it."""
        await self.host.service.authoring.repair(run, RepairRequest(**request))
        return await self.written(run)

    async def author(self, request: str, **more: Any) -> WritingReport:
        """Have a script written, and wait for it."""
        limits = Limits(grants=ALL, **more.pop("limits", {}))
        report = await self.host.service.authoring.author(AuthorRequest(request, limits=limits, **more))
        return await self.written(report.run)

    async def written(self, run: str) -> WritingReport:
        """Wait until nobody works on a run."""
        await self.end(run)
        return await self.host.service.authoring.report(run)

    async def failed(self, source: str = SHOTS, **options: Any) -> str:
        """Run a script up to the failure of its fourth picture; return the run."""
        self.provider.fail("image.generate", 4, "invalid_request", "the prompt is not allowed")
        report = await self.run(source, **options)
        assert report.status == "failed"
        self.provider.calm()
        return report.run

    def duplicates(self) -> list[str]:
        """Return the payloads of side effects that were paid for more than once."""
        assert isinstance(self.provider, Till)
        paid = Counter(hit.text for hit in self.provider.paid if hit.capability == "image.generate")
        return [text for text, times in paid.items() if times > 1]


@asynccontextmanager
async def studio(
    *,
    store: Store | None = None,
    settings: dict[str, Any] | None = None,
    policy: dict[str, Any] | None = None,
    cost: int | None = 1_000,
    **more: Any,
) -> AsyncIterator[Studio]:
    """Run an engine with a model on loopback; ``settings`` override those of ``[authoring]``, ``policy`` those of all
    capabilities, ``more`` other parts."""
    provider = Till(cost=cost)
    policies = {name: CapabilityPolicy(provider=provider.name, **(policy or {})) for name in CATALOGUE}
    async with upstream_server.running() as upstream:
        model = {
            "plugin": "http",
            "profile": "openai",
            "base_url": f"{upstream.url}/v1",
            "key": None,
            "model": "habitual-1",
            "proxy": False,
            "operations": {"text.generate": {"price": PRICE}},
        }
        config = Config(
            daemon=DaemonSettings(warm=0),
            capabilities=policies,
            providers={"model": model},
            authoring=AuthoringSettings(provider="model", **(settings or {})),
            **more,
        )
        async with running(
            store or MemoryStore(),
            config,
            MemoryDriver(),
            home=Path("/nowhere"),
            clock=SystemClock(),
            providers={provider.name: provider},
        ) as host:
            yield Studio(House(host, provider), upstream)


def auto(rewrites: int = 3) -> AutoRepair:
    """Let a run be repaired without asking."""
    return AutoRepair(rewrites)
