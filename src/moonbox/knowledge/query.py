"""What a person or a model typed into the search box, as expressions of the full-text index.

    words               documents with any of them; the more and the rarer, the better
    "two words"         the words next to each other; documents without them come only when there are no others
    pre*                words that begin so (three letters at least)
    -word -"a phrase"   not in the document (also: NOT word)
    this OR that        either; together they count as one word (AND may be written and changes nothing)

Anything else is punctuation. Words without meaning of their own ("how", "the") are left out when others remain. Any
input is valid.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from moonbox.knowledge.text import clean_line, separated

__all__ = ["Query", "Term", "parse_query"]

MAX_CHARS = 1_000
MAX_TERMS = 32
SHORTEST_PREFIX = 3


@dataclass(frozen=True, slots=True)
class Term:
    """One word, phrase or beginning of a word."""

    text: str
    quoted: bool = False
    prefix: bool = False

    @property
    def expression(self) -> str:
        quoted = separated(self.text).replace('"', " ")
        return f'"{quoted}"*' if self.prefix else f'"{quoted}"'

    def parts(self) -> tuple[Term, ...]:
        """The words of a compound such as `get_user` or `a/b`, which as a whole is a phrase."""
        words = _WORD.findall(self.text)
        if self.quoted or len(words) < 2:
            return (self,)
        *most, last = words
        return (*(Term(word) for word in most), Term(last, prefix=self.prefix))


@dataclass(frozen=True, slots=True)
class Query:
    """Groups of alternatives, the more of which are met the better, and what must not be there."""

    groups: tuple[tuple[Term, ...], ...] = ()
    excluded: tuple[Term, ...] = ()

    @property
    def each(self) -> tuple[str, ...]:
        """One expression for each group."""
        return tuple(_any(group) for group in self.groups)

    def every(self) -> str:
        """All groups."""
        return " AND ".join(self.each)

    def required(self) -> str | None:
        """The groups that were written in quotes."""
        quoted = [_any(group) for group in self.groups if all(term.quoted for term in group)]
        return " AND ".join(quoted) or None

    def terms(self) -> tuple[str, ...]:
        """What counts for the ranking: each group, and the words of compounds."""
        compounds = (term for group in self.groups for term in group if len(term.parts()) > 1)
        parts = (part.expression for term in compounds for part in term.parts())
        return tuple(dict.fromkeys((*self.each, *parts)))

    def without(self) -> str | None:
        """What must not be in the document."""
        return _any(self.excluded) if self.excluded else None


def parse_query(text: str) -> Query:
    """Read a query; never fails."""
    groups: list[list[Term]] = []
    excluded: list[Term] = []
    joining = negating = False
    for token in list(_TOKEN.finditer(clean_line(text)[:MAX_CHARS]))[:MAX_TERMS]:
        word = token["word"] or ""
        if word in ("OR", "AND", "NOT"):
            joining, negating = word == "OR" and bool(groups), word == "NOT"
            continue
        term = _term(token)
        if term is not None:
            if token["minus"] or negating:
                excluded.append(term)
            elif joining:
                groups[-1].append(term)
            else:
                groups.append([term])
        joining = negating = False
    kept = [group for group in groups if len(group) > 1 or not _is_stop_word(group[0])]
    return Query(tuple(tuple(group) for group in kept or groups), tuple(excluded))


_WORD = re.compile(r"[^\W_]+")
_TOKEN = re.compile(r'(?P<minus>-)?(?:"(?P<phrase>[^"]*)(?:"|$)(?P<after>\*?)|(?P<word>[^\s"]+))')
_STOP_WORDS = frozenset({
    "a", "about", "am", "an", "and", "any", "are", "as", "at", "be", "been", "being", "by", "can", "could", "did",
    "do", "does", "for", "from", "had", "has", "have", "how", "i", "if", "in", "into", "is", "it", "its", "me", "my",
    "of", "on", "or", "our", "please", "should", "so", "tell", "than", "that", "the", "their", "them", "then",
    "there", "these", "they", "this", "those", "to", "us", "was", "we", "were", "what", "when", "where", "which",
    "who", "whom", "whose", "why", "will", "with", "would", "you", "your",
})  # fmt: skip


def _term(token: re.Match[str]) -> Term | None:
    if token["phrase"] is not None:
        text, quoted, prefix = token["phrase"], True, bool(token["after"])
    else:
        text, quoted, prefix = token["word"].rstrip("*"), False, token["word"].endswith("*")
    words = _WORD.findall(text)
    return Term(text, quoted, prefix and len(words[-1]) >= SHORTEST_PREFIX) if words else None


def _is_stop_word(term: Term) -> bool:
    if term.quoted or term.prefix:
        return False
    words = _WORD.findall(term.text.lower())
    return all(word in _STOP_WORDS for word in words)


def _any(terms: tuple[Term, ...]) -> str:
    expressions = [term.expression for term in terms]
    return expressions[0] if len(expressions) == 1 else f"({' OR '.join(expressions)})"
