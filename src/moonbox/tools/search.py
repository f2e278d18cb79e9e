"""Search for tools by words, ranked: BM25 over names, parameters and descriptions, names weighing most."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from moonbox.tools.shape import NARRATION, Document
from moonbox.tools.words import close_to, words

if TYPE_CHECKING:
    from collections.abc import Iterable

    from moonbox.tools.tool import Tool
    from moonbox.tools.toolbox import Toolbox

__all__ = ["ToolSearch"]

# Weight of each field, and how far its length counts against it.
_FIELDS = {"name": (3.0, 0.4), "description": (1.5, 0.5), "parameters": (0.8, 0.6), "details": (0.5, 0.6)}
_SATURATION = 1.4
_NAME_BONUS = 0.35
_PREFIX, _SLIP = 0.5, 0.6


@dataclass(frozen=True)
class _Index:
    tools: tuple[Tool, ...]
    names: tuple[frozenset[str], ...]
    postings: dict[str, dict[int, float]]
    """For each word: the tools that have it, and how much of it, all fields taken together."""


class ToolSearch:
    """Ranked search over a toolbox, kept in step with its changes."""

    def __init__(self, toolbox: Toolbox | Iterable[Tool]) -> None:
        self._source = toolbox
        self._revision: int | None = None
        self._index = _Index((), (), {})

    def search(self, query: str, limit: int = 10) -> list[tuple[Tool, float]]:
        """The best tools for these words with their scores, best first; the same words always give the same order."""
        index = self._current()
        wanted = Counter(words(query))
        scores: dict[int, float] = {}
        hits: dict[int, set[str]] = {}
        for word, times in wanted.items():
            for known, weight in _expand(word, index.postings):
                found = index.postings[known]
                rarity = math.log(1 + (len(index.tools) - len(found) + 0.5) / (len(found) + 0.5))
                for at, amount in found.items():
                    gain = weight * rarity * amount / (_SATURATION + amount) * (1 + 0.3 * math.log(times))
                    scores[at] = scores.get(at, 0.0) + gain
                    if known in index.names[at]:
                        hits.setdefault(at, set()).add(known)
        for at, named in hits.items():
            scores[at] *= 1 + _NAME_BONUS * len(named) / len(index.names[at])
        ranked = sorted(scores.items(), key=lambda item: (-item[1], index.tools[item[0]].path))
        return [(index.tools[at], score) for at, score in ranked[:limit]]

    def _current(self) -> _Index:
        revision = getattr(self._source, "revision", 0)
        if revision != self._revision:
            self._index, self._revision = _build(tuple(self._source)), revision
        return self._index


def _build(tools: tuple[Tool, ...]) -> _Index:
    texts = [_texts(tool) for tool in tools]
    counted = {field: [Counter(words(text[field])) for text in texts] for field in _FIELDS}
    postings: dict[str, dict[int, float]] = {}
    for field, (weight, strictness) in _FIELDS.items():
        lengths = [counts.total() for counts in counted[field]]
        average = (sum(lengths) / len(lengths) if lengths else 0) or 1.0
        for at, counts in enumerate(counted[field]):
            scale = weight / (1 - strictness + strictness * lengths[at] / average)
            for word, count in counts.items():
                places = postings.setdefault(word, {})
                places[at] = places.get(at, 0.0) + scale * count
    return _Index(tools, tuple(frozenset(counts) for counts in counted["name"]), postings)


def _texts(tool: Tool) -> dict[str, str]:
    document = tool.document
    named = {name: part for name, part in document.properties(document.root).items() if name != NARRATION}
    return {
        "name": tool.path,
        "description": f"{tool.description} {' '.join(tool.tags)}",
        "parameters": " ".join(named),
        "details": " ".join(_said(part, document) for part in named.values()),
    }


def _said(schema: Any, document: Document) -> str:
    """A parameter's description, its choices, and the names of its fields."""
    found = document.deref(schema)
    if not isinstance(found, dict):
        return ""
    options = [value for value in found.get("enum") or () if isinstance(value, str)]
    inner = found.get("items") if isinstance(found.get("items"), dict) else found
    return " ".join([str(found.get("description") or ""), *options[:20], *document.properties(inner)])


def _expand(word: str, postings: dict[str, dict[int, float]]) -> list[tuple[str, float]]:
    """The indexed words that a query's word stands for: itself, else longer forms, else those one slip away."""
    if word in postings:
        return [(word, 1.0)]
    if len(word) < 4:
        return []
    longer = sorted(
        known for known in postings if known.startswith(word) or (len(known) > 3 and word.startswith(known))
    )
    if longer:
        return [(known, _PREFIX) for known in longer[:8]]
    return [
        (known, _SLIP) for known in sorted(known for known in postings if len(known) > 3 and close_to(word, known))[:4]
    ]
