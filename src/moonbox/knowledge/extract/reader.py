"""The chores that read files: PDF, HTML, Word, PowerPoint, Excel and EPUB here, others with `plain`.

Of HTML they keep the visible text, with headings, lists, tables and code as Markdown writes them.
"""

from __future__ import annotations

import importlib
import io
import logging
import pkgutil
import posixpath
import re
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

from moonbox.knowledge.extract import plain
from moonbox.knowledge.extract.formats import Extracted, Kind, Unreadable
from moonbox.knowledge.text import clean_line

MAX_PDF_PAGES = 3_000
MOST_FILES = 5_000
"""Of one book."""
_CONTAINER = "META-INF/container.xml"
_HEADING = re.compile(r"(?:Heading|Title)(?: (\d))?$")
# Nothing can be imported inside the jail, and codecs are imported when they are first asked for.
_CODECS = (
    *plain.CODECS, "ascii", "charmap", "latin_1", "utf_8_sig", "utf_16", "utf_32", "utf_7", "unicode_escape",
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
        body = plain.bounded(filter(None, texts), "\n\n")
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
        case "robots":
            plain.allows(b"", "")
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
    """A chore that answers the fields of `Extracted`; a reader of `text` gets it decoded."""

    def chore(_: None, data: bytes, charset: str | None = None) -> dict[str, Any]:
        try:
            if read is read_html:
                charset = charset or plain.declared_charset(data)
            return asdict(read(plain.decode(data, charset) if text else data))
        except Unreadable as error:
            return asdict(Extracted("", error=str(error), expected=error.expected))
        except (MemoryError, RecursionError):
            raise
        except Exception as error:  # noqa: BLE001 - a parser may raise anything on a damaged file; the answer reports it
            return asdict(Extracted("", error=f"the file is damaged ({type(error).__name__}: {error})"[:300]))

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


def read_docx(data: bytes) -> Extracted:
    """Paragraphs and tables in their order, with headings and lists as Markdown writes them."""
    import docx

    document = docx.Document(io.BytesIO(data))
    return _described(document, plain.bounded(_blocks(document), "\n\n"))


def read_pptx(data: bytes) -> Extracted:
    """A section for each slide, with its texts, tables and notes."""
    import pptx

    presentation = pptx.Presentation(io.BytesIO(data))
    return _described(presentation, plain.bounded(_slides(presentation), "\n\n"))


def read_xlsx(data: bytes) -> Extracted:
    """A section for each sheet, and a line for each row, with the values that were last computed."""
    import openpyxl

    book = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
    parts = (part for sheet in book.worksheets for part in (f"## {clean_line(sheet.title)}", *_rows(sheet)))
    about = book.properties
    return Extracted(
        plain.bounded(parts), title=about.title or "", author=about.creator or None, updated_at=_time(about)
    )


def read_epub(data: bytes) -> Extracted:
    """The chapters in the order of the book."""
    with zipfile.ZipFile(io.BytesIO(data)) as book:
        package = _xml(book, _CONTAINER).find(".//{*}rootfile")
        path = package.get("full-path", "") if package is not None else ""
        root = _xml(book, path)
        files = {item.get("id"): item.get("href", "") for item in root.iterfind(".//{*}manifest/{*}item")}
        order = [files.get(item.get("idref"), "") for item in root.iterfind(".//{*}spine/{*}itemref")]
        names = {posixpath.join(posixpath.dirname(path), unquote(name)) for name in files.values()} & {*book.namelist()}
        chapters = (posixpath.normpath(posixpath.join(posixpath.dirname(path), unquote(name))) for name in order)
        kept = [name for name in chapters if name in names][:MOST_FILES]
        body = plain.bounded((read_html(book.read(name).decode("utf-8", "replace")).text for name in kept), "\n\n")
        said = {name: clean_line(root.findtext(f".//{{*}}metadata/{{*}}{name}") or "") for name in ("title", "creator")}
    return Extracted(body, title=said["title"], author=said["creator"] or None)


def samples() -> dict[Kind, bytes]:
    """Small files, which load all that the libraries need."""
    import docx
    import openpyxl
    import pptx

    files: dict[Kind, Any] = {"docx": docx.Document(), "pptx": pptx.Presentation(), "xlsx": openpyxl.Workbook()}
    files["docx"].add_heading("A")
    files["docx"].add_table(1, 2)
    slide = files["pptx"].slides.add_slide(files["pptx"].slide_layouts[0])
    slide.shapes.title.text = slide.notes_slide.notes_text_frame.text = "A"
    slide.shapes.add_table(1, 2, 0, 0, 9, 9)
    files["xlsx"].active.append(["A", 1.5])
    buffers: dict[Kind, io.BytesIO] = {kind: io.BytesIO() for kind in files}
    for kind, file in files.items():
        file.save(buffers[kind])
    return {kind: buffer.getvalue() for kind, buffer in buffers.items()}


def _described(file: Any, body: str) -> Extracted:
    about = file.core_properties
    return Extracted(body, title=about.title or "", author=about.author or None, updated_at=_time(about))


def _time(about: Any) -> str | None:
    return about.modified.isoformat() if about.modified is not None else None


def _blocks(document: Any) -> Iterator[str]:
    for block in document.iter_inner_content():
        if hasattr(block, "rows"):
            yield "\n".join(plain.table([cell.text for cell in row.cells] for row in block.rows))
            continue
        text, style = block.text.strip(), (block.style.name if block.style is not None else "") or ""
        if text and (heading := _HEADING.match(style)):
            text = f"{'#' * min(int(heading[1] or 1), 6)} {clean_line(text)}"
        if text:
            yield f"- {text}" if style.startswith("List") else text


def _slides(presentation: Any) -> Iterator[str]:
    for number, slide in enumerate(presentation.slides, 1):
        title = slide.shapes.title
        yield f"## {clean_line(title.text) if title is not None and title.text else f'Slide {number}'}"
        yield from _shapes(slide.shapes, title)
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
            yield slide.notes_slide.notes_text_frame.text


def _shapes(shapes: Any, title: Any) -> Iterator[str]:
    for shape in shapes:
        if hasattr(shape, "shapes"):
            yield from _shapes(shape.shapes, title)
        elif (
            shape.has_text_frame
            and shape.text_frame.text.strip()
            and (title is None or shape.shape_id != title.shape_id)
        ):
            yield shape.text_frame.text
        elif getattr(shape, "has_table", False):
            yield "\n".join(plain.table([cell.text for cell in row.cells] for row in shape.table.rows))


def _rows(sheet: Any) -> Iterator[str]:
    sheet.reset_dimensions()  # what the file says of its size may be wrong
    return plain.table(sheet.iter_rows(values_only=True))


def _xml(book: zipfile.ZipFile, name: str) -> ElementTree.Element:
    if name not in book.namelist():
        raise Unreadable("the book has no list of its contents")
    return ElementTree.fromstring(book.read(name))


CHORES: dict[str, Callable[..., Any]] = {
    "text": _chore(lambda text: Extracted(text, markdown=False), text=True),
    "markdown": _chore(plain.read_markdown, text=True),
    "rst": _chore(plain.read_rst, text=True),
    "csv": _chore(plain.read_csv, text=True),
    "html": _chore(read_html, text=True),
    "pdf": _chore(read_pdf),
    "docx": _chore(read_docx),
    "pptx": _chore(read_pptx),
    "xlsx": _chore(read_xlsx),
    "epub": _chore(read_epub),
    "sitemap": lambda _, body: plain.read_sitemap(body),
    "robots": lambda _, body, url: plain.allows(body, url),
}
