"""Words of names, descriptions and queries, cut down to what they have in common."""

from __future__ import annotations

import functools
import re
import unicodedata

__all__ = ["close_to", "words"]

_PIECE = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
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
    folded = unicodedata.normalize("NFKC", text)
    if not folded.isascii():
        folded = "".join(char for char in unicodedata.normalize("NFD", folded) if not unicodedata.combining(char))
    found: list[str] = []
    for piece in _PIECE.findall(folded):
        word = piece.lower()
        if _WIDE.search(word):
            found += [word[at : at + 2] for at in range(max(1, len(word) - 1))]
        elif word not in _STOP:
            found.append(stem(word))
    return found


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
