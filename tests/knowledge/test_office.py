"""Office files, books and tables: their text, and files that mean harm."""

from __future__ import annotations

import io
import zipfile
from typing import TYPE_CHECKING, Any

import pytest

from moonbox import Sandbox
from moonbox.knowledge import KnowledgeBase
from moonbox.knowledge.base import knowledge_tools
from moonbox.knowledge.connectors.filesystem import Filesystem
from moonbox.knowledge.extract.extractor import Extractor
from moonbox.knowledge.extract.formats import Unreadable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

docx = pytest.importorskip("docx")
pptx = pytest.importorskip("pptx")
openpyxl = pytest.importorskip("openpyxl")


@pytest.fixture(scope="module")
def extractor() -> Iterator[Extractor]:
    with Extractor() as extractor:
        yield extractor


def saved(file: Any) -> bytes:
    buffer = io.BytesIO()
    file.save(buffer)
    return buffer.getvalue()


def packed(files: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def letter() -> bytes:
    document = docx.Document()
    document.core_properties.title, document.core_properties.author = "Travel rules", "Ada"
    document.add_heading("Travel", 1)
    document.add_paragraph("Trains are booked by the office.")
    document.add_paragraph("A hotel costs 120 euros.", style="List Bullet")
    table = document.add_table(2, 2)
    for at, text in enumerate(("City", "Limit", "Bern", "150")):
        table.cell(at // 2, at % 2).text = text
    document.add_heading("Money", 2)
    return saved(document)


def test_a_letter(extractor: Extractor) -> None:
    found = extractor.extract(letter(), "docx")
    assert found.text == (
        "# Travel\n\nTrains are booked by the office.\n\n- A hotel costs 120 euros.\n\n"
        "City | Limit\nCity: Bern; Limit: 150\n\n## Money"
    )
    assert (found.title, found.author, found.markdown) == ("Travel rules", "Ada", True)


def test_slides(extractor: Extractor) -> None:
    slides = pptx.Presentation()
    slide = slides.slides.add_slide(slides.slide_layouts[1])
    slide.shapes.title.text = "Plans"
    slide.placeholders[1].text = "Open in Bern"
    slide.notes_slide.notes_text_frame.text = "Ask Grace"
    slides.slides.add_slide(slides.slide_layouts[6])
    assert extractor.extract(saved(slides), "pptx").text == "## Plans\n\nOpen in Bern\n\nAsk Grace\n\n## Slide 2"


def test_sheets(extractor: Extractor) -> None:
    book = openpyxl.Workbook()
    book.active.title = "Prices"
    for row in (["Product", "Price"], ["Rope", 12.5], [None, None], ["Sail", 90]):
        book.active.append(row)
    book.create_sheet("Notes").append(["only one cell"])
    text = extractor.extract(saved(book), "xlsx").text
    prices = "Product | Price\nProduct: Rope; Price: 12.5\nProduct: Sail; Price: 90"
    assert text == f"## Prices\n{prices}\n## Notes\nonly one cell"


def test_a_book(extractor: Extractor) -> None:
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/">'
        "<dc:title>Sea</dc:title><dc:creator>Ada</dc:creator></metadata><manifest>"
        '<item id="b" href="two%20.xhtml"/><item id="a" href="one.xhtml"/><item id="x" href="../../etc/passwd"/>'
        '</manifest><spine><itemref idref="a"/><itemref idref="x"/><itemref idref="b"/></spine></package>'
    )
    container = (
        '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        '<rootfile full-path="in/book.opf"/></rootfiles></container>'
    )
    data = packed(
        {
            "META-INF/container.xml": container,
            "in/book.opf": package,
            "in/one.xhtml": "<h1>One</h1><p>First.</p>",
            "in/two .xhtml": "<h1>Two</h1><p>Second.</p>",
        }
    )
    found = extractor.extract(data, "epub")
    assert (found.text, found.title, found.author) == ("# One\n\nFirst.\n\n# Two\n\nSecond.", "Sea", "Ada")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("name,city\nAda,Bern\nGrace,Rom\n", "name | city\nname: Ada; city: Bern\nname: Grace; city: Rom"),
        ("name;city\nAda;Bern\n", "name | city\nname: Ada; city: Bern"),
        ("1,2\n3,4\n", "1 | 2\n3 | 4"),
        ("no table at all", "no table at all"),
        ("", ""),
    ],
)
def test_tables(extractor: Extractor, data: str, text: str) -> None:
    assert extractor.extract(data.encode(), "csv").text == text


@pytest.mark.parametrize("kind", ["docx", "pptx", "xlsx", "epub"])
@pytest.mark.parametrize(
    "data", [b"", b"PK\x03\x04", b"no archive", packed({"a": "b"}), packed({"[Content_Types].xml": "<a>"})]
)
def test_damaged_files(extractor: Extractor, kind: Any, data: bytes) -> None:
    with pytest.raises(Unreadable, match=r"damaged|no list of its contents") as caught:
        extractor.extract(data, kind)
    assert not caught.value.expected


def bomb() -> bytes:
    """A letter of a few megabytes whose text is one of two gigabytes."""
    source, buffer = zipfile.ZipFile(io.BytesIO(letter())), io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name in source.namelist():
            if name != "word/document.xml":
                archive.writestr(name, source.read(name))
        with archive.open("word/document.xml", "w", force_zip64=True) as file:
            file.write(source.read("word/document.xml").partition(b"</w:body>")[0] + b"<w:p><w:r><w:t>")
            for _ in range(700):
                file.write(b"x" * 1_000_000)
    return buffer.getvalue()


def test_a_bomb_costs_one_document(tmp_path: Path) -> None:
    (tmp_path / "bomb.docx").write_bytes(bomb())
    (tmp_path / "letter.docx").write_bytes(letter())
    with KnowledgeBase(tmp_path / "k.db", sources={"docs": Filesystem(path=tmp_path)}) as base:
        report = base.sync("docs")
        assert (report.added, report.problem_count) == (1, 1)
        assert "MB" in report.problems[0].message or "damaged" in report.problems[0].message
        assert [hit.title for hit in base.search("trains")] == ["Travel rules"]


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Привет, как дела? Сегодня хорошая погода, и мы пойдём гулять.", "koi8-r"),
        ("Привет, как дела? Сегодня хорошая погода, и мы пойдём гулять.", "cp1251"),
        ("東京は日本の首都です。人口はとても多いです。", "shift_jis"),
        ("서울은 대한민국의 수도입니다. 인구가 아주 많다.", "euc_kr"),
        ("Die Größe der Bäume über dem Fluß, müßig und schön. " * 9, "cp1252"),
    ],
)
def test_an_unknown_encoding_is_found(extractor: Extractor, text: str, encoding: str) -> None:
    assert extractor.extract(text.encode(encoding), "text").text == text


@pytest.mark.parametrize("data", [bytes(range(1, 256)) * 20, b"\x01\x02\xff\xfe\x9d" * 50])
def test_junk_is_skipped(extractor: Extractor, data: bytes) -> None:
    with pytest.raises(Unreadable, match="no text in any known encoding") as caught:
        extractor.extract(data, "text")
    assert caught.value.expected


def test_every_file_that_is_not_taken_is_counted_by_reason(tmp_path: Path) -> None:
    for name in ("a.md", "b.png", "c.png", ".env", "LICENSE", "node_modules/x.md", ".git/config", "drafts/d.md"):
        (tmp_path / "docs" / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / "docs" / name).write_text("text")
    with KnowledgeBase(
        tmp_path / "k.db", sources={"docs": Filesystem(path=tmp_path / "docs", exclude=("drafts/*.md",))}
    ) as base:
        report = base.sync("docs")
    assert (report.added, report.skipped) == (1, 7)
    assert set(report.notes) == {
        "2 skipped: not in include: *.png",
        "2 skipped: the name begins with a dot",
        "1 skipped: not in include: no ending",
        "1 skipped: a folder in exclude",
        "1 skipped: in exclude",
    }


def test_a_search_says_which_sources_have_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "a.md").write_text("sails")
    sources = {name: Filesystem(path=tmp_path / name) for name in ("a", "b")}
    never = "the source 'b' has no documents; never synchronised; run: moonbox sync b"
    with KnowledgeBase(tmp_path / "k.db", sources=sources) as base:
        base.sync("a")
        assert base.search("sails").notes == base.search("rope").notes == (never,)
        assert base.search("sails", source="a").notes == ()
        assert base.sync("b").error is not None
        (note,) = base.search("rope").notes
        assert note.startswith("the source 'b' has no documents; the last scan failed: cannot read the folder ")
        with Sandbox(tools=knowledge_tools(base)) as box:
            run = box.run(
                'return #tools.search{query = "sails"}, select(2, pcall(tools.search, {query = "rope"})).message'
            )
    assert run.values == (1, f"nothing found; {note}")
