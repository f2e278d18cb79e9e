"""Text out of files: encodings, Markdown, HTML, PDF, and files that mean harm."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from moonbox.knowledge.extract.extractor import Extractor
from moonbox.knowledge.extract.formats import Unreadable, kind_of, kind_of_type
from moonbox.knowledge.extract.plain import declared_charset, decode, read_markdown, read_rst
from moonbox.knowledge.extract.reader import read_html

from .pdfs import pdf

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def extractor() -> Iterator[Extractor]:
    with Extractor() as extractor:
        yield extractor


@pytest.mark.parametrize(
    ("data", "charset", "text"),
    [
        (b"plain", None, "plain"),
        ("käse".encode(), None, "käse"),
        ("käse".encode("utf-8-sig"), None, "käse"),
        ("käse".encode("utf-16"), None, "käse"),
        ("käse".encode("utf-32"), None, "käse"),
        ("käse".encode("latin-1"), None, "käse"),
        ("“quotes” – käse".encode("cp1252"), None, "“quotes” – käse"),
        ("привет".encode("koi8-r"), "KOI8-R", "привет"),
        ("東京".encode("shift_jis"), "shift_jis", "東京"),
        ("käse".encode(), "utf-16le", "käse"),  # an odd number of bytes: the label is wrong
        ("日本語 ".encode() * 3 + b"\xff tail", None, "日本語 " * 3 + "\ufffd tail"),
        (b"abc", "zlib", "abc"),
        (b"abc", "punycode", "abc"),
        (b"abc", "no-such-thing", "abc"),
        (b"x" * 9000 + b"\0late", None, "x" * 9000 + "\0late"),
    ],
)
def test_encodings(data: bytes, charset: str | None, text: str) -> None:
    assert decode(data, charset) == text


def test_binary_data_is_no_text() -> None:
    with pytest.raises(Unreadable, match=r"^binary file$") as caught:
        decode(b"\x7fELF\0\0\0")
    assert caught.value.expected


def test_a_page_names_its_encoding() -> None:
    assert declared_charset(b'<html><meta charset="windows-1251">') == "windows-1251"
    assert declared_charset(b"<meta http-equiv=x content='text/html; charset=big5'>") == "big5"
    assert declared_charset(b"<meta name=charset>") is None


def test_kinds() -> None:
    assert [kind_of(name) for name in ("a.md", "A.HTML", "x.pdf", "Makefile", "b.py", "c.rst")] == [
        "markdown",
        "html",
        "pdf",
        "text",
        "text",
        "rst",
    ]
    types = ("text/html; charset=x", "text/markdown", "text/csv", "application/pdf", "image/png", "")
    assert [kind_of_type(name) for name in types] == ["html", "markdown", "csv", "pdf", None, None]


@pytest.mark.parametrize(
    ("text", "title", "body", "metadata"),
    [
        ("# A title #\n\ntext", "A title", "# A title #\n\ntext", None),
        ("Title\n===\n\ntext", "Title", "Title\n===\n\ntext", None),
        ("just text", "", "just text", None),
        ('---\ntitle: "From: front"\ntags: a, b\n---\n# Other\n', "From: front", "# Other\n", {"tags": "a, b"}),
        ("---\r\ntitle: Windows\r\n---\r\ntext", "Windows", "text", None),
        ('+++\ntitle = "Toml"\ndraft = true\n[extra]\na = 1\n+++\ntext', "Toml", "text", {"draft": "True"}),
        ("---\nnot closed\n", "", "---\nnot closed\n", None),
        ("+++\nnot toml\n+++\ntext", "", "+++\nnot toml\n+++\ntext", None),
        ("---\nnested:\n  title: no\nx: &anchor\n---\ntext", "", "text", None),
        ("---\ntitle:  \ndate: \t\nx: y\n---\ntext", "", "text", {"x": "y"}),
        (f"+++\nx = {'1' * 5000}\n+++\n", "", f"+++\nx = {'1' * 5000}\n+++\n", None),
        (f"+++\nx = 0x{'f' * 5000}\n+++\n", "", f"+++\nx = 0x{'f' * 5000}\n+++\n", None),
    ],
)
def test_markdown(text: str, title: str, body: str, metadata: dict[str, str] | None) -> None:
    found = read_markdown(text)
    assert (found.title, found.text, found.metadata) == (title, body, metadata)


@pytest.mark.parametrize(
    ("text", "title", "body"),
    [
        ("Title\n=====\n\ntext", "Title", "# Title\n\n\ntext"),
        ("=====\nTitle\n=====\n\nPart\n====\n\ntext", "Title", "# Title\n\n\n## Part\n\n\ntext"),
        ("*****\n Tit\n*****\n\nA\n~~~\n\nB\n^^^\n\nC\n~~~\n", "Tit", "# Tit\n\n\n## A\n\n\n### B\n\n\n## C\n\n"),
        ("Long title\n====\n\ntext", "", "Long title\n====\n\ntext"),
        ("text\n\n----\n\nmore", "", "text\n\n----\n\nmore"),
        ("=====  =====\na      b\n=====  =====\n1      2\n=====  =====\n", "", None),
        ("a\nb\n===\n", "", "a\nb\n===\n"),
        ("Code::\n\n   # a comment\n   x = 1\n", "", "Code::\n\n    # a comment\n   x = 1\n"),
        ("東京\n====\n\ntext", "東京", "# 東京\n\n\ntext"),
    ],
)
def test_restructured_text(text: str, title: str, body: str | None) -> None:
    extracted = read_rst(text)
    assert (extracted.title, extracted.text) == (title, text if body is None else body)


def test_front_matter_tells_author_and_date() -> None:
    found = read_markdown("---\nauthor: Ann\ndate: 2024-05-06\n---\n")
    assert (found.author, found.updated_at) == ("Ann", "2024-05-06T00:00:00Z")
    assert read_markdown("---\ndate: soon\n---\n").updated_at is None


PAGE = """<!doctype html><html><head><title>The &amp; title</title><style>p { color: red }</style>
<meta name="author" content="Ann"><meta property="article:modified_time" content="2024-05-06T07:08:09Z">
</head><body><nav><a href=/>home</a></nav><header>logo</header>
<main><h1>Heading <em>one</em></h1><p>First&nbsp;paragraph with <b>bold</b>
text.<br>Next line.<h2>Two</h2><ul><li>one<li>two <code>x</code></ul>
<pre>def f():
    return 1</pre><table><tr><th>a<th>b<tr><td>1<td>2</table><script>alert(1)</script></main>
<footer>imprint</footer></body></html>"""


def test_html() -> None:
    found = read_html(PAGE)
    assert found.text == (
        "# Heading one\n\nFirst paragraph with bold text.\nNext line.\n\n## Two\n\n- one\n- two x\n\n"
        "```\ndef f():\n    return 1\n```\n\n| a | b |\n| --- | --- |\n| 1 | 2 |"
    )
    assert (found.title, found.author, found.updated_at) == ("The & title", "Ann", "2024-05-06T07:08:09Z")


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("plain", "plain"),
        ("<p>a<p>b", "a\n\nb"),
        ("<head><title>t</title><body>no end of head", "no end of head"),
        ("<svg><svg></svg>hidden</svg>shown", "shown"),
        ("<script>if (a < b) { '</p>' }</script>shown", "shown"),
        ("a<!-- <p> hidden -->b", "ab"),
        ("&lt;script&gt;&#x41;&bogus;", "<script>A&bogus;"),
        ("</main></div></p>text", "text"),
        ("<h2>Setup<a class=headerlink href='#setup'>¶</a></h2>x <a href='#y'>see y</a>", "## Setup\n\nx see y"),
        ("menu<main class=x><div>a</div>b</main>footer", "a\n\nb"),
        ("<main>without an end", "without an end"),
        ("<ol><li>one<li>two<ul><li>in</ul></ol>", "1. one\n2. two\n   - in"),
        ("<a href='https://x.example'>a link</a> <img src=x alt=picture>", "a link"),
        ("<div role=navigation><ul><li>menu</ul></div>a<span aria-hidden=true>icon</span><div hidden>b</div>c", "ac"),
        ("<ul><li><p>one</p></li><li><p>two</p></li></ul>", "- one\n\n- two"),
        ("<table><tr><td><p>a</p></td><td><div>b<br>c</div></td></tr></table>d", "| a | b c |\n| --- | --- |\n\nd"),
        ("<pre># not a heading\n</pre>", "```\n# not a heading\n```"),
        ("<pre>```\ncode\n```</pre>after", "````\n```\ncode\n```\n````\n\nafter"),
        ("<pre>never closed", "```\nnever closed\n```"),
    ],
)
def test_html_of_all_sorts(page: str, text: str) -> None:
    assert read_html(page).text == text


def test_a_page_without_a_title_is_named_by_its_first_heading() -> None:
    assert read_html("<h2>No</h2><h1>A <b>bold</b> name</h1>").title == "A bold name"


def test_html_and_pdf_are_read_in_another_process(extractor: Extractor) -> None:
    assert extractor.extract(PAGE.encode(), "html").title == "The & title"
    cyrillic = '<meta charset="windows-1251"><p>привет'.encode("cp1251")
    assert extractor.extract(cyrillic, "html").text == "привет"
    found = extractor.extract(pdf("Hello PDF"), "pdf")
    assert (found.text, found.title, found.author, found.markdown) == ("Hello PDF", "The Title", "Ann", False)
    assert extractor.extract(pdf("By its first bytes"), "text").text == "By its first bytes"


def test_the_host_loads_no_parser() -> None:
    program = (
        "import sys; from moonbox.knowledge.extract.extractor import Extractor; e = Extractor(); "
        "print([e.extract(b'<p>x', kind).text for kind in ('html', 'markdown', 'rst', 'csv', 'text')]); "
        "print(e.sitemap(b'<urlset><url><loc>http://a</loc></url></urlset>'), e.allows(b'', 'http://a/')); e.close(); "
        "parsers = {'pypdf', 'html_to_markdown', 'csv', 'charset_normalizer', 'pyexpat', 'docx', 'openpyxl'}; "
        "parsers.add('urllib.robotparser'); "
        "print(parsers & set(sys.modules), 'moonbox.knowledge.extract.plain' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "['x', '<p>x', '<p>x', '<p>x', '<p>x']\n(['http://a'], []) True\nset() False\n"


@pytest.mark.parametrize(
    ("robots", "allowed"),
    [
        (b"", True),
        (b"User-agent: *\nDisallow: /a", False),
        (b"\xef\xbb\xbfUser-agent: *\r\nDisallow: /b\r\n", True),
        (b"User-agent: moonbox\nAllow: /a\n\nUser-agent: *\nDisallow: /", True),
        (b"User-agent: *\nDisallow: /" * 20_000, False),
        (b"User-agent: *\n" * 20_000 + b"Disallow: /x\n" * 20_000, True),
        (b"\0\xff\n" * 100_000, True),
    ],
)
def test_robots(extractor: Extractor, robots: bytes, allowed: bool) -> None:
    assert extractor.allows(robots, "https://a.example/a/page") is allowed


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"%PDF-1.4 nonsense", "the PDF is damaged: Stream has ended unexpectedly"),
        (pdf()[:150], "the PDF is damaged: "),
        (pdf(content=b""), "PDF without text (scanned pages?)"),
    ],
)
def test_broken_pdfs(extractor: Extractor, data: bytes, message: str) -> None:
    with pytest.raises(Unreadable) as caught:
        extractor.extract(data, "pdf")
    assert str(caught.value).startswith(message)


def test_a_pdf_that_unpacks_to_more_than_there_is(extractor: Extractor) -> None:
    """400 MB of nothing in 400 kB: refused by a limit, whichever comes first, and the next file is read."""
    bomb = pdf(content=b" " * 400_000_000, packed=True)
    assert len(bomb) < 500_000
    with pytest.raises(Unreadable):
        extractor.extract(bomb, "pdf")
    assert extractor.extract(pdf("still here"), "pdf").text == "still here"


def test_pdf_pages_that_lead_in_circles(extractor: Extractor) -> None:
    loop = pdf().replace(b"/Kids [3 0 R]", b"/Kids [2 0 R]")
    with pytest.raises(Unreadable):
        extractor.extract(loop, "pdf")


@pytest.mark.parametrize(
    "page",
    [b"<a " * 200_000, b"<!--" * 200_000, b"<main " * 200_000, b"<table><tr><td>" * 50_000, b"<ul><li>" * 50_000],
)
def test_hostile_html_is_read_to_a_bounded_depth(extractor: Extractor, page: bytes) -> None:
    assert len(extractor.extract(page, "html").text) < 1_000_000
    assert extractor.extract(b"<p>next", "html").text == "next"


def test_deep_html(extractor: Extractor) -> None:
    assert extractor.extract(b"<div>" * 900 + b"core", "html").text == "core"
    assert extractor.extract(b"<svg>" * 50_000 + b"</svg>" * 50_000 + b"core", "html").text == "core"


def test_a_missing_parser_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with Extractor() as extractor, pytest.raises(Unreadable) as caught:
        extractor.extract(b"<p>x", "html")
    assert str(caught.value) == "HTML files need the package html-to-markdown: pip install 'moonbox[web]'"


def test_a_file_that_takes_too_long_costs_one_file() -> None:
    with Extractor(seconds=0.5) as extractor:
        bomb = pdf(content=b"(x) Tj " * 2_000_000, packed=True)
        with pytest.raises(
            Unreadable, match=r"^reading the file (took longer than 0.5 seconds|needed more than 512 MB)$"
        ):
            extractor.extract(bomb, "pdf")
        assert extractor.extract(b"<p>two", "html").text == "two"
