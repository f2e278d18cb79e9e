"""Search for tools by words, ranked: BM25 over names, parameters and descriptions, names weighing most.

SQLite's FTS5, which the knowledge base uses, finds less here: of 204 operations of GitHub's API, searched by their
summaries among 1,223 tools, 173 are first with this module, 144 with FTS5's own stemming and 129 with FTS5 on these
stems. Building the index takes as long with these stems, and FTS5 knows neither synonyms nor misspelt words.
"""

from __future__ import annotations

import bisect
import functools
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from msgspec import Struct

from moonbox.schema.tree import NARRATION, SchemaNode

if TYPE_CHECKING:
    from moonbox.tools.tool import Tool
    from moonbox.tools.toolbox import Toolbox

# Weight of each field, and how far its length counts against it.
_FIELDS = {"name": (3.0, 0.4), "description": (1.5, 0.5), "parameters": (0.8, 0.6), "details": (0.5, 0.6)}
_SATURATION = 1.4
_NAME_BONUS = 0.35
_PREFIX, _SLIP = 0.5, 0.6
_LONGEST_QUERY = 2_000
_MOST_WORDS = 50
_MOST_FORMS = 8
_MOST_SLIPS = 8
_LONGEST_WORD = 40
_LONGEST_PIECE = 1_000  # of text without a space: sorting many marks on one letter takes the square of their number


class _WordIndex(Struct, frozen=True):
    tools: tuple[Tool, ...]
    names: tuple[frozenset[str], ...]
    postings: dict[str, dict[int, float]]
    """For each word: the tools that have it, and how much of it, all fields taken together."""
    vocabulary: tuple[str, ...]
    """The words in order."""

    def longer_or_shorter(self, word: str) -> list[str]:
        """The indexed words that begin with this one, or with which it begins."""
        known = [word[:size] for size in range(4, len(word)) if word[:size] in self.postings]
        for at in range(bisect.bisect_left(self.vocabulary, word), len(self.vocabulary)):
            if not self.vocabulary[at].startswith(word) or len(known) >= 2 * _MOST_FORMS:
                break
            known.append(self.vocabulary[at])
        return sorted(known)[:_MOST_FORMS]

    def misspelt(self, word: str) -> list[str]:
        """The indexed words that one slip makes of this one; reads the whole vocabulary."""
        return [known for known in self.vocabulary if len(known) > 3 and close_to(word, known)][:4]


class ToolSearch:
    """Ranked search over a toolbox, kept in step with its changes."""

    def __init__(self, toolbox: Toolbox | Iterable[Tool]) -> None:
        self._source = toolbox
        self._revision: int | None = None
        self._index = _WordIndex((), (), {}, ())

    def search(self, query: str, limit: int = 10) -> list[tuple[Tool, float]]:
        """The best tools for these words with their scores, best first; the same words always give the same order."""
        index = self._current()
        scores: dict[int, float] = {}
        hits: dict[int, set[str]] = {}
        for forms, times, weight in _terms(query, index):
            for known in forms:
                places = index.postings[known]
                rarity = math.log(1 + (len(index.tools) - len(places) + 0.5) / (len(places) + 0.5))
                for at, amount in places.items():
                    gain = weight * rarity * amount / (_SATURATION + amount) * (1 + 0.3 * math.log(times))
                    scores[at] = scores.get(at, 0.0) + gain
                    if known in index.names[at]:
                        hits.setdefault(at, set()).add(known)
        for at, named in hits.items():
            scores[at] *= 1 + _NAME_BONUS * len(named) / len(index.names[at])
        ranked = sorted(scores.items(), key=lambda item: (-item[1], index.tools[item[0]].path))
        return [(index.tools[at], score) for at, score in ranked[:limit]]

    def _current(self) -> _WordIndex:
        revision = getattr(self._source, "revision", 0)
        if revision != self._revision:
            self._index, self._revision = _build(tuple(self._source)), revision
        return self._index


def _build(tools: tuple[Tool, ...]) -> _WordIndex:
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
    names = tuple(frozenset(counts) for counts in counted["name"])
    return _WordIndex(tools, names, postings, tuple(sorted(postings)))


def _terms(query: str, index: _WordIndex) -> Iterator[tuple[list[str], int, float]]:
    """The indexed words that each word of a query stands for, how often it occurs, and how much it counts.

    A word stands for itself, else for longer and shorter forms, else for words one slip away. Long queries are cut, and
    only a few words are looked up by their slips, so that no query costs more than a fixed number of looks.
    """
    slips_left = _MOST_SLIPS
    for word, times in islice(Counter(words(query[:_LONGEST_QUERY])).items(), _MOST_WORDS):
        if word in index.postings:
            yield [word], times, 1.0
        elif len(word) < 4:
            continue
        elif forms := index.longer_or_shorter(word):
            yield forms, times, _PREFIX
        elif slips_left:
            slips_left -= 1
            yield index.misspelt(word), times, _SLIP


def _texts(tool: Tool) -> dict[str, str]:
    named = {name: part for name, part in tool.accepted.fields.items() if name != NARRATION}
    return {
        "name": tool.path,
        "description": f"{tool.description} {' '.join(tool.tags)}",
        "parameters": " ".join(named),
        "details": " ".join(map(_parameter_text, named.values())),
    }


def _parameter_text(node: SchemaNode) -> str:
    """A parameter's description, its choices, and the names of its fields."""
    options = [value for value in node.listed or () if isinstance(value, str)]
    return " ".join([node.word("description"), *options[:20], *(node.items.fields or node.fields)])


# Words of names, descriptions and queries, cut down to what they have in common

_PIECE = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")
_STOP = frozenset(
    {
        *("a", "about", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can"),
        *("could", "did", "do", "does", "e", "for", "from", "g", "give", "given", "go", "had", "has", "have", "help"),
        *("hey", "hi", "his", "how", "i", "if", "im", "in", "into", "is", "it", "its", "just", "ll", "let", "like"),
        *("m", "may", "me", "my", "need", "no", "not", "of", "on", "one", "or", "our", "please", "re", "s", "she"),
        *("should", "so", "some", "t", "than", "that", "the", "their", "them", "then", "there", "these", "they"),
        *("this", "to", "up", "us", "use", "used", "using", "ve", "want", "was", "we", "were", "what", "when"),
        *("where", "which", "who", "will", "with", "would", "you", "your"),
    }
)
# Verbs that tool authors and those who look for tools use for one another.
_SAME = {
    **dict.fromkeys(("fetch", "retrieve", "obtain", "lookup", "read", "show"), "get"),
    **dict.fromkeys(("search", "locate"), "find"),
    **dict.fromkeys(("compute", "evaluate"), "calculate"),
    **dict.fromkeys(("make", "generate", "build"), "create"),
    **dict.fromkeys(("modify", "edit", "alter", "adjust"), "change"),
    **dict.fromkeys(("delete", "erase", "drop"), "remove"),
    **dict.fromkeys(("photo", "picture"), "image"),
    **dict.fromkeys(("movie", "movies"), "film"),
    **dict.fromkeys(("reserve", "reservation"), "book"),
    **dict.fromkeys(("mail", "mails", "emails"), "email"),
    **dict.fromkeys(("repository", "repositories"), "repo"),
    **dict.fromkeys(("organization", "organizations", "organisation", "organisations"), "org"),
}
_ENDINGS = (
    *(("ational", "ate"), ("ization", "ize"), ("isation", "ize"), ("fulness", "ful"), ("ousness", "ous")),
    *(("ations", "ate"), ("ation", "ate"), ("ators", "ate"), ("ator", "ate"), ("ments", ""), ("ment", "")),
    *(("ities", ""), ("ity", ""), ("ically", "ic"), ("ings", ""), ("ing", ""), ("ies", "y"), ("ied", "y")),
    *(("ions", ""), ("ion", ""), ("edly", ""), ("ed", ""), ("ers", ""), ("er", ""), ("ors", ""), ("or", "")),
    *(("ly", ""), ("sses", "ss"), ("es", ""), ("s", "")),
)


def words(text: str) -> list[str]:
    """The stems of a text's words; names are split at case changes, digits and underscores."""
    folded = text if text.isascii() else " ".join(_folded(piece[:_LONGEST_PIECE]) for piece in text.split())
    stems: list[str] = []
    for piece in _PIECE.findall(folded):
        word = piece.lower()
        if not word.isascii() and any(_is_wide(letter) for letter in word):
            stems += [word[at : at + 2] for at in range(max(1, len(word) - 1))]
        elif word not in _STOP:
            stems.append(stem(word[:_LONGEST_WORD]))
    return stems


def _is_wide(letter: str) -> bool:
    """Whether it belongs to a writing without spaces between words: Japanese, Chinese, Korean."""
    return "\u3040" <= letter <= "\u30ff" or "\u3400" <= letter <= "\u9fff" or "\uac00" <= letter <= "\ud7af"


def _folded(text: str) -> str:
    """Text in its plain letters, without accents."""
    decomposed = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text))
    return "".join(char for char in decomposed if not unicodedata.combining(char))


@functools.lru_cache(maxsize=8192)
def stem(word: str) -> str:
    """A word without its ending; made to bring forms together, not to be read."""
    word = _SAME.get(word, word)
    if len(word) > 3 and word.isascii() and not word.endswith("ss"):
        for ending, instead in _ENDINGS:
            if word.endswith(ending) and len(word) - len(ending) >= 3:
                word = word[: len(word) - len(ending)] + instead
                break
    if len(word) > 3 and word[-1] == "e":
        word = word[:-1]
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiouls":
        word = word[:-1]
    if len(word) > 3 and word[-1] == "y":
        word = word[:-1] + "i"
    return _SAME.get(word, word)


def close_to(word: str, other: str) -> bool:
    """Whether one slip (a letter missing, added, changed, or two swapped) makes one word of the other."""
    if abs(len(word) - len(other)) > 1 or word == other:
        return word == other
    head = 0
    while head < min(len(word), len(other)) and word[head] == other[head]:
        head += 1
    left, right = word[head:], other[head:]
    if len(left) == len(right):
        return left[1:] == right[1:] or (left[:2] == right[1::-1] and left[2:] == right[2:])
    return left[1:] == right if len(left) > len(right) else left == right[1:]
