"""The reading process: parses HTML and PDF files inside the jail, one after the other.

Of HTML it keeps the visible text, with headings, lists, tables and code as Markdown writes them. The standard library's
parser reads every page without further packages; extractors of main text either lose the headings, which chunks need,
or bring a dozen packages with them.
"""

from __future__ import annotations

import importlib
import io
import json
import logging
import pkgutil
import re
import socket
import struct
import sys
from contextlib import suppress
from html import unescape
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

from moonbox.knowledge.extract.formats import Extracted, Unreadable
from moonbox.worker.jail import JailConfig, after_threads, before_threads, prepare

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["main", "read_html", "read_pdf"]

MEMORY = 512 * 1024 * 1024
MAX_PDF_PAGES = 3_000
MAX_PDF_CHARS = 10_000_000
_LENGTH = struct.Struct("<I")
# Nothing can be imported inside the jail, and codecs are imported when they are first asked for.
_CODECS = (
    "ascii", "charmap", "latin_1", "utf_8", "utf_8_sig", "utf_16", "utf_16_be", "utf_16_le", "utf_32", "utf_7",
    "unicode_escape", "raw_unicode_escape", "cp1250", "cp1251", "cp1252", "cp1253", "cp1254", "cp1255", "cp1256",
    "cp1257", "cp437", "cp850", "cp932", "cp936", "cp949", "cp950", "mac_roman", "mac_cyrillic", "mac_greek",
    "iso8859_1", "iso8859_2", "iso8859_15", "gb2312", "gbk", "gb18030", "big5", "big5hkscs", "euc_jp", "euc_kr",
    "shift_jis", "iso2022_jp", "johab",
)  # fmt: skip
HIDDEN = frozenset({
    "canvas", "head", "iframe", "math", "nav", "noscript", "object", "script", "select", "style", "svg", "template",
    "textarea", "title",
})  # fmt: skip
BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "body", "caption", "dd", "details", "dialog", "div", "dl", "dt",
    "fieldset", "figcaption", "figure", "footer", "form", "header", "hgroup", "html", "li", "main", "ol", "p", "pre",
    "section", "summary", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul",
})  # fmt: skip
CONTAINERS = frozenset({"a", "aside", "button", "div", "footer", "form", "header", "ol", "section", "span", "ul"})
"""Elements whose end tag cannot be left out, so that hiding one cannot hide the rest of the page."""
HEADINGS = {f"h{level}": "#" * level for level in range(1, 7)}
PERMALINKS = frozenset({"", "¶", "#", "§", "🔗", "\u200b"})
"""What generators of documentation write into the link from a heading to itself."""
TIMES = frozenset({"article:modified_time", "article:published_time", "last-modified", "dcterms.modified", "date"})
_SPACES = re.compile(r"[ \t\n\r\f\v]+")
_BLANK = re.compile(r"\n{3,}")
_MOST_UNFINISHED = 20
"""Tags and comments without an end that are passed over. Each costs a search to the end of the page."""


def main() -> None:
    """Serve the host until it closes the socket. Arguments: kind, the socket's number, the host's process id."""
    kind, fd, host = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    read = _prepared(kind)
    connection = socket.socket(fileno=fd)
    config = JailConfig(keep_fds=(fd,), parent_pid=host, memory=MEMORY, prepared=prepare())
    before_threads(config)
    after_threads(config)
    connection.sendall(b"\1")
    while (data := _receive(connection)) is not None:
        answer, usable = _answer(read, data)
        del data
        connection.sendall(_LENGTH.pack(len(answer)) + answer)
        if not usable:
            return


def read_pdf(data: bytes) -> Extracted:
    """The text of a PDF, page after page. Needs pypdf."""
    import pypdf
    from pypdf.errors import PyPdfError

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # our own message is enough
    try:
        reader = pypdf.PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise Unreadable("the PDF is encrypted", expected=True)
        about: Any = reader.metadata or {}
        pages, size = [], 0
        for page in reader.pages[:MAX_PDF_PAGES]:
            text = page.extract_text()
            size += len(text)
            if size > MAX_PDF_CHARS:
                break
            pages.append(text.strip())
    except PyPdfError as error:
        raise Unreadable(f"the PDF is damaged: {error}") from None
    body = "\n\n".join(filter(None, pages))
    if not body:
        raise Unreadable("PDF without text (scanned pages?)", expected=True)
    return Extracted(
        text=body, title=str(about.get("/Title") or ""), author=str(about.get("/Author") or "") or None, markdown=False
    )


def _prepared(kind: str) -> Callable[[bytes], Extracted]:
    for name in _CODECS:
        with suppress(ImportError, LookupError):
            importlib.import_module(f"encodings.{name}")
            "".encode(name)
    if kind == "html":
        return lambda data: read_html(data.decode())
    import pypdf

    for module in pkgutil.walk_packages(pypdf.__path__, "pypdf."):
        with suppress(ImportError):
            importlib.import_module(module.name)
    return read_pdf


def _answer(read: Callable[[bytes], Extracted], data: bytes) -> tuple[bytes, bool]:
    """The answer, and whether this process can read another file."""
    answer: dict[str, Any]
    usable = True
    try:
        extracted = read(data)
        answer = {name: getattr(extracted, name) for name in ("text", "title", "author", "updated_at", "markdown")}
    except Unreadable as error:
        answer = {"error": str(error), "expected": error.expected}
    except (MemoryError, RecursionError) as error:
        what = "needs more memory" if isinstance(error, MemoryError) else "is nested more deeply"
        answer, usable = {"error": f"the file {what} than is allowed"}, False
    except Exception as error:  # noqa: BLE001 - parsers fail in every way on damaged files; the host is told
        answer, usable = {"error": f"the file is damaged ({type(error).__name__}: {error})"[:300]}, False
    return json.dumps(answer).encode(), usable


def _receive(connection: socket.socket) -> bytes | None:
    head = _exactly(connection, _LENGTH.size)
    return None if head is None else _exactly(connection, _LENGTH.unpack(head)[0])


def _exactly(connection: socket.socket, size: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < size:
        part: Any = connection.recv(min(size - len(parts), 1 << 20))
        if not part:
            return None
        parts += part
    return bytes(parts)


def read_html(text: str) -> Extracted:
    """The text that a reader sees: of the main part where there is one, without scripts, styles and navigation."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    return Extracted(reader.body(), title=reader.title(), author=reader.meta.get("author"), updated_at=reader.updated())


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.meta: dict[str, str] = {}
        self._parts: list[str] = []
        self._title: list[str] = []
        self._first_heading: list[str] = []
        self._in_title = False
        self._hidden, self._hidden_depth = "", 0
        self._main, self._main_depth = "", 0
        self._main_start: int | None = None
        self._main_ranges: list[tuple[int, int]] = []
        self._heading: int | None = None
        self._permalink: int | None = None
        self._code: int | None = None
        self._in_cell = False

    def close(self) -> None:
        """Pass over what is unfinished as text; after too much of it, the rest is text."""
        for tries in range(_MOST_UNFINISHED + 1):
            rest, self.rawdata = self.rawdata, ""
            end = rest.find(">") + 1 if tries < _MOST_UNFINISHED else 0
            self.handle_data(unescape(rest[: end or None]))
            if not end:
                return
            self.feed(rest[end:])

    def title(self) -> str:
        names = (_SPACES.sub(" ", "".join(parts)).strip() for parts in (self._title, self._first_heading))
        return next(filter(None, names), "")

    def updated(self) -> str | None:
        return next((value for name, value in self.meta.items() if name in TIMES), None)

    def body(self) -> str:
        ranges = [*self._main_ranges, *([(self._main_start, len(self._parts))] if self._main_start is not None else [])]
        main = "".join(part for start, end in ranges for part in self._parts[start:end])
        text = main if main.strip() else "".join(self._parts)
        return _BLANK.sub("\n\n", "\n".join(line.rstrip() for line in text.split("\n"))).strip()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        if tag == "meta":
            self._note_meta(attributes)
        self._in_title = self._in_title or tag == "title"
        if self._hidden == "head" and tag == "body":
            self._hidden = ""  # `</head>` may be left out
        if tag == self._hidden:
            self._hidden_depth += 1
        elif not self._hidden and (tag in HIDDEN or (tag in CONTAINERS and _is_hidden(attributes))):
            self._hidden, self._hidden_depth = tag, 1
        if self._hidden:
            return
        if tag == self._main:
            self._main_depth += 1
        elif self._main_start is None and (tag == "main" or attributes.get("role") == "main"):
            self._main, self._main_depth, self._main_start = tag, 1, len(self._parts)
        if tag == "a" and attributes.get("href", "").startswith("#"):
            self._permalink = len(self._parts)
        self._open(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag == "title":
            self._in_title = False
        if self._hidden:
            if tag == self._hidden:
                self._hidden_depth -= 1
                self._hidden = self._hidden if self._hidden_depth else ""
            return
        if tag == "a" and self._permalink is not None:
            if "".join(self._parts[self._permalink :]).strip() in PERMALINKS:
                del self._parts[self._permalink :]
            self._permalink = None
        self._close(tag)
        if tag == self._main:
            self._main_depth -= 1
            if not self._main_depth and self._main_start is not None:
                self._main_ranges.append((self._main_start, len(self._parts)))
                self._main, self._main_start = "", None

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self._title.append(data)
        if not self._hidden:
            self._parts.append(data if self._code is not None else _SPACES.sub(" ", data))

    def _open(self, tag: str) -> None:
        if tag == "pre" and self._code is None:
            self._parts.append("\n\n")
            self._code = len(self._parts)
        elif tag in HEADINGS:
            self._in_cell = False
            self._parts.append(f"\n\n{HEADINGS[tag]} ")
            if tag == "h1" and not self._first_heading:
                self._heading = len(self._parts)
        elif tag == "li":
            self._parts.append("\n- ")
        elif tag in ("td", "th"):
            self._in_cell = True
            self._parts.append("| " if self._after_space() else " | ")
        elif tag in ("tr", "br"):
            self._in_cell = self._in_cell and tag == "br"
            self._parts.append("\n" if not self._in_cell else " ")
        elif tag == "hr" or tag in BLOCKS:
            self._break(tag)

    def _close(self, tag: str) -> None:
        if tag == "pre" and self._code is not None:
            code = "".join(self._parts[self._code :])
            fence = "`" * max([3, *(len(ticks) + 1 for ticks in re.findall("`{3,}", code))])
            self._parts[self._code :] = [f"{fence}\n{code.strip(chr(10))}\n{fence}\n\n"]
            self._code = None
        elif tag == "h1" and self._heading is not None:
            self._first_heading, self._heading = self._parts[self._heading :], None
            self._parts.append("\n\n")
        elif tag in ("td", "th", "table"):
            self._in_cell = False
            if tag == "table":
                self._parts.append("\n\n")
        elif tag in HEADINGS or (tag in BLOCKS and tag not in ("li", "tr")):
            self._break(tag)

    def _break(self, tag: str) -> None:
        """A new paragraph, unless a list item has just begun, or in a cell, which stays on its line."""
        if self._in_cell and tag in ("p", "div"):
            if not self._after_space():
                self._parts.append(" ")
        elif not self._parts or self._parts[-1] != "\n- ":
            self._parts.append("\n\n")

    def _after_space(self) -> bool:
        return bool(self._parts) and self._parts[-1].endswith(" ")

    def _note_meta(self, attributes: dict[str, str]) -> None:
        name = (attributes.get("name") or attributes.get("property") or attributes.get("http-equiv") or "").lower()
        if name in TIMES or name == "author":
            self.meta.setdefault(name, attributes.get("content", "").strip()[:200])


def _is_hidden(attributes: dict[str, str]) -> bool:
    return (
        attributes.get("role") in ("navigation", "search", "contentinfo")
        or attributes.get("aria-hidden") == "true"
        or "hidden" in attributes
    )
