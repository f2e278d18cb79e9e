"""HTML: its visible text as Markdown-like paragraphs and headings."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from moonbox.knowledge.extract.kinds import Extracted

__all__ = ["read_html"]

HIDDEN = frozenset({
    "canvas", "head", "iframe", "math", "nav", "noscript", "object", "script", "select", "style", "svg", "template",
    "textarea", "title",
})  # fmt: skip
BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "body", "caption", "dd", "details", "dialog", "div", "dl", "dt",
    "fieldset", "figcaption", "figure", "footer", "form", "header", "hgroup", "html", "li", "main", "ol", "p", "pre",
    "section", "summary", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul",
})  # fmt: skip
HEADINGS = {f"h{level}": "#" * level for level in range(1, 7)}
TIMES = frozenset({"article:modified_time", "article:published_time", "last-modified", "dcterms.modified", "date"})
_SPACES = re.compile(r"[ \t\n\r\f\v]+")
_BLANK = re.compile(r"\n{3,}")


def read_html(text: str) -> Extracted:
    """The text that a reader sees: of `<main>` where there is one, without scripts, styles and navigation."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    body = reader.body()
    return Extracted(text=body, title=reader.title(), author=reader.meta.get("author"), updated_at=reader.updated())


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.meta: dict[str, str] = {}
        self._whole: list[str] = []
        self._main: list[str] = []
        self._titles: dict[str, list[str]] = {"title": [], "h1": []}
        self._hidden = ""
        self._hidden_depth = 0
        self._in_main = 0
        self._in_pre = 0
        self._naming: str | None = None

    def title(self) -> str:
        names = (_SPACES.sub(" ", "".join(self._titles[where])).strip() for where in ("title", "h1"))
        return next(filter(None, names), "")

    def updated(self) -> str | None:
        return next((value for name, value in self.meta.items() if name in TIMES), None)

    def body(self) -> str:
        main = "".join(self._main)
        text = main if main.strip() else "".join(self._whole)
        return _BLANK.sub("\n\n", "\n".join(line.rstrip() for line in text.split("\n"))).strip()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "meta":
            self._note_meta({name: value or "" for name, value in attrs})
        elif tag == "title":
            self._naming = "title"
        if self._hidden == "head" and tag == "body":
            self._hidden = ""  # `</head>` may be left out
        if tag == self._hidden:
            self._hidden_depth += 1
        elif tag in HIDDEN and not self._hidden:
            self._hidden, self._hidden_depth = tag, 1
        if self._hidden:
            return
        if tag == "main":
            self._in_main += 1
        if tag == "pre":
            self._in_pre += 1
        if tag in HEADINGS:
            self._write(f"\n\n{HEADINGS[tag]} ")
            if tag == "h1" and not self._titles["h1"]:
                self._naming = "h1"
        elif tag == "li":
            self._write("\n- ")
        elif tag in ("td", "th"):
            self._write(" | ")
        elif tag == "tr" or tag == "br":
            self._write("\n")
        elif tag == "hr" or tag in BLOCKS:
            self._write("\n\n")

    def handle_endtag(self, tag: str) -> None:
        if tag == "title" or (tag == "h1" and self._naming == "h1"):
            self._naming = None
        if self._hidden:
            if tag == self._hidden:
                self._hidden_depth -= 1
                self._hidden = self._hidden if self._hidden_depth else ""
            return
        if tag in HEADINGS or (tag in BLOCKS and tag not in ("li", "td", "th", "tr")):
            self._write("\n\n")
        if tag == "main":
            self._in_main = max(0, self._in_main - 1)
        if tag == "pre":
            self._in_pre = max(0, self._in_pre - 1)

    def handle_data(self, data: str) -> None:
        if self._naming == "title":
            self._titles["title"].append(data)
        if self._hidden:
            return
        if self._naming == "h1":
            self._titles["h1"].append(data)
        self._write(data if self._in_pre else _SPACES.sub(" ", data))

    def _write(self, text: str) -> None:
        self._whole.append(text)
        if self._in_main:
            self._main.append(text)

    def _note_meta(self, attributes: dict[str, str]) -> None:
        name = (attributes.get("name") or attributes.get("property") or attributes.get("http-equiv") or "").lower()
        if name in TIMES or name == "author":
            self.meta.setdefault(name, attributes.get("content", "").strip()[:200])
