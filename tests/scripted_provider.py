"""A provider for tests of everything else: it counts what it was asked, outside of the product, and answers on cue.

``hits`` is the oracle of what was paid for. Nothing here reads a clock: a call waits at a gate until the test opens
it, or for a number of turns of the event loop that a seed decides.
"""

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import anyio
import anyio.lowlevel
import msgspec

from tallystick.providers.catalogue import CATALOGUE
from tallystick.providers.faults import Fault
from tallystick.providers.protocol import API_VERSION, Artifacts, Blob, Outcome, Profile, Refused, Sample, Succeeded

COST = 1_000
_TURNS = 24
_NAME = re.compile("[0-9a-f]{64}")


class Hit(msgspec.Struct, frozen=True):
    """One call that reached the provider; ``nth`` counts the hits of its capability from 1."""

    capability: str
    payload: dict[str, Any]
    key: str
    seed: int
    nth: int

    @property
    def text(self) -> str:
        """The payload as text, which gates and worlds look into."""
        return json.dumps(self.payload, sort_keys=True, ensure_ascii=False)


class Gate:
    """Holds the calls that match it until the test lets them go."""

    def __init__(self, capability: str | None, containing: str) -> None:
        self._capability = capability
        self._containing = containing
        self._open = anyio.Event()
        self._arrived = anyio.Event()
        self.waiting: list[Hit] = []

    def matches(self, hit: Hit) -> bool:
        return self._capability in (None, hit.capability) and self._containing in hit.text

    def release(self) -> None:
        """Let every held call go, and hold no more."""
        self._open.set()

    async def reached(self, calls: int = 1) -> None:
        """Wait until so many calls are held."""
        while len(self.waiting) < calls:
            await self._arrived.wait()

    async def pass_through(self, hit: Hit) -> None:
        if self._open.is_set():
            return
        self.waiting.append(hit)
        self._arrived.set()
        self._arrived = anyio.Event()
        await self._open.wait()


class Entry(msgspec.Struct, frozen=True):
    """An answer of a world: for payloads whose text contains ``when``, or for all."""

    result: Any
    when: str = ""


class ScriptedProvider:
    """See ``tallystick.providers.protocol.Provider``; what is not scripted succeeds.

    Args:
        world: answers by capability, the first match counts (the format of a corpus task's ``world.json``).
        record: a file that each hit is appended to, one JSON line, before anything else happens; it outlives a killed
            process, and ``recorded`` reads it.
        shuffle: a seed; the calls are then answered in an order that it decides.
        hang_after: so many hits are answered, later ones never.
    """

    api_version = API_VERSION
    name = "scripted"

    def __init__(
        self,
        *,
        world: Mapping[str, list[Entry]] | None = None,
        record: Path | None = None,
        shuffle: int | None = None,
        hang_after: int | None = None,
        profile: Profile | None = None,
        cost: int | None = COST,
    ) -> None:
        self.capabilities = frozenset(CATALOGUE)
        self.profile = profile or Profile()
        self.hits: list[Hit] = []
        self.answered: list[Hit] = []
        self.cancelled: list[Hit] = []
        self.most_at_once = 0
        self.closed = 0
        self._world = world or {}
        self._record = record
        self._shuffle = shuffle
        self._hang_after = hang_after
        self._cost = cost
        self._seen: Counter[str] = Counter()
        self._cues: dict[tuple[str, int], Outcome] = {}
        self._gates: list[Gate] = []

    @classmethod
    def for_task(cls, folder: Path, **options: Any) -> Self:
        """Serve a corpus task: its ``world.json``, and in the first launch the failures of its ``failure.json``."""
        provider = cls(world=read_world(folder / "world.json"), **options)
        failure = json.loads((folder / "failure.json").read_text(encoding="utf-8"))
        for one in [*failure.get("earlier", ()), failure]:
            if one["fail_at"] is not None:
                capability, nth = one["fail_at"]["capability"], one["fail_at"]["nth_execution"]
                provider.fail(capability, nth, one["error"]["kind"], one["error"]["text"])
        return provider

    def script(self, capability: str, nth: int, outcome: Outcome) -> None:
        """Answer the nth hit of a capability, counted from 1, with ``outcome``."""
        self._cues[capability, nth] = outcome

    def fail(self, capability: str, nth: int, kind: Any, text: str = "scripted") -> None:
        """Fail the nth hit of a capability with one of ``faults.KINDS``."""
        self.script(capability, nth, Fault(capability, nth, kind, text).outcome(self._cost))

    def calm(self) -> None:
        """Forget all scripted outcomes: whatever comes now succeeds."""
        self._cues.clear()

    def hold(self, capability: str | None = None, *, containing: str = "") -> Gate:
        """Hold the calls from now on whose capability and payload match."""
        gate = Gate(capability, containing)
        self._gates.append(gate)
        return gate

    def count(self, capability: str | None = None) -> int:
        """Return how many calls reached the provider."""
        return len(self.hits) if capability is None else self._seen[capability]

    async def call(self, capability: str, payload: Mapping[str, Any], key: str, sample: Sample) -> Outcome:
        self._seen[capability] += 1
        hit = Hit(capability, dict(payload), key, sample.seed, self._seen[capability])
        self._note(hit)
        self.most_at_once = max(self.most_at_once, self.in_flight)
        try:
            for gate in self._gates:
                if gate.matches(hit):
                    await gate.pass_through(hit)
            if self._hang_after is not None and len(self.hits) > self._hang_after:
                await anyio.sleep_forever()
            for _ in range(self._turns(hit)):
                await anyio.lowlevel.checkpoint()
        except anyio.get_cancelled_exc_class():
            self.cancelled.append(hit)
            raise
        self.answered.append(hit)
        return self._answer(hit)

    async def close(self) -> None:
        self.closed += 1

    @property
    def in_flight(self) -> int:
        """How many calls have neither been answered nor been cut off."""
        return len(self.hits) - len(self.answered) - len(self.cancelled)

    def _note(self, hit: Hit) -> None:
        self.hits.append(hit)
        if self._record is not None:
            file = os.open(self._record, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(file, msgspec.json.encode(hit) + b"\n")
            finally:
                os.close(file)

    def _turns(self, hit: Hit) -> int:
        if self._shuffle is None:
            return 0
        draw = hashlib.sha256(f"{self._shuffle} {hit.capability} {hit.nth}".encode()).digest()
        return draw[0] % _TURNS

    def _answer(self, hit: Hit) -> Outcome:
        if hit.capability not in self.capabilities:
            return Refused(kind="invalid_request", text=f"no capability {hit.capability}")
        cue = self._cues.get((hit.capability, hit.nth))
        if cue is not None:
            return cue
        for entry in self._world.get(hit.capability, ()):
            if entry.when in hit.text:
                return Succeeded(result=entry.result, cost=self._cost)
        return Succeeded(result=_default(hit), cost=self._cost)


def create(settings: Mapping[str, Any], artifacts: Artifacts) -> ScriptedProvider:
    """Make one for a daemon in a process of its own; settings: ``record``, ``task`` (a folder), ``hang_after``."""
    record, task = settings.get("record"), settings.get("task")
    options: dict[str, Any] = {"record": Path(record) if record else None, "hang_after": settings.get("hang_after")}
    return ScriptedProvider.for_task(Path(task), **options) if task else ScriptedProvider(**options)


def install(folder: Path) -> None:
    """Declare the entry point ``scripted`` in ``folder``, for a process with it and ``tests`` on its PYTHONPATH."""
    info = folder / "scripted_provider-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: scripted-provider\nVersion: 1\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(
        "[tallystick.providers]\nscripted = scripted_provider:create\n", encoding="utf-8"
    )


def recorded(record: Path) -> list[Hit]:
    """Read the hits that a provider, perhaps of a killed process, has noted in its file."""
    lines = record.read_bytes().splitlines() if record.exists() else []
    return [msgspec.json.decode(line, type=Hit) for line in lines]


def read_world(path: Path) -> dict[str, list[Entry]]:
    """Read a corpus task's ``world.json``.

    A file in it has a name that stands for its bytes: they are that name, and it is referred to by their hash.
    """
    world = msgspec.json.decode(path.read_bytes(), type=dict[str, list[Entry]])
    return {
        capability: [Entry(when=_NAME.sub(_hashed, entry.when), result=_with_files(entry.result)) for entry in entries]
        for capability, entries in world.items()
    }


def _hashed(name: re.Match[str]) -> str:
    return hashlib.sha256(name[0].encode()).hexdigest()


def _with_files(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_files(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "$artifact" in value:
        return Blob(value["$artifact"].removeprefix("sha256:").encode(), value["media_type"])
    return {name: _with_files(item) for name, item in value.items()}


def _default(hit: Hit) -> Any:
    payload = hit.payload
    match hit.capability:
        case "storyboard.plan":
            shots = range(1, payload["shots"] + 1)
            return {"shots": [{"id": f"s{n}", "prompt": f"Shot {n}", "duration_s": 3} for n in shots]}
        case "image.generate" | "image.edit":
            images = [_blob(hit, "image/png", number) for number in range(payload.get("n", 1))]
            return {"images": images, "width": 1024, "height": 1024}
        case "review.visual":
            return {"ok": True, "score": 0.9, "notes": "fine"}
        case "text.generate":
            return {"text": "Stand-in text.", "data": None}
        case "speech.generate" | "music.generate":
            return {"audio": _blob(hit, "audio/mpeg"), "duration_s": payload.get("duration_s", 4)}
        case _:
            return {"video": _blob(hit, "video/mp4"), "duration_s": payload.get("duration_s", 4)}


def _blob(hit: Hit, media_type: str, number: int = 0) -> Blob:
    """Bytes of their own for each capability, payload and seed."""
    return Blob(f"{hit.capability} {hit.seed} {number} {hit.text}".encode(), media_type)
