"""The corpus for tests of the contract: its scripts, and a stand-in that runs one up to its failure.

The stand-in awaits branches one after another. That decides nothing here: siblings of a failed branch settle, so
what is committed when a launch ends does not depend on their order.
"""

import asyncio
import hashlib
import json
from contextvars import ContextVar
from pathlib import Path as File
from typing import Any

from tallystick.contract.identity import Identity, Path
from tallystick.contract.script import Script, read_script

CORPUS = File(__file__).parent / "corpus"
SCRIPTS = sorted(CORPUS.glob("*/script.py"))
SOURCES = sorted(CORPUS.glob("*/*.py"))
REPAIRS = sorted(CORPUS.glob("*/repair-*.py"))
SIDE_EFFECTING = ("image.", "speech.", "music.", "video.")


class CapabilityError(Exception):
    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind, self.text = kind, text


class Failed:
    def __init__(self, kind: str, text: str) -> None:
        self.kind, self.text = kind, text

    def __bool__(self) -> bool:
        return False


class Launch:
    """One launch of a corpus script: afterwards ``committed`` and ``unresolved`` hold identities."""

    def __init__(self, task: File) -> None:
        self.world = json.loads((task / "world.json").read_text())
        failure = json.loads((task / "failure.json").read_text())
        steps = [step for step in (*failure.get("earlier", ()), failure) if step["fail_at"] is not None]
        self.failures = {step["fail_at"]["identity"]: step["error"] for step in steps}
        self.committed: set[Identity] = set()
        self.unresolved: set[Identity] = set()
        self.counts: dict[tuple[str, Path], int] = {}
        self.path: ContextVar[Path] = ContextVar("path", default=())

    def identify(self, site: str) -> Identity:
        key = (site, self.path.get())
        self.counts[key] = self.counts.get(key, -1) + 1
        return Identity(*key, self.counts[key])

    async def run(self, capability: str, payload: Any, take: str | None = None, *, _site: str) -> Any:
        identity = self.identify(_site)
        error = self.failures.get(str(identity))
        if error is not None:
            if error["kind"] == "timeout" and capability.startswith(SIDE_EFFECTING):
                self.unresolved.add(identity)
            raise CapabilityError(error["kind"], error["text"])
        self.committed.add(identity)
        text = json.dumps(payload, sort_keys=True, ensure_ascii=False)
        for entry in self.world.get(capability, ()):
            if entry.get("when", "") in text:
                return entry["result"]
        name = hashlib.sha256(f"{capability} {text} {take}".encode()).hexdigest()
        artifact = {"$artifact": f"sha256:{name}", "media_type": "application/octet-stream", "bytes": 1}
        kind = capability.partition(".")[0]
        if kind == "image":
            return {"images": [artifact], "width": 1024, "height": 1024}
        if kind in ("speech", "music"):
            return {"audio": artifact, "duration_s": payload.get("duration_s", 4)}
        if kind == "video":
            return {"video": artifact, "duration_s": payload.get("duration_s", 4)}
        return (
            {"ok": True, "score": 0.9, "notes": "fine"}
            if kind == "review"
            else {"text": "Stand-in text.", "data": None}
        )

    async def branch(self, step: int | str, work: Any, *, tolerate: bool = False) -> Any:
        token = self.path.set((*self.path.get(), step))
        try:
            return await work if hasattr(work, "__await__") else work
        except CapabilityError as error:
            return Failed(error.kind, error.text) if tolerate else error
        finally:
            self.path.reset(token)

    async def parallel(self, branches: Any, *, tolerate: bool = False) -> list[Any]:
        return self.settled([await self.branch(index, work, tolerate=tolerate) for index, work in enumerate(branches)])

    async def pipeline(self, items: Any, *stages: Any, tolerate: bool = False) -> list[Any]:
        async def through(value: Any) -> Any:
            for stage in stages:
                value = stage(value)
                value = await value if hasattr(value, "__await__") else value
            return value

        return await self.parallel([through(item) for item in items], tolerate=tolerate)

    async def dag(self, nodes: dict[str, Any]) -> dict[str, Any]:
        results: dict[str, Any] = {}
        for name, (needs, work) in nodes.items():
            if not any(isinstance(results[need], CapabilityError) for need in needs):
                results[name] = await self.branch(name, work({need: results[need] for need in needs}))
            else:
                results[name] = next(results[need] for need in needs if isinstance(results[need], CapabilityError))
        self.settled(list(results.values()))
        return results

    async def race(self, branches: Any, *, _site: str) -> Any:
        identity = self.identify(_site)
        results = [
            await self.branch(f"{_site}:{identity.occurrence}:{index}", work) for index, work in enumerate(branches)
        ]
        self.committed.add(identity)
        return next(result for result in results if not isinstance(result, CapabilityError))

    def log(self, text: str) -> None:
        assert isinstance(text, str)

    @staticmethod
    def settled(results: list[Any]) -> list[Any]:
        for result in results:
            if isinstance(result, CapabilityError):
                raise result
        return results


def launch(task: File, script: Script | None = None) -> tuple[Launch, BaseException | None]:
    """Run a task's first script as its failure.json says; return the launch and what ended it."""
    script = script or read_script((task / "script.py").read_text())
    run = Launch(task)
    names: dict[str, Any] = {"CapabilityError": CapabilityError, "Failed": Failed}
    exec(compile(script.annotated, str(task), "exec"), names)
    try:
        asyncio.run(names["orchestrate"](run, json.loads((task / "task.json").read_text())["args"]))
    except Exception as error:  # noqa: BLE001 whatever the script ends with is the outcome
        return run, error
    return run, None
