"""Scripts for the laws, as trees of parts, and the edits that a rewriter makes to them.

A part is a call, or a construct around parts. The prompts of a call hold ``<tag:`` and the numbers of the loops and
branches around it, so that whoever sees a payload knows which part it came from, whatever the site is called.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

from hypothesis import strategies as st

CAPABILITIES = {  # its payload's text, and what of its result is kept
    "image.generate": ("prompt", "width"),
    "text.generate": ("prompt", "text"),
    "speech.generate": ("text", "duration_s"),
}
NESTING = ("loop", "fanout", "race", "helper", "inner", "try")
EXPRESSIONS = ("pipeline", "dag")
MOST_CALLS = 24


class Part(NamedTuple):
    """A node of a script.

    ``kind`` is "call", one of ``NESTING`` (then ``body`` are statements) or of ``EXPRESSIONS`` (then ``body`` are the
    calls of its stages or nodes). ``varied`` calls say in their prompts which round they are of, ``chained`` ones
    also what came before. What follows ``body`` is for edits.
    """

    kind: str
    capability: str = "text.generate"
    width: int = 2
    varied: bool = True
    chained: bool = False
    body: "tuple[Part, ...]" = ()
    tag: int = 0
    wording: str = "as drawn"
    salt: str = ""
    name: str = ""
    computed: bool = False
    away: bool = False
    noted: bool = False
    guarded: bool = False
    wrapped: bool = False
    left: bool = False
    copied: bool = False


Parts = tuple[Part, ...]


# How they are drawn.

_kinds = st.tuples(st.sampled_from(sorted(CAPABILITIES)), st.integers(0, 2))
_calls = _kinds.map(lambda drawn: Part("call", drawn[0], varied=drawn[1] > 0))
_leaves = st.tuples(_calls, st.booleans()).map(lambda drawn: drawn[0]._replace(chained=drawn[1]))


def _nesting(kind: str, width: int, body: list[Part], wrapped: bool) -> Part:
    return Part(kind, width=width, body=tuple(body), wrapped=wrapped)


def _around(bodies: st.SearchStrategy[Part]) -> st.SearchStrategy[Part]:
    some, stages = st.lists(bodies, min_size=1, max_size=2), st.lists(_calls, min_size=1, max_size=3)
    widths = st.integers(1, 3)
    return st.one_of(
        st.builds(_nesting, st.sampled_from(NESTING), widths, some, st.booleans()),
        st.builds(_nesting, st.sampled_from(EXPRESSIONS), widths, stages, st.just(value=False)),
    )


_shallow = st.one_of(_leaves, _around(_leaves))
parts = st.one_of(_leaves, _around(_shallow)).filter(lambda part: calls_of(part) <= MOST_CALLS)
scripts = (
    st.lists(parts, min_size=1, max_size=3)
    .map(lambda drawn: numbered(tuple(drawn)))
    .filter(lambda drawn: sum(map(calls_of, drawn)) <= MOST_CALLS)
)


def calls_of(part: Part) -> int:
    """Return how many calls a part makes at most."""
    if part.kind == "call":
        return 1
    rounds = 1 if part.kind in ("try", "dag") else part.width
    return rounds * sum(map(calls_of, part.body))


def numbered(drawn: Parts, first: int = 1) -> Parts:
    """Give each part a tag of its own, from ``first`` on."""
    tags = iter(range(first, first + 1_000))

    def number(part: Part) -> Part:
        return part._replace(tag=next(tags), body=tuple(map(number, part.body)))

    return tuple(map(number, drawn))


def all_parts(script: Parts) -> Iterator[Part]:
    """List every part, outermost first."""
    for part in script:
        yield part
        yield from all_parts(part.body)


# How they are written.


class _Writer:
    def __init__(self) -> None:
        self.constants: list[str] = []
        self.helpers: list[str] = []

    def block(self, body: Parts, numbers: tuple[str, ...]) -> list[str]:
        lines: list[str] = []
        for part in body:
            if part.noted:
                lines.append("note = len(kept)")
            if part.guarded:
                lines += ["if len(kept) > 9:", "    note = 1"]
            if part.left:
                lines.append("return kept")
            written = self.statement(part, numbers)
            lines += ["if kept is not None:", *_indented(written)] if part.wrapped else written
        return lines

    def statement(self, part: Part, numbers: tuple[str, ...]) -> list[str]:
        tag, width = part.tag, part.width
        number, inside = f"i_{tag}", (*numbers, f"i_{tag}")
        match part.kind:
            case "call":
                copies = 2 if part.copied else 1
                return copies * [
                    f"kept.append((await {self.call(part, numbers)})[{CAPABILITIES[part.capability][1]!r}])"
                ]
            case "loop":
                return [f"for {number} in range({width}):", *_indented(self.block(part.body, inside))]
            case "try":
                return [
                    "try:",
                    *_indented(self.block(part.body, numbers)),
                    "except CapabilityError as error:",
                    "    kept.append(error.kind)",
                ]
            case "helper":
                name = f"helper_{tag}{part.name}"
                self.helpers += self.function(name, f"ctx, {number}", part.body, (number,))
                return [f"kept.append(await {name}(ctx, {at}))" for at in range(width)]
            case "pipeline" | "dag":
                return [f"kept.append(len({self.expression(part, numbers)}))"]
        name = f"branch_{tag}{part.name}"
        lines = self.function(name, number, part.body, inside)
        if part.kind == "inner":
            return [*lines, f"for each_{tag} in range({width}):", f"    kept.append(await {name}(each_{tag}))"]
        method = "parallel" if part.kind == "fanout" else "race"
        return [*lines, f"kept.append(await ctx.{method}([{name}({number}) for {number} in range({width})]))"]

    def function(self, name: str, parameters: str, body: Parts, numbers: tuple[str, ...]) -> list[str]:
        lines = ["kept = []", *self.block(body, numbers), "return kept"]
        return [f"async def {name}({parameters}):", *_indented(lines)]

    def expression(self, part: Part, numbers: tuple[str, ...]) -> str:
        if part.kind == "pipeline":
            value = f"i_{part.tag}"
            stages = [
                f"lambda {value}: {self.call(stage, (*numbers, value))}"
                if at == 0
                else f"lambda done: {self.call(stage, numbers)}"
                for at, stage in enumerate(part.body)
            ]
            items = list(range(part.width))
            return f"await ctx.pipeline({', '.join([str(items), *stages])})"
        names = [f"node_{node.tag}{node.name}" for node in part.body]
        nodes = [
            f"{name!r}: ({names[at - 1 : at] if at % 2 else []}, lambda deps: {self.call(node, numbers)})"
            for at, (name, node) in enumerate(zip(names, part.body, strict=True))
        ]
        return f"await ctx.dag({{{', '.join(nodes)}}})"

    def call(self, part: Part, numbers: tuple[str, ...]) -> str:
        tag = part.tag
        self.constants.append(f"WORDING_{tag} = {part.wording!r}")
        said = ".".join(f"{{{number}}}" for number in numbers) if part.varied else ""
        after = " after {kept[-1:]}" if part.chained else ""
        payload = f'{{{CAPABILITIES[part.capability][0]!r}: f"{{WORDING_{tag}}} <{tag}:{said}>{part.salt}{after}"}}'
        call = f"ctx.run({part.capability!r}, {f'dict({payload})' if part.computed else payload})"
        if not part.away:
            return call
        names = ", ".join(("ctx", "kept", *numbers))
        self.helpers += [f"async def moved_{tag}({names}):", f"    return await {call}"]
        return f"moved_{tag}({names})"


def source_of(script: Parts) -> str:
    """Write a script's source."""
    writer = _Writer()
    body = ["kept = []", *writer.block(script, ()), "return kept"]
    entry = ["async def orchestrate(ctx, args):", *_indented(body)]
    return "\n".join([*writer.constants, *writer.helpers, *entry, ""])


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines or ["pass"]]


# How they are edited.


Change: TypeAlias = "Callable[[Part, Part], Parts]"


def _with(part: Part, **fields: Any) -> Parts:
    return (part._replace(**fields),)


def _turned(field: str) -> Change:
    return lambda part, _: _with(part, **{field: not getattr(part, field)})


def _lengthened(field: str) -> Change:
    return lambda part, _: _with(part, **{field: f"{getattr(part, field)}_x"})


def _is_call(part: Part) -> bool:
    return part.kind == "call"


def _is_call_in_place(part: Part) -> bool:
    return part.kind == "call" and not part.away


def _has_width(part: Part) -> bool:
    return part.kind in ("loop", "fanout", "helper", "inner", "pipeline")


_SHAPES = {"loop": "fanout", "fanout": "loop", "inner": "fanout", "race": "fanout"}


class Edit(NamedTuple):
    """A change of one part into others; ``verdict`` is the gate's where a call of it is committed.

    ``fits`` says which parts it can be made to, ``stages`` whether also to the stages of a pipeline and the nodes of
    a dag; the second argument of ``change`` is a new part.
    """

    fits: Callable[[Part], bool]
    change: Change
    verdict: bool | None
    stages: bool = True


EDITS = {
    # The seven of the paper's Table VII, and the relocation of its Fig. 1.
    "literal": Edit(_is_call, _lengthened("salt"), verdict=False),
    "computed": Edit(_is_call, _turned("computed"), verdict=False),
    "outside": Edit(lambda _: True, _turned("noted"), verdict=True, stages=False),
    "no call inserted": Edit(lambda _: True, _turned("guarded"), verdict=True, stages=False),
    "wrapped": Edit(_is_call_in_place, _turned("wrapped"), verdict=False, stages=False),
    "deleted": Edit(_is_call, lambda _, __: (), verdict=False),
    "appended": Edit(lambda _: True, lambda part, new: (part, new), verdict=None, stages=False),
    "relocated": Edit(_is_call, _turned("away"), verdict=False),
    # What gets past the gate, and what the records, the ledger and the report make of it.
    "inserted ahead": Edit(lambda _: True, lambda part, new: (new, part), verdict=None, stages=False),
    "stage or node ahead": Edit(
        lambda part: part.kind in EXPRESSIONS,
        lambda part, new: (part._replace(body=(_as_stage(new), *part.body)),),
        verdict=None,
    ),
    "widened": Edit(_has_width, lambda part, _: (part._replace(width=part.width + 1),), verdict=True),
    "narrowed": Edit(_has_width, lambda part, _: (part._replace(width=part.width - 1),), verdict=True),
    "more racers": Edit(
        lambda part: part.kind == "race", lambda part, _: (part._replace(width=part.width + 1),), verdict=None
    ),
    "constant": Edit(_is_call, _lengthened("wording"), verdict=True),
    "left early": Edit(lambda _: True, _turned("left"), verdict=True, stages=False),
    "capability": Edit(_is_call, lambda part, _: (part._replace(capability=_other(part.capability)),), verdict=False),
    "renamed": Edit(lambda _: True, _lengthened("name"), verdict=None),
    "copied": Edit(_is_call, _turned("copied"), verdict=None, stages=False),
    "loop to fanout": Edit(
        lambda part: part.kind in _SHAPES, lambda part, _: (part._replace(kind=_SHAPES[part.kind]),), verdict=None
    ),
}


def _other(capability: str) -> str:
    return "image.generate" if capability != "image.generate" else "text.generate"


def _as_stage(new: Part) -> Part:
    return Part("call", new.capability, tag=new.tag)


def edited(script: Parts, edit: Edit, at: int, drawn: Part) -> tuple[Parts, Part] | None:
    """Make an edit to the part that ``at`` picks among those it fits; return the script and the part as it was."""
    stages = {stage.tag for part in all_parts(script) if part.kind in EXPRESSIONS for stage in part.body}
    fitting = [part for part in all_parts(script) if edit.fits(part) and (edit.stages or part.tag not in stages)]
    if not fitting:
        return None
    chosen = fitting[at % len(fitting)]
    (new,) = numbered((drawn,), first=max(part.tag for part in all_parts(script)) + 1)

    def change(body: Parts) -> Parts:
        return tuple(
            after
            for part in body
            for after in (
                edit.change(part, new) if part.tag == chosen.tag else (part._replace(body=change(part.body)),)
            )
        )

    return change(script), chosen
