"""``tally bench fanout``: its options, the question before it spends, the cap over all of its runs, its table."""

import argparse
import json
import sys
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import anyio
import msgspec

from tallystick.bench import fanout
from tallystick.bench.engine import Engine, engine, switching_as_the_daemon
from tallystick.bench.fanout.episode import IMAGE, Compared, EpisodeError, Order, Side, episode, sent, taken, trial
from tallystick.bench.fanout.plan import MAX_WIDTH, Plan, calls_of, plan, widths_of
from tallystick.bench.frame import Bench, Findings, Options, Plot, Table, note
from tallystick.contract.capability import MICROS_PER_USD, usd
from tallystick.contract.errors import TallyError, UsageError
from tallystick.engine import paths
from tallystick.engine.config import BudgetSettings, CapabilityPolicy, Config, load
from tallystick.engine.sandboxes import choose
from tallystick.providers import registry
from tallystick.store.lmdb_store import LmdbStore
from tallystick.store.memory import MemoryStore

LOCAL = "local"
#: A mistyped sum is more likely than a bench for more.
MOST_DOLLARS = 1_000
PAPER = "the paper counts N + 1 against 2 N calls, at N = 4, 8, 16 and 32 (its Fig. 5)"


class Outcome(msgspec.Struct, frozen=True):
    """What was run: the episodes that went as they have to, and everything that was spent, in micro-dollars."""

    compared: tuple[Compared, ...]
    spent: int
    calls: int
    left_out: tuple[int, ...]
    trouble: str = ""


def bound_to(config: Config, options: Options, cap: int) -> Config:
    """Return the configuration of the bench: the user's, with pictures bound to the provider, and the cap over all.

    Raises:
        UsageError: there is no such provider; nothing was spent.
    """
    name, settings = options.provider, dict(config.providers.get(options.provider, {}))
    plugin = str(settings.get(registry.PLUGIN, name))
    if plugin not in registry.known():
        known = ", ".join(sorted({*config.providers, *registry.known()}))
        raise UsageError(
            f"there is no provider {name!r}; nothing was spent",
            hint=f"there are {known}; another one is configured under [providers.{name}]",
        )
    if options.model is not None:
        settings = {**settings, "models": {**settings.get("models", {}), IMAGE: options.model}}
    policy = config.policies().get(IMAGE) or CapabilityPolicy(provider=name)
    prices = {} if options.price is None else {"estimate": options.price, "ceiling": options.price}
    # Asking before it spends is what the bench does itself.
    policy = msgspec.structs.replace(policy, provider=name, approval=False, **prices)
    return msgspec.structs.replace(
        config,
        daemon=msgspec.structs.replace(config.daemon, warm=1),
        budget=BudgetSettings(cap_usd=cap / MICROS_PER_USD),
        capabilities={IMAGE: policy},
        providers={**config.providers, name: settings},
    )


def check_provider(config: Config, name: str) -> None:
    """Load a provider before anybody is asked to pay for it.

    Raises:
        UsageError: it cannot be used, or makes no pictures; nothing was spent.
    """
    with closing(MemoryStore()) as store:
        provider = registry.load(name, config.providers[name], store).provider
        anyio.run(provider.close)
    if IMAGE not in provider.capabilities:
        raise UsageError(
            f"the provider {name!r} does not serve {IMAGE}; nothing was spent",
            hint=f"name a model for it with --model, or under [providers.{name}.models]",
        )


def price_of(config: Config) -> int:
    """Return what is set aside for one call, in micro-dollars.

    Raises:
        UsageError: nothing is, so that no cap could hold; nothing was spent.
    """
    spec = config.specs()[IMAGE]
    price = spec.estimate if spec.ceiling is None else spec.ceiling
    if not price:
        raise UsageError(
            f"nobody says what a call of {IMAGE} may cost, so no cap can hold; nothing was spent",
            hint=f'give --price DOLLARS, or set ceiling under [capabilities."{IMAGE}"]',
        )
    return price


async def spend(agreed: Plan, config: Config, options: Options, home: Path) -> Outcome:
    """Run the episodes on a store of their own, which stays: what was paid for is in it."""
    with closing(LmdbStore(home)) as store, switching_as_the_daemon():
        chosen = await choose(config.sandbox, store=store.store_id, home=_pinned(), news=note)
        try:
            async with engine(store, config, chosen.driver, home=home) as running:
                return await _episodes(running, agreed, price_of(config), options)
        finally:
            await chosen.driver.close()


async def _episodes(running: Engine, agreed: Plan, price: int, options: Options) -> Outcome:
    compared: list[Compared] = []
    trouble = "" if options.on_demand else await _tried(running, _order(options, 1, price), agreed.cap)
    for number, width in enumerate(() if trouble else agreed.widths):
        spent, _ = await _so_far(running)
        left, need = agreed.cap - spent, calls_of(width) * price
        if need > left:
            trouble = f"a fanout of {width} may take {usd(need)}, and {usd(left)} are left of the cap"
            break
        note(f"a fanout of {width} ({number + 1} of {len(agreed.widths)}), {usd(spent)} spent")
        try:
            compared.append(await episode(running, _order(options, width, price), left))
        except (EpisodeError, TallyError) as error:
            trouble = str(error)
            break
    spent, calls = await _so_far(running)
    undone = (*agreed.widths[len(compared) :], *agreed.left_out)
    return Outcome(tuple(compared), spent, calls, tuple(dict.fromkeys(undone)), trouble)


async def _tried(running: Engine, order: Order, left: int) -> str:
    note("one call, to see what it costs")
    try:
        await trial(running, order, left)
    except (EpisodeError, TallyError) as error:
        return str(error)
    return ""


def _order(options: Options, width: int, price: int) -> Order:
    return Order(
        width=width,
        subject=options.subject,
        bad=None if options.on_demand else options.bad_prompt,
        more=options.payload,
        concurrency=options.concurrency or width,
        price=price,
    )


async def _so_far(running: Engine) -> tuple[int, int]:
    """Return what all runs have taken of the cap, in micro-dollars, and their calls."""
    rows = running.host.service.journal.store.rows(limit=1_000)
    histories = [await running.history(row.run) for row in rows]
    return sum(map(taken, histories)), sum(len(sent(each)) for each in histories)


def _pinned() -> Path:
    """Return the daemon's state directory: its image serves the bench as well."""
    paths.home().mkdir(parents=True, exist_ok=True, mode=0o700)
    return paths.home()


def agree(agreed: Plan, question: str, *, unasked: bool, answer: Callable[[], str]) -> None:
    """Ask whether to spend; return where the answer is yes.

    Raises:
        UsageError: nobody said yes; nothing was spent.
    """
    note(question)
    if unasked:
        return
    note("go on? [y/N]")
    if answer().strip().lower() not in ("y", "yes"):
        raise UsageError(
            f"nothing was spent: {agreed.calls} calls were not agreed to",
            hint="answer y, or give --yes where nobody can answer",
        )


def _measure(options: Options) -> Findings:
    cap = round(options.max_spend * MICROS_PER_USD)
    config = bound_to(load(options.config or paths.config_path()), options, cap)
    check_provider(config, options.provider)
    settings = config.providers[options.provider]
    options.on_demand = settings.get(registry.PLUGIN, options.provider) == LOCAL
    agreed = plan(options.n, options.repeats, price_of(config), cap, trial=0 if options.on_demand else 1)
    agree(agreed, _question(agreed, config, options), unasked=options.yes or options.on_demand, answer=_answer)
    home = options.out / "fanout-runs" / time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    home.parent.mkdir(parents=True, exist_ok=True)
    try:
        outcome = anyio.run(spend, agreed, config, options, home)
    except KeyboardInterrupt:
        note(f"calls in flight have settled; {_kept(home)}")
        raise
    return _findings(outcome, options, settings, home)


def _question(agreed: Plan, config: Config, options: Options) -> str:
    spec = config.specs()[IMAGE]
    known = "at most" if spec.ceiling is not None else "by its estimate"
    widths = ", ".join(map(str, dict.fromkeys(agreed.widths)))
    rest = f"; {', '.join(map(str, agreed.left_out))} would not fit and is left out" if agreed.left_out else ""
    simulated = ", which local simulates" if options.on_demand else ""
    return (
        f"fanouts of {widths}{f', {options.repeats} times each' if options.repeats > 1 else ''} at "
        f"{options.provider}{f' ({options.model})' if options.model else ''}: {agreed.calls} calls, "
        f"{usd(price_of(config))} {known} each: {usd(agreed.estimate)} in all{simulated}, "
        f"never more than {usd(agreed.cap)}{rest}"
    )


def _answer() -> str:
    return sys.stdin.readline()


def _findings(outcome: Outcome, options: Options, settings: Any, home: Path) -> Findings:
    rows = tuple(_row(each) for each in outcome.compared)
    counts = ("calls", "images", "dollars", "seconds")
    heads = ("N", *(head for count in counts for head in (count, "rerun")), "replayed")
    total = f"{options.provider}: {outcome.calls} calls and {usd(outcome.spent)} in all, of ${options.max_spend:g}"
    notes = [
        f"{total}; the failed launch is part of both sides, and was made once",
        PAPER,
        _kept(home),
    ]
    if outcome.left_out:
        notes.append(f"left out: {', '.join(map(str, outcome.left_out))}")
    wrong = tuple(
        f"N = {each.width}: {each.contract.calls} calls, where {each.width + 1} are to be made"
        for each in outcome.compared
        if each.contract.calls != each.width + 1
    )
    figures = {
        "provider": options.provider,
        "model": settings.get("models", {}).get(IMAGE, settings.get("model")),
        "simulated": options.on_demand,
        "outcome": outcome,
    }
    return Findings(
        (Table(heads, rows, "contract against full rerun"),),
        figures,
        (*wrong, *((outcome.trouble,) if outcome.trouble else ())),
        tuple(notes),
        _plot(outcome, options.provider) if outcome.compared else None,
    )


def _kept(home: Path) -> str:
    return f"what was paid for is kept: TALLYSTICK_HOME={home.absolute()} tally runs"


def _row(each: Compared) -> tuple[str, ...]:
    pairs = zip(_cells(each.contract), _cells(each.rerun), strict=True)
    return (str(each.width), *(cell for pair in pairs for cell in pair), str(each.replayed))


def _cells(side: Side) -> tuple[str, ...]:
    dollars = f"at least {side.usd:.4f}" if side.unpriced else f"{side.usd:.4f}"
    return str(side.calls), str(side.images), dollars, f"{side.seconds:.2f}"


def _plot(outcome: Outcome, provider: str) -> Plot:
    lines: dict[str, dict[float, float]] = {"full rerun": {}, "contract": {}}
    for each in outcome.compared:
        lines["full rerun"][each.width] = each.rerun.calls
        lines["contract"][each.width] = each.contract.calls
    return Plot(
        title=f"One failed branch of N at {provider}",
        x="fanout width N",
        y="provider calls",
        lines={name: tuple(sorted(points.items())) for name, points in lines.items()},
        logarithmic=True,
    )


def _add(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--provider", default=LOCAL, metavar="NAME", help="the provider that is measured, as the configuration has it")
    add("--model", metavar="M", help="the model that it is asked for, in place of the configuration's")
    add("--n", type=_widths, default=(4, 8, 16, 32), metavar="N,...", help="widths, rising (4,8,16,32)")
    add("--max-spend", type=_dollars, default=2.0, metavar="DOLLARS", help="never spend more than this (2.00)")
    add(
        "--price",
        type=_dollars,
        metavar="DOLLARS",
        help="the most that one call may cost, where that is not configured",
    )
    add("--repeats", type=int, default=1, choices=range(1, 11), metavar="K", help="run each width so often (1)")
    add("--concurrency", type=int, metavar="K", help="calls at once; all of a fanout by default")
    add("--bad-prompt", default="", metavar="TEXT", help="a prompt that the provider refuses; the empty one by default")
    add("--subject", default="a lighthouse at dusk", metavar="TEXT", help="what is to be seen")
    add("--payload", type=_payload, default={}, metavar="JSON", help='more fields of each payload, {"size": "512x512"}')
    add("--config", type=Path, metavar="FILE", help="a configuration; the daemon's by default")
    add("--yes", action="store_true", help="spend without asking")


def _dollars(text: str) -> float:
    with suppress(ValueError):
        if 0 < float(text) <= MOST_DOLLARS:
            return float(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no sum of dollars above 0 and up to {MOST_DOLLARS:,}")


def _payload(text: str) -> dict[str, Any]:
    with suppress(ValueError):
        value = json.loads(text)
        if isinstance(value, dict):
            return value
    raise argparse.ArgumentTypeError(f"{text!r} is no JSON object")


def _widths(text: str) -> tuple[int, ...]:
    with suppress(ValueError):
        return widths_of(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no list of rising widths from 2 to {MAX_WIDTH:,}, like 4,8,16")


main = Bench("fanout", fanout.__doc__, _measure, _add).main

if __name__ == "__main__":
    sys.exit(main())
