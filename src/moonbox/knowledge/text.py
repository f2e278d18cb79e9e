"""Text as it is stored: cleaned, and with scripts that write no spaces cut into characters for the index."""

from __future__ import annotations

import re

__all__ = ["clean", "clean_line", "joined", "separated"]

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
