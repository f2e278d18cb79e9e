"""The letters story: twenty letters, read by a small model in a script. What that model reads is not counted."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from typing import Any

from moonbox import tool
from moonbox.adapters.base import Tokens
from moonbox.adapters.llm import model_tool
from tokens.stories.story import HERE, Story

LETTERS = 20
_RECORDED = "ddiqidqqdiididqdiqdd"
"""What the small model answered for each letter, by the first letter of the topic."""
_TOPICS = {"d": "delivery", "i": "invoice", "q": "quality"}
_SAYS = {
    "d": "The parcel that you promised for last week has still not come, and nobody could tell me where it is.",
    "i": "I was charged twice for the same goods, and the second sum is not even the one that we agreed on.",
    "q": "After three days the handle came off, and the paint on the lid has begun to peel.",
}
_TALK = (
    "I have been a customer of yours for many years and have always been content until now.",
    "My neighbour, who recommended you to me, was as surprised as I was when I told her about it.",
    "I tried to reach you by telephone, but after half an hour of music I gave up.",
    "Perhaps you could let me know in a few words what you are going to do about this.",
    "I am away from the fifth to the ninth, but my son can be reached at the same number.",
)


@tool(hints={"read_only": True})
def list_letters() -> list[str]:
    """The ids of this week's letters."""
    return [f"L-{number}" for number in range(LETTERS)]


@tool(hints={"read_only": True})
def read_letter(id: str) -> str:
    """The text of a letter."""
    number = int(id.removeprefix("L-"))
    chance = random.Random(number)
    sentences = [chance.choice(_TALK) for _ in range(12)]
    sentences.insert(chance.randrange(12), _SAYS[_RECORDED[number]])
    return f"Letter {number}. {' '.join(sentences)}"


def _recorded(prompt: str, _: str) -> tuple[str, Tokens]:
    number = int(re.search(r"Letter (\d+)\.", prompt)[1])  # type: ignore[index]
    return json.dumps({"topic": _TOPICS[_RECORDED[number]]}), Tokens(len(prompt) // 4, 8)


def _answer(results: list[Any]) -> dict[str, int]:
    found = (next(key for key, text in _SAYS.items() if text in letter) for letter in results[1:])
    return dict(sorted(Counter(_TOPICS[key] for key in found).items()))


STORY = Story(
    name="letters",
    title="letters: 20 letters read through a small model, one table",
    tools=(
        list_letters,
        read_letter,
        model_tool({"provider": "local", "model": "recorded", "max_calls": 10_000, "max_tokens": 10**9}, ask=_recorded),
    ),
    question="How many of this week's letters are about delivery, invoices and quality?",
    calls=(("list_letters", {}), *(("read_letter", {"id": f"L-{number}"}) for number in range(LETTERS))),
    answer=_answer,
    reply=lambda counts: ", ".join(f"{count} about {topic}" for topic, count in counts.items()) + ".",
    script=HERE / "letters.lua",
)
