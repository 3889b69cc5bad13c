"""The script in an answer: taken where there is one, and a reason where there is none."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tallystick.contract.authoring.extraction import ANSWER_LIMIT, Extracted, NoScript, extract

SCRIPT = 'async def orchestrate(ctx, args):\n    return await ctx.run("text.generate", {"prompt": "x"})\n'


@pytest.mark.parametrize(
    "answer",
    [
        f"```python\n{SCRIPT}```",
        f"```\n{SCRIPT}```",
        f"~~~py\n{SCRIPT}~~~",
        f"````python\n{SCRIPT}````",
        f"Sure! Here it is:\n\n```python\n{SCRIPT}```\n\nIt retries now.",
        f"```json\n{{}}\n```\nand\n```Python\n{SCRIPT}\n```",
        f"  ```python\n  {SCRIPT.replace(chr(10), chr(10) + '  ').rstrip()}\n  ```",
        f"```python\r\n{SCRIPT.replace(chr(10), chr(13) + chr(10))}```",
        f"\ufeff```python\n{SCRIPT}```",
        f"```bash\npip install x\n```\n```python\n{SCRIPT}```",
    ],
)
def test_a_fenced_module_is_taken(answer: str) -> None:
    assert extract(answer) == Extracted(SCRIPT)


def test_a_bare_module_is_taken_without_the_prose_round_it() -> None:
    found = extract(f"Here you are.\n\n{SCRIPT}\nThis should work now!")
    assert isinstance(found, Extracted)
    assert found.source == SCRIPT
    assert "not fenced" in found.note


def test_of_two_modules_the_last_is_taken_and_it_is_said() -> None:
    other = SCRIPT.replace('"x"', '"y"')
    found = extract(f"Before:\n```python\n{SCRIPT}```\nAfter:\n```python\n{other}```")
    assert isinstance(found, Extracted)
    assert found.source == other
    assert "2 different modules" in found.note
    assert extract(f"```python\n{SCRIPT}```\nagain\n```python\n{SCRIPT}```") == Extracted(SCRIPT)


def test_a_fence_within_a_string_does_not_end_the_block() -> None:
    script = 'async def orchestrate(ctx, args):\n    text = """\n    ```python\n    """\n    return text\n'
    found = extract(f"````python\n{script}````")
    assert found == Extracted(script)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("", "empty"),
        (" \n\t", "empty"),
        ("I cannot help with that.", "no module"),
        (f"```python\n{SCRIPT}", "cut off"),
        ("```js\nfunction orchestrate() {}\n```", "a block of js"),
        ("```python\nprint('hello')\n```", "not the module"),
        ("x" * (ANSWER_LIMIT + 1), "more than any script"),
    ],
)
def test_an_answer_without_a_module_has_a_reason(answer: str, why: str) -> None:
    found = extract(answer)
    assert isinstance(found, NoScript)
    assert why in found.reason


@given(st.text(alphabet=st.sampled_from(list("`~ \n\r#=:()def orchestrateasync\ud800\x00")), max_size=200) | st.text())
@example("```\n```\n```")
def test_any_answer_is_read(answer: str) -> None:
    found = extract(answer)
    assert isinstance(found, Extracted | NoScript)
    if isinstance(found, Extracted):
        assert "orchestrate" in found.source
        assert found.source.endswith("\n")
