"""Text as it is stored: cleaned, made ready for the index, and cut into chunks.

Chunks are passages small enough to rank, to show and to embed. The rules, in order:

- A chunk has at most 1,200 characters: about what small sentence models read before they stop (256 tokens).
- A Markdown heading begins a new chunk, unless the one before is still shorter than 300 characters: short sections stay
  together. Headings inside fenced code are code.
- Within a section chunks end between paragraphs; a paragraph that is too long is cut at a line end, else after a
  sentence, else at a space, else anywhere.
- A chunk that continues a section begins with the last 150 characters or so of the chunk before (from a word's start),
  so that a phrase on the border is found. Across headings there is no overlap.
- Every chunk knows the headings that lead to it.

Each chunk is a slice of the text, and without the overlaps the slices make up the text exactly.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

MAX_CHARS = 1_200
MIN_CHARS = 300
OVERLAP = 150
HEADING_CHARS = 200


# Control characters would reach terminals, and surrogates cannot be stored. U+200B is ours: see `separated`.
_ODD = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b\ufeff\ud800-\udfff]")
_ESCAPES = re.compile("\x1b\\[[0-?]*[ -/]*[@-~]")  # colours and cursor movements of terminals
_SPACES = re.compile(r"\s+")

_UNSPACED = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\u1780-\u17ff"  # Burmese, Khmer
    "\u1100-\u11ff\uac00-\ud7af"  # Hangul: particles are written against the word
    "\u3041-\u30ff\u31f0-\u31ff"  # Kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
)
_ANY_UNSPACED = re.compile(f"[{_UNSPACED}]")
_BORDER = re.compile(rf"(?<=[{_UNSPACED}])(?=\w)|(?<=\w)(?=[{_UNSPACED}])")
_MARK = "\u200b"


def clean(text: str) -> str:
    """Text with Unix line ends, without control characters and terminal codes."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\x1b" in text:
        text = _ESCAPES.sub("", text)
    return _ODD.sub("", text) if _ODD.search(text) else text


def clean_line(text: str) -> str:
    """The same on one line."""
    return _SPACES.sub(" ", clean(text)).strip()


def separated(text: str) -> str:
    """Text for the index: a zero-width space between the characters of scripts that write none.

    The tokenizer takes a run of letters as one word, which for Chinese or Thai is a whole sentence. Cut this way each
    character is a word, a query's words become phrases, and any part of a sentence is found.
    """
    if text.isascii() or not _ANY_UNSPACED.search(text):
        return text
    return _BORDER.sub(_MARK, text)


def joined(text: str) -> str:
    """The inverse of `separated`."""
    return text.replace(_MARK, "") if _MARK in text else text


class Piece(NamedTuple):
    """The slice `start:end` of a text; the first `overlap` characters belong to the piece before as well."""

    start: int
    end: int
    overlap: int
    heading: str


def chunk_text(text: str, *, markdown: bool = True) -> list[Piece]:
    """Cut a text into pieces; at least one, however short the text is."""
    if len(text) <= MIN_CHARS and not (markdown and "#" in text):
        return [Piece(0, len(text), 0, "")]
    pieces: list[Piece] = []
    for start, end, heading in _gathered(list(_sections(text)) if markdown else [(0, len(text), "")]):
        pieces.extend(_split(text, start, end, heading))
    return pieces


# Both alternatives are anchored at a line's start and read that line once: linear in the text.
_LANDMARK = re.compile(
    r"^(?: {0,3}(?P<fence>`{3,}|~{3,})(?P<info>[^\n]*)"
    r"| {0,3}(?P<level>#{1,6})(?:[ \t]+(?P<title>[^\n]*))?$"
    r"|(?P<under>=+|-+)[ \t]*$)",
    re.MULTILINE,
)


def _sections(text: str) -> Iterator[tuple[int, int, str]]:
    """Start, end and heading path of each part between headings."""
    begin, path, trail = 0, "", [""] * 6
    for at, level, title in _headings(text):
        if at > begin:
            yield begin, at, path
        trail[level - 1 :] = [title] + [""] * (6 - level)
        begin, path = at, " > ".join(part for part in trail if part)
    if begin < len(text):
        yield begin, len(text), path


def _headings(text: str) -> Iterator[tuple[int, int, str]]:
    """Offset, level and title of every heading outside fenced code."""
    fence = ""
    for mark in _LANDMARK.finditer(text):
        if ticks := mark["fence"]:
            if not fence and not (ticks[0] == "`" and "`" in mark["info"]):
                fence = ticks
            elif fence and ticks[0] == fence[0] and len(ticks) >= len(fence) and not mark["info"].strip():
                fence = ""
        elif fence:
            continue
        elif mark["level"]:
            yield mark.start(), len(mark["level"]), _heading_text(mark["title"] or "")
        elif title := _underlined(text, mark.start()):
            yield mark.start() - len(title) - 1, 1 if mark["under"][0] == "=" else 2, _heading_text(title)


def _underlined(text: str, at: int) -> str:
    """The line above an underline, when it is a paragraph's only line and so a heading."""
    above = text.rfind("\n", max(0, at - 1 - HEADING_CHARS), max(0, at - 1)) + 1
    if above == 0 and at - 1 > HEADING_CHARS:
        return ""
    title = text[above : max(0, at - 1)]
    alone = above == 0 or text[max(0, above - 2) : above] in ("\n", "\n\n")
    return title if alone and title.strip() and title[0] not in "#>-*+|` \t" else ""


def _heading_text(title: str) -> str:
    return title.strip().rstrip("#").strip()[:HEADING_CHARS]


def _gathered(sections: list[tuple[int, int, str]]) -> Iterator[tuple[int, int, str]]:
    """Sections, with those that are short joined to what follows."""
    begin, end, heading = sections[0]
    for start, stop, path in sections[1:]:
        if end - begin >= MIN_CHARS or stop - begin > MAX_CHARS:
            yield begin, end, heading
            begin, heading = start, path
        end = stop
    yield begin, end, heading


def _split(text: str, start: int, end: int, heading: str) -> Iterator[Piece]:
    """One section in pieces of at most MAX_CHARS, each after the first with its overlap."""
    overlap = 0
    while end - start > MAX_CHARS - overlap:
        cut = _border(text, start, start + MAX_CHARS - overlap)
        yield Piece(start - overlap, cut, overlap, heading)
        overlap = _overlap(text, cut)
        start = cut
    if start < end:
        yield Piece(start - overlap, end, overlap, heading)


_SPACE_OR_LINE_END = re.compile(r"[ \n]")
_SENTENCE = re.compile(r"[.!?…][\"')\]»”]*\s+|[。！？]")


def _border(text: str, start: int, limit: int) -> int:
    """Where to cut between `start` and `limit`: as late as possible at the strongest border of the later half."""
    middle = start + (limit - start) // 2
    for border in ("\n\n", "\n"):
        at = text.rfind(border, middle, limit)
        if at >= 0:
            return at + len(border)
    cut = 0
    for sentence in _SENTENCE.finditer(text, middle, limit):
        cut = sentence.end()
    if cut:
        return cut
    at = text.rfind(" ", middle, limit)
    return at + 1 if at >= 0 else limit


def _overlap(text: str, cut: int) -> int:
    """How many characters before `cut` the next piece repeats: from a word's start on, and far less than the piece."""
    space = _SPACE_OR_LINE_END.search(text, cut - OVERLAP, cut)
    return cut - space.end() if space else 0
