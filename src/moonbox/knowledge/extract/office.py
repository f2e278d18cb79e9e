"""Text of office files and books: Word, PowerPoint, Excel and EPUB."""

from __future__ import annotations

import io
import posixpath
import re
import zipfile
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote
from xml.etree import ElementTree

from moonbox.knowledge.extract.formats import Extracted, Unreadable
from moonbox.knowledge.extract.plain import bounded, table
from moonbox.knowledge.text import clean_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from moonbox.knowledge.extract.formats import Kind

MOST_FILES = 5_000
"""Of one book."""
_CONTAINER = "META-INF/container.xml"
_HEADING = re.compile(r"(?:Heading|Title)(?: (\d))?$")


def read_docx(data: bytes) -> Extracted:
    """Paragraphs and tables in their order, with headings and lists as Markdown writes them."""
    import docx

    document = docx.Document(io.BytesIO(data))
    return _described(document, bounded(_blocks(document), "\n\n"))


def read_pptx(data: bytes) -> Extracted:
    """A section for each slide, with its texts, tables and notes."""
    import pptx

    presentation = pptx.Presentation(io.BytesIO(data))
    return _described(presentation, bounded(_slides(presentation), "\n\n"))


def read_xlsx(data: bytes) -> Extracted:
    """A section for each sheet, and a line for each row, with the values that were last computed."""
    import openpyxl

    book = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
    parts = (part for sheet in book.worksheets for part in (f"## {clean_line(sheet.title)}", *_rows(sheet)))
    about = book.properties
    return Extracted(bounded(parts), title=about.title or "", author=about.creator or None, updated_at=_time(about))


def read_epub(data: bytes, read_html: Callable[[str], Extracted]) -> Extracted:
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
        body = bounded((read_html(book.read(name).decode("utf-8", "replace")).text for name in kept), "\n\n")
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
            yield "\n".join(table([cell.text for cell in row.cells] for row in block.rows))
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
            yield "\n".join(table([cell.text for cell in row.cells] for row in shape.table.rows))


def _rows(sheet: Any) -> Iterator[str]:
    sheet.reset_dimensions()  # what the file says of its size may be wrong
    return table(sheet.iter_rows(values_only=True))


def _xml(book: zipfile.ZipFile, name: str) -> ElementTree.Element:
    if name not in book.namelist():
        raise Unreadable("the book has no list of its contents")
    return ElementTree.fromstring(book.read(name))
