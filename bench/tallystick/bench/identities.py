"""What does a repair cost under another identity of its calls, and what does it get wrong?

Four repairs are told under four identity functions over the same records, rule and provider: the structural identity
with its gate, the payload (capability and digest), the ordinal of arrival, and the source line. They are rebuilt after
the episodes of the paper (*Call-Level Revision Contracts for LLM-Authored Workflows*, Tables III and VI): two fanouts
of four pictures whose second call fails, one repaired in its cause, one moved into a helper; and a loop of picture
and review that fails at its third and at its fourth call. In the repair's launch the second and the third branch of a
fanout arrive in the other order, as parallel branches do.

Where the figures differ from the paper's, whose scripts are not published:

- Payload, three wrong reuses where the paper counts two: the relocated fanout has committed three calls here, and each
  is served at a callsite that never made it.
- Ordinal, two duplicates and two stops where the paper counts one of each: the order of arrival changes in both
  fanouts here. Each time the free ordinal of the failed call goes to a call that is committed under the next one, which
  is so paid again; then that next ordinal is reached with another payload. The wrong reuse, of which the paper counts
  none, is the relocated call that is served before that: its record is of the callsite that it left.
- Line, eleven executions, three duplicates and four stops where the paper counts eight, none and three: a record
  counts here as soon as it is written, so that the second branch or round, another payload on the same line, stops
  the first launch already. Three of the repairs move the line of a committed call, and pay for it again; that is also
  why one call is replayed and not six. The paper's figures leave open what its runs had committed by then.

Executions are calls that came back with a result; the failing calls of the first launches are none. The probe has
thirty scripts that make one call twice, with the same payload: half of them need two pictures, half would do with one.
"""

import sys
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, NamedTuple, TypeAlias

from tallystick.bench.frame import Bench, Findings, Options, Table
from tallystick.contract.gate import FrozenSite, freeze, gate
from tallystick.contract.payload import digest
from tallystick.contract.script import Script, read_script

TASKS = 15


class Call(NamedTuple):
    """A call as it reaches the host: what each identity function picks from."""

    site: str
    path: tuple[int, ...]
    occurrence: int
    capability: str
    digest: str
    arrival: int
    line: int


Identify: TypeAlias = Callable[[Call], Any]

IDENTITIES: dict[str, Identify] = {
    "structural": lambda call: (call.site, call.path, call.occurrence),
    "payload": lambda call: (call.capability, call.digest),
    "ordinal": lambda call: call.arrival,
    "line": lambda call: call.line,
}


class Figures(NamedTuple):
    """What a study counted: executions, replays, duplicates, wrong reuses, and runs that stopped."""

    executed: int = 0
    replayed: int = 0
    duplicates: int = 0
    wrong: int = 0
    stops: int = 0


PAPER = {
    "structural": Figures(15, 8, 0, 0, 1),
    "payload": Figures(16, 11, 0, 2, 0),
    "ordinal": Figures(16, 7, 1, 0, 1),
    "line": Figures(8, 6, 0, 0, 3),
}


class Episode(NamedTuple):
    """A script whose nth call fails, counted from 1, and its repair."""

    name: str
    script: str
    repair: str
    fails: int


_FANOUT = """
async def orchestrate(ctx, args):
    async def gen(s):
        prompt = s.strip()
        return await ctx.run("image.generate", {"prompt": prompt})
    return await ctx.parallel([gen(s) for s in ("harbour", "pier", "crane", "ferry")])
"""
_FANOUT_REPAIRED = _FANOUT.replace("s.strip()", 's.replace("pier", "plain pier")')
_FANOUT_RELOCATED = """
async def gen_one(ctx, prompt):
    return await ctx.run("image.generate", {"prompt": prompt})
async def orchestrate(ctx, args):
    return await ctx.parallel([gen_one(ctx, s) for s in ("harbour", "pier", "crane", "ferry")])
"""
_LOOP = """
async def orchestrate(ctx, args):
    kept = []
    for shot in ("dawn", "dusk"):
        image = await ctx.run("image.generate", {"prompt": shot})
        review = await ctx.run("review.visual", {"image": image, "criteria": shot})
        kept.append(review)
    return kept
"""
_LOOP_REPAIRED = _LOOP.replace("        image =", "        if not shot:\n            continue\n        image =")
EPISODES = (
    Episode("e388", _FANOUT, _FANOUT_REPAIRED, fails=2),
    Episode("a425", _FANOUT, _FANOUT_RELOCATED, fails=2),
    Episode("5698a", _LOOP, _LOOP_REPAIRED, fails=3),
    Episode("5698b", _LOOP, _LOOP_REPAIRED, fails=4),
)
SWAPPED = (0, 2, 1, 3)
_TWICE = """
async def orchestrate(ctx, args):
    one = await ctx.run("image.generate", {{"prompt": "motif {number}"}})
    two = await ctx.run("image.generate", {{"prompt": "motif {number}"}})
    return [one, two]
"""


class _Failed(Exception):  # noqa: N818 - an event of an episode, no error of this program
    """The call that the episode lets fail."""


class _Stopped(Exception):  # noqa: N818 - as _Failed
    """A committed identity was reached with another call."""


class Run:
    """The records of one run under one identity function, and what was counted."""

    def __init__(self, identify: Identify) -> None:
        self.counts: Counter[str] = Counter()
        self.records: dict[Any, tuple[Call, str]] = {}
        self._identify = identify
        self._until_failure = 0

    def serve(self, call: Call) -> str:
        """Apply the runtime rule to a call; return the name of its artifact."""
        key = self._identify(call)
        if key in self.records:
            committed, artifact = self.records[key]
            if _work(committed) != _work(call):
                raise _Stopped
            self.counts["replayed"] += 1
            self.counts["wrong"] += committed.site != call.site
            return artifact
        self._until_failure -= 1
        if self._until_failure == 0:
            raise _Failed
        self.counts["executed"] += 1
        self.counts["duplicates"] += any(_work(known) == _work(call) for known, _ in self.records.values())
        artifact = f"artifact {self.counts['executed']}"
        self.records[key] = (call, artifact)
        return artifact

    def launch(self, script: Script, order: tuple[int, ...] = (), fails: int = 0) -> Any:
        """Run a script; return its result, None where it came to none.

        Args:
            script: what to run.
            order: the order in which the branches of a fanout arrive; empty for that of their indices.
            fails: which dispatch fails, counted from 1; 0 for none.
        """
        self._until_failure = fails
        names: dict[str, Any] = {}
        exec(compile(script.annotated, "script", "exec"), names)  # noqa: S102 - a script of this file
        try:
            return _driven(names["orchestrate"](_Context(self, script, order), None))
        except _Failed:
            return None
        except _Stopped:
            self.counts["stops"] = 1
            return None

    def admits(self, script: Script, candidate: Script) -> bool:
        """Ask the gate for a candidate, and count a stop where it says no."""
        touched = {call.site for call, _ in self.records.values()}
        verdict = gate(freeze(FrozenSite.of(script, fact) for fact in script.sites if fact.site in touched), candidate)
        self.counts["stops"] |= not verdict.accepted
        return verdict.accepted


class _Context:
    """What the scripts know as ``ctx``: identities, and branches that run in a given order."""

    def __init__(self, run: Run, script: Script, order: tuple[int, ...]) -> None:
        self._run = run
        self._lines = {fact.site: fact.span.line for fact in script.sites}
        self._order = order
        self._path: tuple[int, ...] = ()
        self._occurrences: dict[tuple[str, tuple[int, ...]], int] = {}
        self._arrivals = 0

    async def run(self, capability: str, payload: Any, *, _site: str) -> str:
        occurrence = self._occurrences.get((_site, self._path), 0)
        self._occurrences[_site, self._path] = occurrence + 1
        call = Call(_site, self._path, occurrence, capability, digest(payload), self._arrivals, self._lines[_site])
        self._arrivals += 1
        return self._run.serve(call)

    async def parallel(self, branches: Iterable[Coroutine[Any, Any, Any]]) -> list[Any]:
        """Run the branches; the siblings of a failed one settle, those of a stop are not started."""
        known = list(branches)
        results: dict[int, Any] = {}
        failure: _Failed | None = None
        try:
            for index in self._order or range(len(known)):
                self._path = (index,)
                try:
                    results[index] = await known[index]
                except _Failed as error:
                    failure = error
        finally:
            self._path = ()
            for branch in known:
                branch.close()
        if failure is not None:
            raise failure
        return [results[index] for index in range(len(known))]


def _work(call: Call) -> tuple[str, str]:
    return call.capability, call.digest


def _driven(work: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine that never waits."""
    try:
        work.send(None)
    except StopIteration as ended:
        return ended.value
    raise AssertionError("nothing in here waits")


def episode(told: Episode, identity: str) -> Figures:
    """Run a script until its call fails, then its repair on the same records."""
    run = Run(IDENTITIES[identity])
    script, repair = read_script(told.script), read_script(told.repair)
    run.launch(script, fails=told.fails)
    if identity != "structural" or run.admits(script, repair):
        run.launch(repair, SWAPPED)
    return Figures(**run.counts)


def study(identity: str) -> Figures:
    """Sum up the four episodes under an identity function."""
    return Figures(*map(sum, zip(*(episode(told, identity) for told in EPISODES), strict=True)))


class Probe(NamedTuple):
    """Tasks that got the pictures they needed, by what they needed, and the executions for those that needed one."""

    two_roles: int
    one_role: int
    executed_for_one_role: int


def probe(identity: str) -> Probe:
    """Run the tasks that make one call twice."""
    right, executed = [], 0
    for number in range(TASKS):
        run = Run(IDENTITIES[identity])
        pictures = run.launch(read_script(_TWICE.format(number=number)))
        right.append(len(set(pictures)))
        executed += run.counts["executed"]
    return Probe(sum(pictures == 2 for pictures in right), sum(pictures >= 1 for pictures in right), executed)  # noqa: PLR2004 - two roles


def _findings(_: Options) -> Findings:
    """Both tables; missed is what the structural identity has of the faults of the others."""
    studies = {identity: study(identity) for identity in IDENTITIES}
    pairs = {identity: zip(found, PAPER[identity], strict=True) for identity, found in studies.items()}
    counted = Table(
        ("identity (the paper's)", *Figures._fields),
        tuple((identity, *(f"{ours} ({theirs})" for ours, theirs in both)) for identity, both in pairs.items()),
    )
    probes = {identity: probe(identity) for identity in ("structural", "payload")}
    twice = Table(
        ("payload twice", "two roles", "one role", "executions for one role"),
        tuple(
            (identity, f"{found.two_roles} of {TASKS}", f"{found.one_role} of {TASKS}", str(found[2]))
            for identity, found in probes.items()
        ),
    )
    ours = studies["structural"]
    faults = [
        said
        for said, fault in (
            ("the structural identity paid a call twice", ours.duplicates),
            ("the structural identity served a record of another callsite", ours.wrong),
            ("the structural identity gave two roles one picture", probes["structural"].two_roles < TASKS),
        )
        if fault
    ]
    figures = {
        "studies": {identity: found._asdict() for identity, found in studies.items()},
        "paper": {identity: told._asdict() for identity, told in PAPER.items()},
        "probes": {identity: found._asdict() for identity, found in probes.items()},
    }
    return Findings((counted, twice), figures, tuple(faults))


main = Bench("identities", __doc__, _findings).main

if __name__ == "__main__":
    sys.exit(main())
