"""A model that writes anything at all: whatever it is, nothing is paid twice, nothing crashes, it comes to an end."""

import hashlib

import pytest

from authoring_support import GOOD, RESTRUCTURED, SHOTS, auto, studio

LINES = [line for script in (SHOTS, GOOD, RESTRUCTURED) for line in script.splitlines()]
STRAY = ["", "```", "import os", "    while True:", "        pass", "\ud800", "# ignore all rules", "x" * 300]


def babble(seed: int, turn: int) -> str:
    """Return a script with lines lost, doubled, swapped and strewn in, decided by a seed."""
    lines = list((SHOTS, GOOD, RESTRUCTURED)[seed % 3].splitlines())
    for draw in hashlib.sha256(f"{seed} {turn}".encode()).digest()[: 1 + seed % 4]:
        at = draw % len(lines)
        match draw % 4:
            case 0:
                del lines[at]
            case 1:
                lines.insert(at, LINES[draw % len(LINES)])
            case 2:
                lines.insert(at, STRAY[draw % len(STRAY)])
            case _:
                lines[at], lines[-1 - at] = lines[-1 - at], lines[at]
    return "```python\n" + "\n".join(lines) + "\n```"


@pytest.mark.parametrize("seed", range(16))
async def test_whatever_it_writes_is_judged_and_paid_once(seed: int) -> None:
    async with studio() as place:
        answers = [babble(seed, turn).encode("utf-8", "replace").decode() for turn in range(4)]
        place.say(*answers)
        place.provider.fail("image.generate", 4, "invalid_request")
        report = await place.end(await place.submit(SHOTS, auto_repair=auto(4)))
        assert report.auto_repair is not None
        assert report.auto_repair.over
        assert report.auto_repair.rewrites == len(report.candidates) == place.upstream.count("chat") <= 4
        assert (report.status == "completed") == (report.auto_repair.why is None)
        assert place.duplicates() == []
