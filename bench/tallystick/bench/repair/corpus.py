"""A corpus of failures: scripts, what their calls answer, where each fails, and known rewrites.

A task is a folder: ``script.py``, ``task.json`` (args and grants), ``expect.json`` (whether the checker refuses it);
for one that runs ``world.json`` (answers by capability) and ``failure.json`` (which execution fails, how); and where
they are known ``repair-N.py`` with ``verdict-N.json``.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from tallystick.bench.repair.habits import Book, Rewrites
from tallystick.providers.catalogue import CATALOGUE
from tallystick.providers.faults import Fault
from tallystick.providers.protocol import API_VERSION, Blob, Outcome, Profile, Sample, Succeeded

_FILE = re.compile(r"[0-9a-f]{64}")

COST = 1_000
"""Micro-dollars of every call, so that spend can be told from the count of calls."""


class Task(msgspec.Struct, frozen=True):
    """One failure: a script that fails in its first launch, or that the checker refuses (``refused``)."""

    name: str
    folder: Path
    script: str
    args: Any
    grants: tuple[str, ...]
    refused: bool
    request: str


class World:
    """A provider that answers as a task's world says, fails as it is told, and counts what it did.

    ``done`` are the side effects that were carried out, in order: the oracle of what was paid.
    """

    api_version = API_VERSION
    name = "world"

    def __init__(self) -> None:
        self.capabilities = frozenset(CATALOGUE)
        self.profile = Profile()
        self.calls = 0
        self.done: list[str] = []
        self._world: dict[str, Any] = {}
        self._failures: dict[tuple[str, int], Fault] = {}
        self._seen: Counter[str] = Counter()

    def become(self, task: Task) -> None:
        """Begin with another task, from nothing."""
        self.calls, self.done = 0, []
        self._seen.clear()
        self._world = _filled(_json(task.folder / "world.json", {}))
        failure = _json(task.folder / "failure.json", {"fail_at": None})
        self._failures.clear()
        for one in [failure, *failure.get("earlier", [])]:
            at = one["fail_at"]
            if at is not None:
                key = (at["capability"], at["nth_execution"])
                self._failures[key] = Fault(*key, one["error"]["kind"], one["error"]["text"])

    def calm(self) -> None:
        """Fail no more."""
        self._failures.clear()

    async def call(self, capability: str, payload: Mapping[str, Any], key: str, sample: Sample) -> Outcome:
        """See ``protocol.Provider``."""
        self._seen[capability] += 1
        self.calls += 1
        fault = self._failures.get((capability, self._seen[capability]))
        if fault is not None:
            return fault.outcome(COST)
        text = json.dumps(payload, sort_keys=True, ensure_ascii=False)
        if CATALOGUE[capability].effect == "side_effecting":
            self.done.append(effect_of(capability, payload))
        entries = self._world.get(capability, ())
        found = next((entry["result"] for entry in entries if entry.get("when", "") in text), None)
        result = found if found is not None else _made(capability, payload, f"{text} {sample.seed} {key}")
        return Succeeded(result=result, cost=COST)

    async def close(self) -> None:
        """See ``protocol.Provider``."""


def effect_of(capability: str, payload: Any) -> str:
    """Return a call as a text, the same for the same call."""
    return f"{capability} {json.dumps(payload, sort_keys=True, ensure_ascii=False)}"


def tasks(folder: Path) -> list[Task]:
    """Read a corpus.

    Raises:
        FileNotFoundError: there is no task in the folder.
    """
    found = []
    for path in sorted(folder.glob("*/script.py")):
        home = path.parent
        said = json.loads((home / "task.json").read_text(encoding="utf-8"))
        expected = json.loads((home / "expect.json").read_text(encoding="utf-8"))
        refused = expected["check"] == "refuse"
        found.append(
            Task(
                name=home.name,
                folder=home,
                script=path.read_text(encoding="utf-8"),
                args=said["args"],
                grants=tuple(said["grants"]),
                refused=refused,
                request=said["request"],
            )
        )
    if not found:
        raise FileNotFoundError(f"{folder} holds no task: a folder with script.py, task.json and world.json")
    return found


def book_of(of: list[Task]) -> Book:
    """Return known rewrites of the tasks' scripts; where none moves a call, one that moves all of them is made."""
    return Book({task.script: _rewrites(task) for task in of})


def _json(path: Path, missing: Any) -> Any:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else missing


def _filled(value: Any) -> Any:
    """Put bytes in place of the files that a world names: a file's bytes are its name, which conditions then hash."""
    match value:
        case {"$artifact": str(name), "media_type": str(media_type)}:
            return Blob(name.removeprefix("sha256:").encode(), media_type)
        case dict():
            return {key: _filled(item) for key, item in value.items()}
        case list():
            return [_filled(item) for item in value]
        case str():
            return _FILE.sub(lambda found: hashlib.sha256(found[0].encode()).hexdigest(), value)
        case _:
            return value


def _rewrites(task: Task) -> Rewrites:
    known: dict[str, str] = {}
    for path in sorted(task.folder.glob("repair-*.py")):
        verdict = json.loads((task.folder / path.name.replace("repair", "verdict")).with_suffix(".json").read_bytes())
        kinds = {one["kind"] for one in verdict["counterexamples"]}
        what = "good" if verdict["gate"] == "accept" and verdict["runtime"] == "completes" else ""
        what = what or ("edited" if "call_changed" in kinds else "moved" if "removed" in kinds else "")
        known.setdefault(what, path.read_text(encoding="utf-8"))
    good = known.get("good", task.script)
    moved = known.get("moved") or moved_into_helper(good)
    return Rewrites(good, moved, known.get("edited") or moved)


def moved_into_helper(script: str) -> str:
    """Return a script whose entry point hands all of its work to a helper: every call stands elsewhere."""
    renamed = script.replace("async def orchestrate(ctx, args)", "async def workflow(ctx, args)")
    return f"{renamed.rstrip()}\n\n\nasync def orchestrate(ctx, args):\n    return await workflow(ctx, args)\n"


def _made(capability: str, payload: Mapping[str, Any], own: str) -> Any:
    def blob(media_type: str, number: int = 0) -> Blob:
        return Blob(f"{capability} {number} {own}".encode(), media_type)

    match capability.partition(".")[0]:
        case "storyboard":
            shots = range(1, payload["shots"] + 1)
            return {"shots": [{"id": f"s{n}", "prompt": f"Shot {n}", "duration_s": 3} for n in shots]}
        case "image":
            images = [blob("image/png", number) for number in range(payload.get("n", 1))]
            return {"images": images, "width": 1024, "height": 1024}
        case "review":
            return {"ok": True, "score": 0.9, "notes": "fine"}
        case "text":
            return {"text": "Stand-in text.", "data": None}
        case "video":
            return {"video": blob("video/mp4"), "duration_s": payload.get("duration_s", 4)}
        case _:
            return {"audio": blob("audio/mpeg"), "duration_s": payload.get("duration_s", 4)}
