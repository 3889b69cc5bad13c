"""Reviews of scripts: one that goes wrong is its asker's trouble, and no other's."""

import ast
import gc
import sys
from collections.abc import Iterator
from types import FrameType

import pytest

from engine_witness import witnessed
from tallystick.contract.errors import ScriptRefusedError

SCRIPT = """
async def orchestrate(ctx, args):
    text = await ctx.run("text.generate", {"prompt": "x"})
    return text["text"]
"""


class Parsing:
    """Garbage whose finalizer parses something in the midst of another parse; it comes again until it has."""

    done = False

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        frame: FrameType | None = sys._getframe()
        while frame is not None and frame.f_code is not ast.parse.__code__:
            frame = frame.f_back
        if frame is None:
            if not Parsing.done:
                Parsing()
        elif not Parsing.done:
            Parsing.done = True
            ast.parse("f(g(h(1)))")


@pytest.fixture
def eager_collector() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(5)
    Parsing()
    yield
    gc.set_threshold(*before)


async def test_a_finalizer_that_parses_in_the_midst_of_a_review_does_not_fail_it(eager_collector: None) -> None:
    async with witnessed() as (engine, _):
        report = await engine.run(SCRIPT)
        assert Parsing.done
        assert report.status == "completed"


async def test_a_script_that_cannot_be_read_is_refused_and_the_next_one_is_reviewed() -> None:
    async with witnessed() as (engine, witness):
        for junk in ("\0", "def (", "```python\nx = 1\n```", "x" * (1 << 20), "(" * 5_000, "\ud800"):
            with pytest.raises(ScriptRefusedError) as refused:
                await engine.run(junk)
            assert refused.value.details[0].rule == "R00"
        assert witness.count() == 0
        assert (await engine.run(SCRIPT)).status == "completed"
