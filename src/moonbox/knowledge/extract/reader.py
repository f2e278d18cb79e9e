"""The chores that read files.

Of HTML they keep the visible text, with headings, lists, tables and code as Markdown writes them.
"""

from __future__ import annotations

import importlib
import io
import logging
import pkgutil
import re
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from moonbox.knowledge.extract.formats import Extracted, ReadDocument, Unreadable
from moonbox.knowledge.extract.office import read_docx, read_epub, read_pptx, read_xlsx, samples
from moonbox.knowledge.extract.plain import (
    CODECS,
    bounded,
    declared_charset,
    decode,
    read_csv,
    read_markdown,
    read_rst,
    read_sitemap,
)

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_PDF_PAGES = 3_000
# Nothing can be imported inside the jail, and codecs are imported when they are first asked for.
_CODECS = (
    *CODECS, "ascii", "charmap", "latin_1", "utf_8_sig", "utf_16", "utf_32", "utf_7", "unicode_escape",
    "raw_unicode_escape", "cp437", "cp850", "cp866", "cp936", "cp950", "mac_roman", "mac_greek", "koi8_u", "idna",
    "iso8859_1", "iso8859_2", "iso8859_5", "iso8859_15", "gb2312", "gbk", "big5hkscs", "johab",
)  # fmt: skip
EXCLUDED = (
    "canvas", "iframe", "math", "nav", "noscript", "object", "select", "svg", "template", "textarea",
    "[role=navigation]", "[role=search]", "[role=contentinfo]", "[aria-hidden=true]", "[hidden]",
    # Links from a heading to itself, as generators of documentation write them.
    ".headerlink", ".header-anchor", ".hash-link", ".anchor-link",
)  # fmt: skip
UNMARKED = ("a", "abbr", "b", "cite", "code", "del", "em", "i", "ins", "kbd", "mark", "s", "samp", "strong", "u", "var")
"""Elements whose text stays without a mark of Markdown: marks would get in the way of a search."""
TIMES = ("article-modified_time", "article-published_time", "dcterms_modified", "date")


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
        texts = (page.extract_text().strip() for page in reader.pages[:MAX_PDF_PAGES])
        body = bounded(filter(None, texts), "\n\n")
    except PyPdfError as error:
        raise Unreadable(f"the PDF is damaged: {error}") from None
    if not body:
        raise Unreadable("PDF without text (scanned pages?)", expected=True)
    return Extracted(
        text=body, title=str(about.get("/Title") or ""), author=str(about.get("/Author") or "") or None, markdown=False
    )


def load(reader: str) -> None:
    """Load what reads such files, and what that loads when it is used."""
    for name in _CODECS:
        with suppress(ImportError, LookupError):
            importlib.import_module(f"encodings.{name}")
            "".encode(name)
    match reader:
        case "plain":
            CHORES["text"](None, ("Größe, Höhe, Übermaß und Süße. " * 9).encode("cp1252"))
        case "html" | "epub":
            read_html("<p>x")
        case "office":
            for kind, data in samples().items():
                CHORES[kind](None, data)
        case "pdf":
            import pypdf

            for module in pkgutil.walk_packages(pypdf.__path__, "pypdf."):
                with suppress(ImportError):
                    importlib.import_module(module.name)


def _chore(read: Callable[..., Extracted], *, text: bool = False) -> Callable[..., dict[str, Any]]:
    """A chore that answers what `ReadDocument` has, or why there is none; a reader of `text` gets it decoded."""

    def chore(_: None, data: bytes, charset: str | None = None) -> dict[str, Any]:
        try:
            if read is read_html:
                charset = charset or declared_charset(data)
            return asdict(ReadDocument(read(decode(data, charset) if text else data)))
        except Unreadable as error:
            return asdict(ReadDocument(error=str(error), expected=error.expected))
        except (MemoryError, RecursionError):
            raise
        except Exception as error:  # noqa: BLE001 - a parser may raise anything on a damaged file; the answer reports it
            return asdict(ReadDocument(error=f"the file is damaged ({type(error).__name__}: {error})"[:300]))

    return chore


def read_html(page: str) -> Extracted:
    """The text that a reader sees: of the main part where there is one, without scripts, styles and navigation.

    Needs html-to-markdown, which reads broken pages in a bounded time and to a bounded depth.
    """
    from html_to_markdown import ConversionOptions, convert

    start, end = _MAIN.search(page), page.rfind("</main")
    main = page[start.start() : end] if start is not None and end > start.start() else page
    options = ConversionOptions(
        extract_metadata=False,
        bullets="-",
        autolinks=False,
        skip_images=True,
        strip_tags=list(UNMARKED),
        exclude_selectors=list(EXCLUDED),
    )
    text = "\n".join(line.rstrip() for line in (convert(main, options).content or "").split("\n"))
    found = convert(page).metadata
    about = found.document
    tags = {name.lower(): value for name, value in about.meta_tags.items()}
    headings = (heading.text.replace("*", "") for heading in found.headers if heading.level == 1)
    return Extracted(
        text.strip(),
        title=" ".join((about.title or next(headings, "")).split()),
        author=about.author,
        updated_at=next((tags[name].strip()[:200] for name in TIMES if name in tags), None),
    )


_MAIN = re.compile(r"<main[\s>]", re.IGNORECASE)

CHORES: dict[str, Callable[..., Any]] = {
    "text": _chore(lambda text: Extracted(text, markdown=False), text=True),
    "markdown": _chore(read_markdown, text=True),
    "rst": _chore(read_rst, text=True),
    "csv": _chore(read_csv, text=True),
    "html": _chore(read_html, text=True),
    "pdf": _chore(read_pdf),
    "docx": _chore(read_docx),
    "pptx": _chore(read_pptx),
    "xlsx": _chore(read_xlsx),
    "epub": _chore(lambda data: read_epub(data, read_html)),
    "sitemap": lambda _, body: read_sitemap(body),
}
