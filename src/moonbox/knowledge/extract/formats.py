"""Formats: the kind of a file, its encoding, and the titles of Markdown and reStructuredText."""

from __future__ import annotations

import codecs
import re
import tomllib
from dataclasses import dataclass
from typing import Literal

from moonbox.knowledge.records import time_or_none
from moonbox.knowledge.text import clean

Kind = Literal["markdown", "rst", "text", "html", "pdf"]

SNIFFED = 8_192
MAX_FRONT = 20_000
TITLE_SEARCHED = 4_000


@dataclass(frozen=True, slots=True)
class Extracted:
    """The text of a file and what it says about itself."""

    text: str
    title: str = ""
    author: str | None = None
    updated_at: str | None = None
    metadata: dict[str, str] | None = None
    markdown: bool = True


@dataclass(frozen=True, slots=True)
class ReadDocument:
    """What the reading process sends: what it took out of a file, or why it could not."""

    extracted: Extracted | None = None
    error: str = ""
    expected: bool = False


class Unreadable(Exception):
    """A file has no text that can be read; `expected` when that is normal for such a file and not a fault."""

    def __init__(self, message: str, *, expected: bool = False) -> None:
        self.expected = expected
        super().__init__(message)


def kind_of(name: str) -> Kind:
    """The kind of a file by its name; an unknown one is text, unless it turns out to be binary."""
    return _SUFFIXES.get(name.lower().rpartition(".")[2], "text")


def kind_of_type(content_type: str) -> Kind | None:
    """The kind of an HTTP response by its content type; None for types without text."""
    name = content_type.partition(";")[0].strip().lower()
    return _TYPES.get(name) or ("text" if name.startswith("text/") else None)


_SUFFIXES: dict[str, Kind] = {
    **dict.fromkeys(("md", "markdown", "mdown", "mkd", "mdx"), "markdown"),
    **dict.fromkeys(("html", "htm", "xhtml"), "html"),
    "rst": "rst",
    "pdf": "pdf",
}
_TYPES: dict[str, Kind] = {
    **dict.fromkeys(("text/html", "application/xhtml+xml"), "html"),
    **dict.fromkeys(("text/markdown", "text/x-markdown"), "markdown"),
    **dict.fromkeys(("text/x-rst", "text/prs.fallenstein.rst"), "rst"),
    "application/pdf": "pdf",
    "application/json": "text",
}

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# A page names its encoding, and Python's list has some that are not encodings of text (zlib) or are slow (punycode).
_ALLOWED = re.compile(
    r"utf-?8|utf-?16(-?[lb]e)?|(us-)?ascii|iso-?8859-?\d{1,2}|latin-?[1-9]|windows-?125\d|cp-?(125\d|437|850|866|932|949)"
    r"|shift[_-]?jis|euc-?(jp|kr)|iso-2022-jp|gb2312|gbk|gb18030|big5|koi8-?[ru]|mac-?(roman|intosh)|tis-620",
    re.IGNORECASE,
)
_DECLARED = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([a-zA-Z0-9_-]{1,40})", re.IGNORECASE)


def decode(data: bytes, charset: str | None = None) -> str:
    """The text in some bytes; raises Unreadable for binary data.

    A byte order mark decides, then the given charset, then UTF-8. What is not UTF-8 is Windows-1252, unless a good part
    of it is UTF-8, which does not happen by chance: then the rest is damage and becomes U+FFFD.
    """
    for mark, name in _BOMS:
        if data.startswith(mark):
            return data.decode(name, "replace")
    if b"\0" in data[:SNIFFED]:
        raise Unreadable("binary file", expected=True)
    if charset and _ALLOWED.fullmatch(charset.strip()):
        try:
            return data.decode(charset.strip().replace("macintosh", "mac-roman"))
        except (UnicodeDecodeError, LookupError):
            pass  # the given charset is wrong
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        repaired = data.decode("utf-8", "replace")
    damaged = repaired.count("\ufffd")
    sound = sum(1 for character in repaired if character > "\x7f") - damaged
    return repaired if sound * 4 >= damaged else data.decode("cp1252", "replace")


def declared_charset(data: bytes) -> str | None:
    """What an HTML page says about its own encoding."""
    match = _DECLARED.search(data[:SNIFFED])
    return match[1].decode() if match else None


_FRONT = re.compile(
    r"\A(?P<fence>---|\+\+\+)[ \t]*\n(?P<front>.*?)^(?P=fence)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE
)
_PAIR = re.compile(r"^([A-Za-z][\w-]{0,40})[ \t]*:[ \t]+([^\n]+)$", re.MULTILINE)
_TITLE = re.compile(r"^(?: {0,3}#[ \t]+([^\n]+)|([^\n#>\s][^\n]{0,199})\n=+[ \t]*$)", re.MULTILINE)


def read_markdown(text: str) -> Extracted:
    """A Markdown file's text without its front matter; title, author, date and the rest of the front matter apart."""
    text = clean(text)
    front, body = _front_matter(text)
    heading = _TITLE.search(body[:TITLE_SEARCHED])
    title = front.pop("title", "") or (next(filter(None, heading.groups())) if heading else "")
    author = front.pop("author", None)
    updated = next(
        (front[key] for key in ("updated", "lastmod", "last_modified", "modified", "date") if key in front), None
    )
    return Extracted(
        text=body,
        title=title.strip().rstrip("#").strip(),
        author=author,
        updated_at=time_or_none(updated),
        metadata=front or None,
    )


def _front_matter(text: str) -> tuple[dict[str, str], str]:
    """Simple `key: value` lines of YAML, or TOML; whatever is nested is left out."""
    match = _FRONT.match(text[: MAX_FRONT + 8])
    if not match:
        return {}, text
    if match["fence"] == "+++":
        try:
            table = tomllib.loads(match["front"])
            pairs = {key: str(value) for key, value in table.items() if not isinstance(value, dict | list)}
        except (ValueError, RecursionError):  # also for an integer of too many digits
            return {}, text
    else:
        pairs = {key: _scalar(value) for key, value in _PAIR.findall(match["front"])}
    return {key.lower(): value for key, value in pairs.items() if value}, text[match.end() :]


def _scalar(value: str) -> str:
    value = value.strip()
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return "" if not value or value[0] in "&*!|>%@`" else value.partition(" #")[0].strip()


# A title of reStructuredText: a line over a line of one repeated mark, which may stand above it as well.
_SECTION = re.compile(
    r"(?:(?<=\n\n)|\A\n*)(?:(?P<over>(?P<over_mark>[!-/:-@[-`{-~])(?P=over_mark){2,})[ \t]*\n[ \t]{0,3})?"
    r"(?P<title>[^\s][^\n]{0,199})\n(?P<under>(?P<mark>[!-/:-@[-`{-~])(?P=mark){2,})[ \t]*(?=\n|\Z)"
)
_HASHES = re.compile(r"^ {0,3}(?=#{1,6}[ \t])", re.MULTILINE)


def read_rst(text: str) -> Extracted:
    """A reStructuredText file's text with its section titles as headings of Markdown; the first one is its title."""
    text, styles, titles = _HASHES.sub("    ", clean(text)), [], []

    def heading(match: re.Match[str]) -> str:
        title, over = match["title"].strip(), match["over"]
        if len(match["under"]) < len(title) or (over and over != match["under"]):
            return match[0]
        style = (match["mark"], bool(over))  # the first style that a file uses is its highest level, and so on
        if style not in styles:
            styles.append(style)
        titles.append(title)
        return f"{'#' * min(6, 1 + styles.index(style))} {title}\n"

    body = _SECTION.sub(heading, text)
    return Extracted(body, title=titles[0] if titles else "")
