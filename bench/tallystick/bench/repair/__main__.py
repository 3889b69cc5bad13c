"""``python -m tallystick.bench.repair``: the prompts in turn over a corpus of failures, for any model.

Arm ``error`` tells the model what the run ended with, ``sites`` also lists the committed calls, and ``prohibition``
also forbids to move them. A model is a habit, which is played on loopback, or a real one: by its name, by an address,
or as the configuration has it.
"""

import argparse
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, get_args

import anyio
import msgspec

from tallystick.bench.repair.corpus import Task, book_of, tasks
from tallystick.bench.repair.habits import HABITS
from tallystick.bench.repair.measure import Episode, episode, first_share, gate_share, within, workshop
from tallystick.bench.repair.server import serving
from tallystick.contract.authoring.prompt import Arm
from tallystick.engine import paths
from tallystick.engine.authoring.choices import MAX_ATTEMPTS, ModelChoice
from tallystick.engine.config import Config, load

ARMS: tuple[Arm, ...] = get_args(Arm)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the ablation and print its tables; exit with 1 when anything was paid twice."""
    options = _options(argv)
    chosen = [one for one in tasks(options.corpus) if options.part in ("all", "refused" if one.refused else "runs")]
    episodes = anyio.run(_run, options, chosen)
    if options.json:
        print(msgspec.json.encode(episodes).decode())
    else:
        _print(episodes, options)
    return 1 if any(one.paid_again for one in episodes) else 0


async def _run(options: Any, chosen: list[Task]) -> list[Episode]:
    async with AsyncExitStack() as stack:
        config, choice = load(paths.config_path()), ModelChoice(options.model, options.base_url, options.provider)
        if options.habit is not None:
            book, habit = book_of(chosen), HABITS[options.habit]
            server = await stack.enter_async_context(serving(lambda prompt: book.answer(habit, prompt)))
            config, choice = Config(), ModelChoice(options.habit, server.url)
        host, world = await stack.enter_async_context(workshop(config))
        return [
            await episode(host, world, task, arm=arm, choice=choice, attempts=options.attempts)
            for arm in options.arms
            for task in chosen
            for _ in range(options.samples)
        ]


def _print(episodes: list[Episode], options: Any) -> None:
    print(f"{options.habit or options.model or 'the configured model'}, at most {options.attempts} rewrites")
    tries = range(1, options.attempts + 1)
    heads = ("arm", "failures", *(f"within {k}" for k in tries), "first valid", "gate accepts")
    rows = [[*heads, "mean", "tokens", "model", "paid twice"]]
    for arm in options.arms:
        own = [one for one in episodes if one.arm == arm]
        repaired = [one.rewrites for one in own if one.rewrites is not None]
        rows.append(
            [
                arm,
                str(len(own)),
                *(str(within(own, k)) for k in tries),
                str(first_share(own)),
                str(gate_share(own)),
                f"{sum(repaired) / len(repaired):.2f}" if repaired else "none",
                f"{sum(one.tokens for one in own):,}",
                f"${sum(one.model_usd for one in own):.4f}",
                str(sum(one.paid_again for one in own)),
            ]
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())


def _options(argv: Sequence[str] | None) -> Any:
    parser = argparse.ArgumentParser(prog="python -m tallystick.bench.repair", description=__doc__)
    parser.add_argument("--corpus", type=Path, default=Path("tests/corpus"), help="a folder of tasks")
    parser.add_argument("--part", choices=("runs", "refused", "all"), default="runs", help="which failures")
    parser.add_argument("--habit", choices=sorted(HABITS), help="a model that is played on loopback")
    parser.add_argument("--model", help="a real model, by its name")
    parser.add_argument("--base-url", help="a server that speaks like OpenAI's and needs no key")
    parser.add_argument("--provider", help="a configured provider")
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=ARMS, help="the prompts to compare")
    parser.add_argument("--attempts", type=int, default=3, choices=range(1, MAX_ATTEMPTS + 1), metavar="N")
    parser.add_argument("--samples", type=int, default=1, metavar="N", help="episodes of each failure and prompt")
    parser.add_argument("--json", action="store_true", help="print every episode")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
