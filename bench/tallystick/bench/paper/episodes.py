"""E2b, E3, E5, E5b, G1, Fig. 5: a failed run, its repair under the contract, and the full rerun, counted."""

from typing import Any, NamedTuple

from tallystick.bench.paper import cases
from tallystick.bench.paper.desk import desk
from tallystick.bench.paper.line import Line
from tallystick.contract.errors import TallyError
from tallystick.providers.protocol import Refused, Unknown

IMAGE, REVIEW = "image.generate", "review.visual"
WIDTHS = (4, 8, 16, 32, 128)
#: The widest that the paper measures.
WIDEST_MEASURED = 32
STOPPED = "gate stop, no output"
DIVERGED = "divergence, no output"


class Told(NamedTuple):
    """A case: its script, what fails, its repair, what changes in the args, which rerun is the control."""

    script: str
    args: Any
    fails: tuple[str, int]
    repair: str
    new_args: Any = None


class Counted(NamedTuple):
    """What an episode took: committed and replayed identities, attempts and results of it and of the full rerun."""

    committed: int
    replayed: int
    new: int
    attempts: int
    executed: int
    naive_attempts: int
    naive_executed: int
    ended: str
    certified: bool


E2B = {
    "e388": Told(cases.SCOUT, cases.SHOTS, (IMAGE, 2), cases.SCOUT_CAUSE_REPAIRED),
    "a425": Told(cases.SCOUT, cases.SHOTS, (IMAGE, 2), cases.SCOUT_MOVED_TO_HELPER),
    "5698a": Told(cases.LOOP, cases.LOOP_ARGS, (IMAGE, 2), cases.LOOP_REPAIRED),
    "5698b": Told(cases.LOOP, cases.LOOP_ARGS, (REVIEW, 2), cases.LOOP_REPAIRED),
}
G1 = {
    "e388": E2B["e388"],
    "5698": E2B["5698a"],
    "e5": Told(cases.SEQUENCE, cases.SEQUENCE_ARGS, (IMAGE, 4), cases.SEQUENCE, cases.SEQUENCE_ARGS_REPAIRED),
    "a425": E2B["a425"],
    "s1": Told(cases.SEQUENCE, cases.SEQUENCE_ARGS, (IMAGE, 4), cases.SEQUENCE_EDITED),
}
#: The paper's rows: committed, replayed, new, total, naive; and attempts / executions of contract and naive.
E2B_PAPER = {"e388": (3, 3, 1, 4, 7), "a425": (3, 0, 0, 3, 7), "5698a": (2, 2, 2, 4, 6), "5698b": (3, 3, 1, 4, 7)}
G1_PAPER = {
    "e388": ("5/4", "8/7", "completed"),
    "5698": ("5/4", "7/6", "completed"),
    "e5": ("5/4", "8/7", "completed"),
    "a425": ("4/3", "8/7", STOPPED),
    "s1": ("4/3", "8/7", DIVERGED),
}
_ENDS = {"TS-G001": STOPPED, "TS-D001": DIVERGED}


async def told(case: Told) -> Counted:
    """Run a case: the failed launch, the repair on the same run, and the repaired script from nothing."""
    async with desk() as at:
        at.fail(*case.fails)
        failed = await at.run(case.script, case.args)
        committed, attempts, executed = failed.calls.executed, at.provider.calls, at.provider.answered
        replayed = new = 0
        options = {} if case.new_args is None else {"args": case.new_args}
        try:
            resumed = await at.resume(failed.run, case.repair, **options)
        except TallyError as error:
            ended = _ENDS.get(error.code, error.code)
        else:
            ended, replayed, new = resumed.status, resumed.calls.replayed, resumed.calls.executed
        ours, results = at.provider.calls, at.provider.answered
        again, made = await at.rerun(case.repair, case.args if case.new_args is None else case.new_args)
        certified = await at.certified(failed.run)
    return Counted(committed, replayed, new, ours, results, attempts + again, executed + made, ended, certified)


async def e2b() -> list[Line]:
    """Return Table III: injected tail failures, replayed."""
    found = {name: await told(case) for name, case in E2B.items()}
    lines = [
        Line(
            "E2b, Table III",
            f"{name}: committed, replayed, new, total, full rerun",
            _shown(E2B_PAPER[name]),
            _shown((each.committed, each.replayed, each.new, each.executed, each.naive_executed)),
        )
        for name, each in found.items()
    ]
    totals = {
        "executions, contract against full rerun": ("15 / 27", f"{_sum(found, 4)} / {_sum(found, 6)}"),
        "identities committed, replayed": ("11, 8", f"{_sum(found, 0)}, {_sum(found, 1)}"),
        "attempts, the four that fail among them": ("19", str(_sum(found, 3))),
        "certificates without differences": ("4 of 4", f"{sum(each.certified for each in found.values())} of 4"),
    }
    return [*lines, *(Line("E2b, Table III", what, paper, ours) for what, (paper, ours) in totals.items())]


async def g1() -> list[Line]:
    """Return Table V: attempts / executions of the contract, and of a full rerun."""
    lines = []
    for name, case in G1.items():
        each = await told(case)
        contract, naive, ended = G1_PAPER[name]
        ours = f"{each.attempts}/{each.executed}"
        lines += [
            Line(
                "G1, Table V", f"{name}: contract, attempts / executions", f"{contract} {ended}", f"{ours} {each.ended}"
            ),
            Line(
                "G1, Table V",
                f"{name}: full rerun, attempts / executions",
                naive,
                f"{each.naive_attempts}/{each.naive_executed}",
            ),
        ]
    async with desk() as at:
        at.fail(IMAGE, 4)
        failed = await at.run(cases.SEQUENCE, cases.SEQUENCE_ARGS)
        resumed = await at.resume(failed.run, cases.SEQUENCE_SUPERSEDED)
        again, _ = await at.rerun(cases.SEQUENCE_SUPERSEDED, cases.SEQUENCE_ARGS)
    what = "s1 superseded by an appended call: new calls, against a full rerun's"
    lines.append(Line("G1, VI.B.d", what, "2 / 5", f"{resumed.calls.executed} / {again}"))
    return lines


async def e3() -> list[Line]:
    """Return E3: one script submitted three times."""
    async with desk() as at:
        v1 = await at.run(cases.V1)
        checks = [v1.calls.executed == 2, v1.status == "failed"]  # noqa: PLR2004 - its two calls
        v2 = await at.resume(v1.run, cases.V2)
        checks += [v2.calls.replayed == 2, v2.calls.executed == 1, at.provider.asked == ["1", "2", "3"]]  # noqa: PLR2004
        verdict = await at.gate(v1.run, cases.V3)
        kinds = [each.kind for each in verdict.counterexamples]
        checks += [not verdict.accepted, await at.code_of(v1.run, cases.V3) == "TS-G001" and at.provider.calls == 3]  # noqa: PLR2004
        checks.append(await at.certified(v1.run))
        executions = at.provider.answered
        again, _ = await at.rerun(cases.V2)
    return [
        Line("E3", "checks that hold", "8 of 8", f"{sum(checks)} of {len(checks)}"),
        Line("E3", "executions, against a rerun for each submission", "3 / 5", f"{executions} / {2 + again}"),
        Line(
            "E3",
            "counterexamples of v3",
            "call_changed, removed",
            ", ".join(kinds),
            "one counterexample a site: the call whose argument changed is still there, so it is not removed as well",
        ),
    ]


async def e5() -> list[Line]:
    """Return Table IV, E5b and the fanout of six: a provider that refuses, and one that is not heard in time."""
    lines = []
    async with desk() as at:
        at.provider.refuses["9999x9999"] = Refused(kind="invalid_request", text="InvalidParameter")
        failed = await at.run(cases.FOUR, cases.FOUR_ARGS)
        await at.resume(failed.run, cases.FOUR_REPAIRED)
        calls, images = at.provider.calls, at.provider.answered
        again, made = await at.rerun(cases.FOUR_REPAIRED, cases.FOUR_ARGS)
    lines.append(Line("E5, Table IV", "four shots, the last refused: calls / images", "5 / 4", f"{calls} / {images}"))
    lines.append(Line("E5, Table IV", "full rerun: calls / images", "8 / 7", f"{4 + again} / {3 + made}"))
    for what, wrong, outcome in (
        ("invalid n (404)", '"a wheel", 4', Refused(kind="invalid_request", text="404")),
        ("invalid model (403)", '"a forbidden wheel", 1', Refused(kind="unauthorized", text="403")),
        ("client timeout", '"a slow wheel", 1', Unknown(reason="no answer in time")),
    ):
        lines += await _second_fails(what, wrong, outcome)
    for width, study, paper in ((3, "E5b", "4 / 6"), (6, "VI.B.d", "7 / 12")):
        lines.append(Line(study, f"{width} branches, one refused: calls, full rerun", paper, await _batch(width)))
    return lines


async def _second_fails(what: str, wrong: str, outcome: Any) -> list[Line]:
    broken = cases.TWO.replace('"a wheel", 1', wrong)
    marked = "'n': 4" if "4" in wrong else wrong.split('"')[1]
    async with desk() as at:
        at.provider.refuses[marked] = outcome
        run = (await at.run(broken)).run
        held = (await at.engine.history(run)).unresolved
        refused = await at.code_of(run, cases.TWO) if held else None
        for attempt in held:
            await at.settle(run, attempt.started.attempt, abandon=True)
        if held or refused is None:
            await at.resume(run, cases.TWO)
        calls = at.provider.calls
        again, _ = await at.rerun(cases.TWO)
    lines = [Line("E5b", f"{what}: calls, full rerun", "3 / 4", f"{calls} / {2 + again}")]
    if held:
        reason = "a side effect that may have happened is held: one decision of an operator, then the same three calls"
        lines.append(Line("E5b", f"{what}: before it is executed again", "window recorded", f"held, {refused}", reason))
    return lines


async def _batch(width: int) -> str:
    args = {"prompts": cases.SIX_PROMPTS[:width]}
    async with desk() as at:
        at.provider.refuses["'prompt': ''"] = Refused(kind="invalid_request", text="empty prompt")
        run = (await at.run(cases.FANOUT_OF_SIX, args)).run
        await at.resume(run, cases.FANOUT_OF_SIX_REPAIRED)
        calls = at.provider.calls
        again, _ = await at.rerun(cases.FANOUT_OF_SIX_REPAIRED, args)
    return f"{calls} / {width + again}"


async def fig5() -> list[Line]:
    """Return Fig. 5: a fanout of N with one failing branch."""
    lines = []
    for width in WIDTHS:
        script = cases.WIDE.replace("WIDTH", str(width))
        async with desk() as at:
            at.fail(IMAGE, width // 2)
            run = (await at.run(script, concurrency=width)).run
            await at.resume(run)
            calls = at.provider.calls
            again, _ = await at.rerun(script)
        beyond = "" if width <= WIDEST_MEASURED else " (by its formula)"
        paper, ours = f"{width + 1} / {2 * width}", f"{calls} / {width + again}"
        lines.append(Line("Fig. 5", f"N = {width}: calls, full rerun{beyond}", paper, ours))
    return lines


def _shown(figures: tuple[int, ...]) -> str:
    return ", ".join(map(str, figures))


def _sum(found: dict[str, Counted], at: int) -> int:
    return sum(int(each[at]) for each in found.values())
