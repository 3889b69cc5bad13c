"""Storyboards without a model: a brief, cut by the grammar of shots into distinct prompts with plausible lengths."""

from typing import Any

from tallystick.providers.local.dice import Dice

_FRAMINGS = (
    ("Wide establishing shot", 4.0),
    ("Medium shot", 3.0),
    ("Close-up", 2.5),
    ("Detail, macro lens", 2.0),
    ("Over-the-shoulder view", 3.0),
    ("Low angle", 3.0),
    ("View from above", 3.5),
    ("Slow tracking shot", 5.0),
    ("Silhouette against the light", 3.0),
    ("Hands at work", 2.5),
    ("Reflection", 2.5),
    ("Through a doorway", 3.5),
)
_MOMENTS = (
    "in the first light",
    "in the soft light of morning",
    "at noon, hard shadows",
    "in the afternoon haze",
    "in the golden hour",
    "at dusk",
    "by lamplight",
)
_CLOSING = ("Wide shot, the camera pulling back", 5.0)
_BRIEF_SHOWN = 160


def plan(brief: str, shots: int, style: str | None, dice: Dice) -> dict[str, Any]:
    """Return ``{"shots": [{"id", "prompt", "duration_s"}]}``: opens wide, moves through one day, closes wide."""
    subject = " ".join(brief.split())[:_BRIEF_SHOWN].rstrip(" .,;:")
    middle = _rotated(_FRAMINGS[1:], dice.whole(0, len(_FRAMINGS) - 2))
    board = []
    for number in range(shots):
        framing, seconds = middle[(number - 1) % len(middle)] if number else _FRAMINGS[0]
        if number and number == shots - 1:
            framing, seconds = _CLOSING
        moment = _MOMENTS[number % len(_MOMENTS)]
        prompt = f"{framing}: {subject}, {moment}" + (f". {style}" if style else "")
        board.append({"id": f"s{number + 1}", "prompt": prompt, "duration_s": seconds + 0.5 * dice.whole(-1, 2)})
    return {"shots": board}


def _rotated(items: tuple[tuple[str, float], ...], by: int) -> tuple[tuple[str, float], ...]:
    return items[by:] + items[:by]
