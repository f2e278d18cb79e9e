"""A model of meaning small enough for tests, and the server that offers it in OpenAI's wire format."""

from __future__ import annotations

import json
import re
from typing import Any

TOPICS = (
    ("cat", "kitten", "feline", "purr", "whiskers"),
    ("dog", "puppy", "canine", "bark", "leash"),
    ("tax", "invoice", "revenue", "audit", "accountant"),
    ("server", "computer", "cpu", "memory", "kernel"),
)
DIMENSIONS = 12


def vector_of(text: str) -> list[float]:
    """Words of one topic point one way."""
    words = re.findall(r"[a-z]+", text.lower())
    vector = [0.01] * DIMENSIONS
    for number, topic in enumerate(TOPICS):
        vector[number * 3] += sum(1.0 for word in words if word in topic)
        vector[number * 3 + 1] -= vector[number * 3] / 2
    return vector


def answer_embeddings(headers: dict[str, str], body: bytes) -> Any:
    """What an embeddings endpoint answers; out of order, as the format allows."""
    asked = json.loads(body)
    headers["sent"] = body.decode()
    data = [{"object": "embedding", "index": n, "embedding": vector_of(text)} for n, text in enumerate(asked["input"])]
    answer = {"object": "list", "data": data[::-1], "model": asked["model"], "usage": {"prompt_tokens": 1}}
    return 200, {"content-type": "application/json"}, json.dumps(answer).encode()
