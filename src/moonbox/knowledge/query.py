"""What a person or a model typed into the search box, as expressions of the full-text index.

    words               documents with all of them; if there are none, with most of them; if there are none, with any
    "two words"         the words next to each other
    pre*                words that begin so (three letters at least)
    -word -"a phrase"   not in the document (also: NOT word)
    this OR that        either (AND may be written and means nothing)

Anything else is punctuation. Words that say nothing ("how", "the") are left out when others remain. No input is an
error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import combinations

from moonbox.knowledge.text import clean_line, separated

__all__ = ["Query", "Term", "parse_query"]

MAX_CHARS = 1_000
MAX_TERMS = 32
SHORTEST_PREFIX = 3
MOST_OF = range(3, 9)
"""How many words a query may have to be tried with one of them missing."""


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
    """Groups of alternatives, all of which should be met, and what must not be there."""

    groups: tuple[tuple[Term, ...], ...] = ()
    excluded: tuple[Term, ...] = ()

    @property
    def each(self) -> tuple[str, ...]:
        """One expression for each group."""
        return tuple(_any(group) for group in self.groups)

    def every(self) -> str:
        return " AND ".join(self.each)

    def most(self) -> str | None:
        """All groups but one, whichever; None when there are too few or too many for that."""
        if len(self.groups) not in MOST_OF:
            return None
        choices = combinations(self.each, len(self.groups) - 1)
        return " OR ".join(f"({' AND '.join(choice)})" for choice in choices)

    def words(self) -> tuple[str, ...]:
        """Each word by itself, compounds taken apart."""
        terms = (part for group in self.groups for term in group for part in term.parts())
        return tuple(dict.fromkeys(term.expression for term in terms))

    def nothing(self) -> str | None:
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
    telling = [group for group in groups if len(group) > 1 or not _says_nothing(group[0])]
    return Query(tuple(tuple(group) for group in telling or groups), tuple(excluded))


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


def _says_nothing(term: Term) -> bool:
    if term.quoted or term.prefix:
        return False
    words = _WORD.findall(term.text.lower())
    return all(word in _STOP_WORDS for word in words)


def _any(terms: tuple[Term, ...]) -> str:
    expressions = [term.expression for term in terms]
    return expressions[0] if len(expressions) == 1 else f"({' OR '.join(expressions)})"
