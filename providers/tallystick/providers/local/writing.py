"""Text without a model: a few sentences about the words of the prompt, or data of the shape that a schema asks for."""

import re
from typing import Any

import msgspec

from tallystick.providers.local import schema_values
from tallystick.providers.local.dice import Dice

_SENTENCES = (
    "It begins with {0}, and {1} gives it its shape.",
    "Keep {0} close to {1}; the rest may fall away.",
    "What matters here is {0}.",
    "Between {0} and {1} there is room for one clear thought.",
    "Nothing about {0} needs to be said twice.",
    "A little {0}, a little {1}, and it holds together.",
    "Start from {0} and let {1} follow.",
)
_COMMON = """
about after again all also and any are because been before being but can does each for from had has have her his how
into its just like may more most must not only other our out over please same she should some such than that the their
them then there these they this those through too under until very was were what when where which while who why will
with without would write you your
"""
_LETTERS_READ = 4_000
_WORDS_PER_TOKEN = 0.75
_DEFAULT_TOKENS = 120
_NOTES_GOOD = (
    "The subject reads at a glance and the palette is calm.",
    "Strong silhouette; the light leads to the subject.",
    "Balanced composition, nothing distracts.",
    "Meets the criteria; the foreground has depth.",
)
_NOTES_POOR = (
    "The subject is lost in the background; move closer.",
    "Too little contrast between subject and ground.",
    "The composition is crowded on one side.",
)
_PASS = 0.6


def text(payload: dict[str, Any], dice: Dice) -> dict[str, Any]:
    """Return ``{"text", "data"}`` for a text.generate payload.

    Raises:
        ValueError: the payload's schema is one that values cannot be made for.
    """
    topics = _topics(payload["prompt"])
    if (schema := payload.get("schema")) is not None:
        data = schema_values.value_for(schema, topics, dice)
        return {"text": msgspec.json.encode(data).decode(), "data": data}
    room = max(int(payload.get("max_tokens", _DEFAULT_TOKENS) * _WORDS_PER_TOKEN), 1)
    if room < len(_SENTENCES[0].split()):
        return {"text": " ".join(dice.pick(topics) for _ in range(room)), "data": None}
    words: list[str] = []
    for _ in range(dice.whole(2, 4)):
        sentence = dice.pick(_SENTENCES).format(dice.pick(topics), dice.pick(topics)).split()
        if len(words) + len(sentence) <= room:
            words += sentence
    return {"text": " ".join(words), "data": None}


def review(dice: Dice) -> dict[str, Any]:
    """Return ``{"ok", "score", "notes"}``; about one picture in eight does not pass."""
    good = dice.chance(7 / 8)
    score = round(dice.between(_PASS + 0.1, 0.98) if good else dice.between(0.3, _PASS - 0.02), 2)
    return {"ok": score >= _PASS, "score": score, "notes": dice.pick(_NOTES_GOOD if good else _NOTES_POOR)}


def usage(payload: dict[str, Any], answer: str) -> dict[str, int]:
    """Return about how many tokens a model would have counted."""
    asked = len(payload["prompt"].split()) + len(payload.get("system", "").split())
    return {
        "input_tokens": round(asked / _WORDS_PER_TOKEN),
        "output_tokens": round(len(answer.split()) / _WORDS_PER_TOKEN),
    }


def _topics(prompt: str) -> list[str]:
    common = _COMMON.split()
    words = re.findall(r"[^\W\d_]{3,}", prompt[:_LETTERS_READ])
    return list(dict.fromkeys(w for w in words if w.lower() not in common)) or ["the matter at hand"]
