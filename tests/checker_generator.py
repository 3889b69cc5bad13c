"""Random scripts of loops, lists and counters, and what they really do: the oracle for the checker's bounds.

The scripts are no workflows that anybody would write. They mix what bounds are read off (appends, slices, aliases,
helpers, jumps, conditions, counters) in every order, and most of their loops end at once or never.
"""

import ast
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import chain
from random import Random  # noqa: TID251 - hypothesis seeds it
from typing import Any

_MOST_TICKS = 400
_DEEPEST = 3


@dataclass
class Script:
    """Writes one script; ``chance`` decides everything."""

    chance: Random
    lists: tuple[str, ...] = ("a", "b", "c")
    numbers: tuple[str, ...] = ("n", "m")
    helpers: list[str] = field(default_factory=list)
    depth: int = 0

    def pick(self, *choices: str) -> str:
        return self.chance.choice(choices)

    def often(self, share: float) -> bool:
        return self.chance.random() < share

    @property
    def xs(self) -> str:
        return self.pick(*self.lists)

    @property
    def n(self) -> str:
        return self.pick(*self.numbers)

    @property
    def k(self) -> str:
        return str(self.chance.randint(0, 4))

    def items(self) -> str:
        choices = [
            *("[]", f"[1, {self.k}]", "args['xs']", f"args['xs'][:{self.k}]", self.xs, self.xs),
            *(f"{self.xs}[:{self.k}]", f"{self.xs}[{self.number()}:{self.number()}]", f"{self.xs}[-{self.k}:]"),
            *(f"{self.xs}[:{self.number()}]", f"{self.xs}[{self.n}:{self.n} + {self.k}]", f"[*{self.xs}, 7]"),
            *(f"{self.xs} + {self.xs}[:2]", f"{self.xs} + [3]", f"{self.xs}[:3] * {self.k}", f"list({self.xs})"),
            *(f"sorted({self.xs})", f"list(reversed({self.xs}))", f"list(range({self.number()}))"),
            *(f"[v for v in {self.xs}]", f"[v for v in {self.xs} if flip()]", f"list(zip({self.xs}, {self.xs}))"),
            *(f"[v for v in {self.xs}[:3] for w in {self.xs}[:3]]", f"({self.xs} if flip() else {self.xs})"),
            *(f"({self.xs} or {self.xs})", f"({self.xs} if len({self.xs}) < 3 else {self.xs}[:2])"),
            *(f"({self.xs} := {self.xs}[:3])", f"{self.xs}[{self.k}:]"),
            *(f"{helper}({self.xs}, {self.number()})" for helper in self.helpers * 3),
        ]
        return self.pick(*choices)

    def number(self) -> str:
        return self.pick(
            *(self.k, self.n, f"len({self.xs})", f"min({self.n}, {self.k})", f"max({self.n}, {self.k})"),
            *(f"{self.n} + {self.k}", f"{self.n} - {self.k}", f"min(len({self.xs}), {self.k})", f"{self.n} // 2"),
            *(f"({self.n} if {self.n} < 4 else 4)", "args['n']", f"max(0, min(args['n'], {self.k}))"),
            *(f"{self.n} * {self.k}", f"{self.n} % 3", f"abs({self.n})"),
        )

    def condition(self) -> str:
        return self.pick(
            *("flip()", f"len({self.xs}) < {self.k}", f"len({self.xs}) >= {self.k}", f"{self.n} < {self.k}"),
            *(f"{self.n} >= {self.k}", self.xs, f"not {self.xs}", f"{self.n} == {self.k}", f"{self.n} != {self.k}"),
            *(f"len({self.xs}) == {self.k}", f"{self.n} < {self.k} and flip()", f"{self.n} > 0", self.n),
            *(f"not ({self.n} > {self.k} or flip())", f"({self.n} := {self.n} + 1) < 4", f"0 < {self.n} <= 3"),
        )

    def block(self, *, in_loop: bool) -> list[str]:
        self.depth += 1
        lines = [line for _ in range(self.chance.randint(1, 3)) for line in self.statement(in_loop=in_loop)]
        self.depth -= 1
        return ["    " + line for line in lines]

    def simple(self, *, in_loop: bool) -> str:
        choices = [
            *(f"{self.xs} = {self.items()}", f"{self.xs} = {self.items()}", f"{self.xs}.append(1)"),
            *(f"{self.xs}.append(2)", f"{self.xs}.append({self.xs})", f"{self.xs}.extend({self.items()}[:4])"),
            *(f"{self.xs}.pop()", f"{self.xs}.pop(0)", f"{self.xs}.clear()", f"{self.xs} += [5]"),
            *(f"{self.xs} += {self.xs}[:3]", f"{self.n} = {self.number()}", f"{self.n} += 1", f"{self.n} -= 1"),
            *(f"{self.n} += {self.k}", f"{self.n} = len({self.xs})", 'await ctx.run("a", {})'),
            *(
                f"{self.xs}, {self.xs} = {self.xs}, {self.items()}",
                f"del {self.xs}[0]",
                f"first, *{self.xs} = {self.xs}",
            ),
            *(f"{self.xs}[{self.k}:] = {self.items()}", f"x = {self.xs}.pop() if flip() else 0"),
            *(f"assert len({self.xs}) < 3", "pass"),
        ]
        if in_loop and self.often(0.2):
            choices += ["break", "continue"] * 4
        return self.pick(*choices) if self.often(0.97) else self.pick("return 1", "raise ValueError")

    def statement(self, *, in_loop: bool = False) -> list[str]:
        compound = self.pick(*["if"] * 3, *["for"] * 4, *["while"] * 4, "try", "match")
        if self.depth > _DEEPEST or self.often(0.5):
            return [self.simple(in_loop=in_loop)]
        writer: Callable[[bool], list[str]] = getattr(self, f"write_{compound}")
        return writer(in_loop)

    def write_if(self, in_loop: bool) -> list[str]:
        lines = [f"if {self.condition()}:", *self.block(in_loop=in_loop)]
        if in_loop and self.often(0.4):
            lines[1:] = ["    " + self.pick("break", "continue", "break")]
        if self.often(0.35):
            lines += ["else:", *self.block(in_loop=in_loop)]
        return lines

    def write_for(self, in_loop: bool) -> list[str]:
        counted = f"for {self.n}, v in enumerate(args['xs'], {self.k}):", f"for {self.n} in range(args['n']):"
        plain = self.pick(
            *(self.xs, f"range({self.number()})", f"enumerate({self.xs})", f"zip({self.xs}, {self.xs})"),
            *(self.items(), f"reversed({self.xs})", f"range({self.n}, {self.number()})", f"list({self.xs})"),
            f"range({self.number()}, {self.number()}, {self.pick('2', '-1', '3')})",
        )
        lines = [self.pick(*counted) if self.often(0.15) else f"for {self.pick('v', 'v', 'w', self.n)} in {plain}:"]
        if self.often(0.15):
            lines += [f"    if {self.n} {self.pick('>=', '==', '>')} {self.k}:", "        break"]
        lines += self.block(in_loop=True)
        return [*lines, "else:", *self.block(in_loop=in_loop)] if self.often(0.1) else lines

    def write_while(self, _in_loop: bool) -> list[str]:
        n, xs, flag = self.n, self.xs, ""
        parts = [
            self.block(in_loop=True),
            self.chance.choice(
                [
                    *([f"    {n} += 1"], [f"    {n} -= 1"], [f"    {xs}.pop()"], [f"    {xs}.append(1)"], []),
                    *([f"    {xs} = {xs}[1:]"], [f"    x, {xs} = {xs}[:2], {xs}[2:]"]),
                    [f"    if {n} >= {self.k}:", "        break", f"    {n} += 1"],
                    [f"    {n} += 1", f"    if {n} == {self.k}:", "        break"],
                    [f"    {xs}.append(0)", f"    if len({xs}) == {self.k}:", "        break"],
                ]
            ),
        ]
        test = self.pick(self.condition(), self.condition(), "True")
        if self.often(0.25):
            flag, test = "done", f"not done{self.pick('', ' and flip()')}"
            choices = [f"    if {self.condition()}:", "        done = True"], [f"    done = flip() or {n} >= {self.k}"]
            parts.append(self.chance.choice(choices))
        self.chance.shuffle(parts)
        return [*([f"{flag} = False"] if flag else []), f"while {test}:", *chain.from_iterable(parts)]

    def write_try(self, in_loop: bool) -> list[str]:
        lines = ["try:", *self.block(in_loop=in_loop), "except Exception:", *self.block(in_loop=in_loop)]
        if self.often(0.3):
            lines += ["else:", *self.block(in_loop=in_loop)]
        return [*lines, "finally:", *self.block(in_loop=False)] if self.often(0.2) else lines

    def write_match(self, in_loop: bool) -> list[str]:
        lines = [f"match {self.xs}:", "    case [p, q]:", *("    " + line for line in self.block(in_loop=in_loop))]
        if self.often(0.5):
            lines += ["    case _:", *("    " + line for line in self.block(in_loop=in_loop))]
        return lines

    def helper(self, name: str, *, nested: bool) -> list[str]:
        inner = Script(self.chance, ("p", "q", "a") if nested else ("p", "q"), ("k", "j"), depth=2)
        body = ["nonlocal a"] if nested and self.often(0.3) else []
        body += ["q = []", "j = 0"]
        for _ in range(self.chance.randint(1, 4)):
            body += [line.replace('await ctx.run("a", {})', "pass") for line in inner.statement()]
        return [f"def {name}(p, k=2):", *("    " + line for line in (*body, f"return {inner.items()}"))]

    def write(self) -> str:
        lines: list[str] = []
        for number in range(self.chance.randint(0, 2)):
            lines += self.helper(f"f{number}", nested=False)
            self.helpers.append(f"f{number}")
        body = ["a = []", f"b = {self.pick('[]', 'args[str()]', '[1, 2]')}", "c = []", "n = 0", f"m = {self.k}"]
        if self.often(0.4):
            body += self.helper("g", nested=True)
            self.helpers.append("g")
        for _ in range(self.chance.randint(1, 5)):
            body += self.statement()
        return "\n".join([*lines, "async def orchestrate(ctx, args):", *("    " + line for line in body)]) + "\n"


class _Enough(BaseException):
    """A script has gone round often enough."""


class _Counting(ast.NodeTransformer):
    """Has every loop tell when it is entered and when it goes round, by its line."""

    def visit_loop(self, node: ast.For | ast.While) -> list[ast.stmt]:
        entered, ticked = (ast.parse(f"{told}({node.lineno})").body[0] for told in ("_enter", "_tick"))
        self.generic_visit(node)
        node.body.insert(0, ticked)
        return [entered, node]

    visit_For = visit_While = visit_loop  # noqa: N815 - names that ast.NodeTransformer gives


def run(source: str, chance: Random) -> tuple[dict[int, int], int]:
    """Run a generated script for a while; return the most rounds of each loop by its line, and how many calls it made."""
    current: Counter[int] = Counter()
    most: dict[int, int] = {}
    left = _MOST_TICKS
    calls = 0

    def spend() -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise _Enough

    def tick(line: int) -> None:
        current[line] += 1
        most[line] = max(most.get(line, 0), current[line])
        spend()

    def enter(line: int) -> None:
        current[line] = 0

    def flip() -> bool:
        spend()
        return chance.random() < share

    class Context:
        async def run(self, _capability: str, _payload: Any) -> None:
            nonlocal calls
            calls += 1

    share = chance.choice([0.1, 0.5, 0.9])
    args = {"xs": list(range(chance.choice([0, 1, 3, 9, 30]))), "n": chance.choice([-3, -1, 0, 2, 9]), "": []}
    names: dict[str, Any] = {"_enter": enter, "_tick": tick, "flip": flip}
    tree = ast.fix_missing_locations(_Counting().visit(ast.parse(source)))
    exec(compile(tree, "<generated>", "exec"), names)
    try:
        names["orchestrate"](Context(), args).send(None)
    except (StopIteration, _Enough):
        pass
    except Exception:  # noqa: BLE001 - such scripts pop from empty lists and unpack too little
        pass
    return most, calls
