"""What a script asks for, worked out without the product: a stand-in for ``ctx`` that answers from a journal.

Paths and occurrences are counted here on their own; only the names of the sites come from the annotated source,
and those are pinned elsewhere. Branches run one after another, which changes no identity.
"""

from collections.abc import Coroutine, Iterable, Mapping
from typing import Any

from tallystick.contract.history import History
from tallystick.contract.identity import Identity, Path
from tallystick.contract.script import read_script

ANSWERS = {
    "image.generate": {"width": 1024},
    "text.generate": {"text": "Stand-in text."},
    "speech.generate": {"duration_s": 4},
}


class CapabilityError(Exception):
    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


class Retelling:
    """A completed launch of ``source``, told again: afterwards ``asked`` holds (capability, payload) by identity.

    ``races`` holds the races that were run. A call without a record and without a known failure, which no completed
    launch can have asked for, raises ``AssertionError``.
    """

    def __init__(self, source: str, history: History) -> None:
        self.asked: dict[Identity, tuple[str, Any]] = {}
        self.races: set[Identity] = set()
        self._history = history
        self._counts: dict[tuple[str, Path], int] = {}
        self._path: Path = ()
        names: dict[str, Any] = {"CapabilityError": CapabilityError}
        exec(compile(read_script(source).annotated, "script", "exec"), names)
        self.result = _driven(names["orchestrate"](self, None))

    async def run(self, capability: str, payload: Any, *, _site: str) -> Any:
        identity = self._identify(_site)
        self.asked[identity] = (capability, payload)
        if identity in self._history.records:
            return ANSWERS[capability]
        attempt = self._history.latest_attempt.get(identity)
        assert attempt is not None, f"{identity} was neither served nor executed, and the launch completed"
        assert attempt.ended is not None, f"{identity} has no end, and the launch completed"
        raise CapabilityError(attempt.ended.kind or "")

    async def parallel(self, branches: Iterable[Coroutine[Any, Any, Any]]) -> list[Any]:
        return _settled([await self._branch(index, work) for index, work in enumerate(branches)])

    async def pipeline(self, items: Iterable[Any], *stages: Any) -> list[Any]:
        async def through(value: Any) -> Any:
            for stage in stages:
                value = await stage(value)
            return value

        return await self.parallel([through(item) for item in items])

    async def dag(self, nodes: Mapping[str, Any]) -> dict[str, Any]:
        results: dict[str, Any] = {}
        for name, (needs, work) in nodes.items():
            failed = [results[need] for need in needs if isinstance(results[need], CapabilityError)]
            results[name] = failed[0] if failed else await self._branch(name, work(results))
        _settled(results.values())
        return results

    async def race(self, branches: Iterable[Coroutine[Any, Any, Any]], *, _site: str) -> Any:
        race = self._identify(_site)
        self.races.add(race)
        decided = self._history.races.get(race)
        results = []
        for index, work in enumerate(branches):
            if decided is not None and index != decided.winner:
                work.close()
            else:
                results.append(await self._branch(f"{_site}:{race.occurrence}:{index}", work))
        return _settled(results)[0]

    async def _branch(self, step: int | str, work: Coroutine[Any, Any, Any]) -> Any:
        before, self._path = self._path, (*self._path, step)
        try:
            return await work
        except CapabilityError as error:
            return error
        finally:
            self._path = before

    def _identify(self, site: str) -> Identity:
        key = (site, self._path)
        self._counts[key] = self._counts.get(key, -1) + 1
        return Identity(*key, self._counts[key])


def _settled(results: Iterable[Any]) -> list[Any]:
    known = list(results)
    for result in known:
        if isinstance(result, CapabilityError):
            raise result
    return known


def _driven(work: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine that never waits."""
    try:
        work.send(None)
    except StopIteration as ended:
        return ended.value
    raise AssertionError("the stand-in never waits")
