"""Models with given habits, as functions from a prompt to an answer: what a repair loop has to get along with.

A habit reads the prompt as a model does: the script between its marks, whether committed calls are listed, whether
moving them is forbidden, whether findings came back. What it answers with comes from a ``Book`` of known rewrites.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

import msgspec

_ENCLOSED = re.compile(
    r"^<<(?P<mark>(?P<label>[A-Z]+)-[0-9a-f]+)\n(?P<text>.*?)\n(?P=mark)>>$", re.MULTILINE | re.DOTALL
)


class Rewrites(msgspec.Struct, frozen=True):
    """Known rewrites of one script: one that is right, one that restructures, one that edits a committed call."""

    good: str
    restructured: str
    edited: str = ""


class Asked(msgspec.Struct, frozen=True):
    """What a prompt says, as far as habits look at it."""

    script: str
    error: str
    listed: bool
    forbidden: bool
    findings: str


Habit: TypeAlias = Callable[[Asked, Rewrites], str]


class Book:
    """Known rewrites, by the script that they repair."""

    def __init__(self, pages: Mapping[str, Rewrites]) -> None:
        self._pages = {script.strip(): rewrites for script, rewrites in pages.items()}

    def find(self, script: str) -> Rewrites:
        """Return what is known of a script; of one that is not known, itself."""
        return self._pages.get(script.strip()) or Rewrites(script, script, script)

    def answer(self, habit: Habit, prompt: str) -> str:
        """Return what a model with this habit answers to a prompt."""
        asked = read(prompt)
        return habit(asked, self.find(asked.script))


def read(prompt: str) -> Asked:
    """Read a prompt of the repair loop."""
    parts = {found["label"]: found["text"] for found in _ENCLOSED.finditer(prompt)}
    return Asked(
        script=parts.get("SCRIPT", ""),
        error=parts.get("ERROR", ""),
        listed="# Committed calls" in prompt,
        forbidden="Do not move any of these calls" in prompt,
        findings=parts.get("FINDINGS", ""),
    )


def fixes_at_once(_: Asked, known: Rewrites) -> str:
    """Repair it with the first answer."""
    return _fenced(known.good)


def restructures_first(asked: Asked, known: Rewrites) -> str:
    """Move a committed call at first, and do as the findings say then."""
    return _fenced(known.good if asked.findings else known.restructured)


def reads_the_list(asked: Asked, known: Rewrites) -> str:
    """Keep what it is told is committed, and move it where nobody tells."""
    return _fenced(known.good if asked.listed or asked.findings else known.restructured)


def needs_the_prohibition(asked: Asked, known: Rewrites) -> str:
    """Move a committed call unless that is forbidden in so many words, or was refused."""
    return _fenced(known.good if asked.forbidden or asked.findings else known.restructured)


def never_learns(_: Asked, known: Rewrites) -> str:
    """Move a committed call, whatever is said of it."""
    return _fenced(known.restructured)


def edits_the_literal(_: Asked, known: Rewrites) -> str:
    """Correct what was committed, in place."""
    return _fenced(known.edited or known.restructured)


def truncates(_: Asked, known: Rewrites) -> str:
    """Run out of tokens in the middle of the script."""
    return "Here is the repaired script:\n\n```python\n" + known.good[: len(known.good) * 3 // 5]


def talks(asked: Asked, _: Rewrites) -> str:
    """Explain what ought to be done, and do nothing."""
    return f"The run ended with: {asked.error[:80]}. You should catch that error and retry it with other values."


def answers_nothing(_: Asked, __: Rewrites) -> str:
    """Answer with blanks."""
    return " \n"


def floods(_: Asked, known: Rewrites) -> str:
    """Answer with more than any script."""
    return _fenced(known.good) + "#" * (2 << 20)


def writes_javascript(_: Asked, __: Rewrites) -> str:
    """Answer in another language."""
    return "```javascript\nasync function orchestrate(ctx, args) { return await ctx.run('image.generate', {}) }\n```"


def obeys_the_error(asked: Asked, known: Rewrites) -> str:
    """Do what a text in the error tells it to: get round the rules."""
    return _fenced("import os\n" + known.good) if "ignore" in asked.error.lower() else _fenced(known.good)


HABITS: Mapping[str, Habit] = {
    habit.__name__.replace("_", "-"): habit
    for habit in (
        fixes_at_once,
        restructures_first,
        reads_the_list,
        needs_the_prohibition,
        never_learns,
        edits_the_literal,
        truncates,
        talks,
        answers_nothing,
        floods,
        writes_javascript,
        obeys_the_error,
    )
}


def prompt_of(messages: Iterable[Mapping[str, object]]) -> str:
    """Return the last thing that a user said in a chat."""
    said = [message.get("content") for message in messages if message.get("role") == "user"]
    return str(said[-1]) if said else ""


def _fenced(source: str) -> str:
    return f"```python\n{source.rstrip()}\n```\n"
