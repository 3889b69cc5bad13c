"""Random scripts of nested fanouts and helpers, and under which paths their calls really happen."""

import asyncio
from collections import Counter
from contextvars import ContextVar
from dataclasses import dataclass, field
from random import Random  # noqa: TID251 - hypothesis seeds it
from typing import Any

from contract_corpus import CapabilityError, Failed, Launch
from tallystick.contract.identity import Path
from tallystick.contract.script import Script

_ARGS = {"xs": [1, 2, 3], "k": 5}
_DEEPEST = 3


@dataclass
class FanoutScript:
    """Writes one script; ``chance`` decides everything."""

    chance: Random
    helpers: list[str] = field(default_factory=list)
    stages: list[str] = field(default_factory=list)
    depth: int = 0
    names: int = 0

    def pick(self, *choices: str) -> str:
        return self.chance.choice(choices)

    def name(self) -> str:
        self.names += 1
        return f"t{self.names}"

    def items(self) -> str:
        return self.pick(
            *("'ab'", "range(3)", "args['xs'][:2]", "['p']", "range(args['k'])[:3]", "XS[:2]", "enumerate('ab')")
        )

    def call(self) -> str:
        """Return an expression that gives something to await."""
        simple = ['ctx.run("c", {"p": 1})'] * 2 + [f"{helper}(ctx, 1)" for helper in self.helpers]
        return self.fanout() if self.depth < _DEEPEST and self.chance.random() < 0.4 else self.pick(*simple)

    def fanout(self) -> str:
        self.depth += 1
        text = self.pick(
            f"ctx.parallel([{self.call()} for v in {self.items()}])",
            f"ctx.parallel([{', '.join(self.call() for _ in range(self.chance.randint(1, 3)))}])",
            f"ctx.parallel([{self.call()} for v in {self.items()}] + [{self.call()}])",
            f"ctx.pipeline(['i', 'j'], lambda v: {self.call()}, {self.stage()})",
            f"ctx.dag({{'a': ([], lambda d: {self.call()}), 'b': (['a'], {self.stage()})}})",
            f"ctx.race([{self.call()}, {self.call()}])",
        )
        self.depth -= 1
        return text

    def stage(self) -> str:
        return self.pick(f"lambda v: {self.call()}", "lambda v: v", *self.stages)

    def statement(self, depth: int) -> list[str]:
        name = self.name()
        choices = [
            *([[f"await {self.call()}"]] * 4),
            [f"[await {self.call()} for v in {self.items()}]"],
            [f"{name} = [{self.call()} for v in {self.items()}]", f"await ctx.parallel({name})"],
            [f"{name} = {self.call()}", f"await {name}"],
            [f"{name} = lambda v: {self.call()}", f"await ctx.parallel([{name}(w) for w in {self.items()}])"],
            [
                *(f"{name} = []", f"for v in {self.items()}:", f"    {name}.append({self.call()})"),
                self.pick(f"await ctx.parallel({name})", f"await ctx.parallel({name}[:2] + {name}[2:])"),
            ],
            [f"{name} = [{self.call()} for v in {self.items()}]", f"for w in {name}:", "    await w"],
        ]
        if depth < _DEEPEST and self.chance.random() < 0.4:
            return self.nested(name, depth + 1)
        return self.chance.choice(choices)

    def nested(self, name: str, depth: int) -> list[str]:
        body = self.body(depth)
        match self.chance.randint(0, 2):
            case 0:
                return [f"for v in {self.items()}:", *body]
            case 1:
                return ["if args['k']:", *body, "else:", *self.body(depth)]
        self.stages.append(name)
        use = self.pick(
            f"ctx.parallel([{name}(w) for w in {self.items()}])", f"{name}(1)", f"ctx.pipeline(['x'], {name})"
        )
        return [f"async def {name}(v):", *body, f"await {use}"]

    def body(self, depth: int) -> list[str]:
        outer = list(self.stages)
        lines = [line for _ in range(self.chance.randint(1, 3)) for line in self.statement(depth)]
        self.stages = outer
        return ["    " + line for line in lines]

    def write(self) -> str:
        lines = ["XS = (1, 2, 3)"]
        for number in range(self.chance.randint(0, 3)):
            name = f"h{number}"
            if self.chance.random() < 0.6:
                lines += [f"async def {name}(ctx, z):", *self.body(1)]
            else:
                lines += [f"def {name}(ctx, z):", f"    return {self.call()}"]
            self.helpers.append(name)
        return "\n".join([*lines, "async def orchestrate(ctx, args):", *self.body(0)]) + "\n"


class _Recording(Launch):
    """A launch in which every call succeeds."""

    def __init__(self) -> None:
        self.world: dict[str, Any] = {}
        self.failures: dict[str, Any] = {}
        self.committed = set()
        self.unresolved = set()
        self.counts = {}
        self.path = ContextVar("path", default=())


def calls_of(script: Script) -> Counter[tuple[str, Path]]:
    """Run a script; return how often each site was reached under each path."""
    run = _Recording()
    names: dict[str, Any] = {"CapabilityError": CapabilityError, "Failed": Failed, "args": _ARGS}
    exec(compile(script.annotated, "<generated>", "exec"), names)
    asyncio.run(names["orchestrate"](run, _ARGS))
    return Counter({key: last + 1 for key, last in run.counts.items()})
