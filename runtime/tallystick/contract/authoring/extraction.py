"""The script in a model's answer: fenced, chatty, cut off, empty, huge, in another language, or several of them.

Nothing is executed or parsed here: what is taken out goes to the checker, which says what is wrong with it.
"""

import re
import textwrap

import msgspec

#: Characters of an answer that are looked at; a script has at most half as many bytes.
ANSWER_LIMIT = 1 << 20

_FENCE = re.compile(r"^[ \t]*(```+|~~~+)[ \t]*([\w+#.-]*)[^\n`]*$", re.MULTILINE)
_ENTRY = re.compile(r"^[ \t]*(?:async[ \t]+)?def[ \t]+orchestrate\b", re.MULTILINE)
_BEGINS = re.compile(r"^(?:async def |def |@|#|\"\"\"|'''|[A-Z_][A-Z0-9_]* *(?::[^=\n]+)?=)", re.MULTILINE)
_PYTHON = frozenset({"", "python", "python3", "py", "text", "txt"})
_ASK = "answer with the whole module in one fenced python block, from its first line to its last, and nothing else"


class Extracted(msgspec.Struct, frozen=True):
    """A script that was found; ``note`` says what was odd about the answer, "" when nothing was."""

    source: str
    note: str = ""


class NoScript(msgspec.Struct, frozen=True):
    """Why there is no script to be judged, in words for the model and for people."""

    reason: str


class _Block(msgspec.Struct, frozen=True):
    language: str
    text: str
    closed: bool


def extract(answer: str) -> Extracted | NoScript:
    """Find the script in an answer.

    Of several modules the last is taken: models tend to quote the old one first. An answer that ends within its code
    block was cut off, and half a script may well pass for a whole one, so it is not taken.
    """
    if not answer.strip():
        return NoScript(f"the answer is empty; {_ASK}")
    if len(answer) > ANSWER_LIMIT:
        return NoScript(f"the answer has {len(answer):,} characters, more than any script; {_ASK}")
    text = answer.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff")
    blocks = _blocks(text)
    scripts = [block for block in blocks if block.language in _PYTHON and _ENTRY.search(block.text)]
    if not scripts:
        return _unfenced(text, blocks)
    chosen = scripts[-1]
    if not chosen.closed:
        return NoScript(f"the answer ends within its code block, so it was cut off; {_ASK}, and keep it short")
    different = len({block.text.strip() for block in scripts})
    note = f"the answer holds {different} different modules; the last one was taken" if different > 1 else ""
    return Extracted(_tidy(chosen.text), note)


def _blocks(text: str) -> list[_Block]:
    """Return the fenced blocks of a text, those of the outermost fences; the last may never be closed."""
    blocks: list[_Block] = []
    opened: re.Match[str] | None = None
    for fence in _FENCE.finditer(text):
        if opened is None:
            opened = fence
        elif fence[1].startswith(opened[1]) and not fence[2]:
            blocks.append(_Block(opened[2].lower(), text[opened.end() + 1 : fence.start()], closed=True))
            opened = None
    if opened is not None:
        blocks.append(_Block(opened[2].lower(), text[opened.end() + 1 :], closed=False))
    return blocks


def _unfenced(text: str, blocks: list[_Block]) -> Extracted | NoScript:
    """Find a module that stands in an answer as it is, with prose before or after it."""
    if blocks:
        languages = sorted({block.language for block in blocks} - _PYTHON)
        what = f"a block of {', '.join(languages)}" if languages else "code without `async def orchestrate(ctx, args)`"
        return NoScript(f"the answer has {what}, not the module; {_ASK}")
    begins = _BEGINS.search(text)
    if begins is None or not _ENTRY.search(text):
        return NoScript(f"the answer has no module with `async def orchestrate(ctx, args)`; {_ASK}")
    lines = text[begins.start() :].split("\n")
    while lines and not _is_code(lines[-1]):
        lines.pop()
    return Extracted(_tidy("\n".join(lines)), "the answer is not fenced; what looks like the module was taken")


def _is_code(line: str) -> bool:
    return line.startswith((" ", "\t")) or bool(_BEGINS.match(line)) or line.strip() in (")", "]", "}")


def _tidy(text: str) -> str:
    return textwrap.dedent(text).strip("\n") + "\n"
