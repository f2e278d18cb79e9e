"""The web connector against a real server on loopback."""

from __future__ import annotations

import gzip
import threading
from typing import TYPE_CHECKING, Any

import pytest

from moonbox.errors import ConfigError
from moonbox.knowledge import Failed, Item, KnowledgeBase, KnowledgeError, Skipped, Total
from moonbox.knowledge.connectors import web
from moonbox.knowledge.connectors.web import Web

from .pdfs import pdf

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from .conftest import Site


def scan(site: Site, *paths: str, known: dict[str, str] | None = None, **more: Any) -> list[Any]:
    urls = tuple(site.url + path for path in paths)
    source = Web(**{"urls": urls, "allow_private": True, **more})
    return [one for one in source.scan(known or {}) if not isinstance(one, Total)]


def sitemap(*addresses: str, kind: str = "url") -> str:
    entries = "".join(f"<{kind}><loc>{address}</loc></{kind}>" for address in addresses)
    outer = "urlset" if kind == "url" else "sitemapindex"
    return f'<?xml version="1.0"?><{outer} xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</{outer}>'


def test_pages_of_every_kind(site: Site) -> None:
    site.put("/page", "<title>Page</title><p>Hello", last_modified="Mon, 06 May 2024 07:08:09 GMT")
    site.put("/notes.md", "# Notes\n\ntext", "text/markdown; charset=utf-8")
    site.put("/latin", "käse".encode("latin-1"), 'text/plain; charset="iso-8859-1"')
    site.put("/doc", pdf("From a PDF"), "application/pdf")
    site.put("/image", b"\x89PNG", "image/png")
    page, notes, latin, doc, image = scan(site, "/page", "/notes.md", "/latin", "/doc", "/image")
    assert (page.source_id, page.source_url, page.title) == (f"{site.url}/page", f"{site.url}/page", "Page")
    assert (page.body, page.updated_at) == ("Hello", "2024-05-06T07:08:09Z")
    assert (notes.title, notes.format) == ("Notes", "markdown")
    assert (latin.body, latin.title, latin.format) == ("käse", "latin", "text")
    assert doc.body == "From a PDF"
    assert image == Skipped(f"{site.url}/image", "content type image/png")


def test_only_changed_pages_are_sent_again(site: Site, store: Path) -> None:
    def tagged(headers: Mapping[str, str], _: bytes) -> tuple[int, dict[str, str], bytes]:
        if headers.get("if-none-match") == '"v1"':
            return 304, {}, b""
        return 200, {"content-type": "text/plain", "etag": '"v1"'}, b"tagged text"

    def dated(headers: Mapping[str, str], _: bytes) -> tuple[int, dict[str, str], bytes]:
        if headers.get("if-modified-since"):
            return 304, {}, b""
        return 200, {"content-type": "text/plain", "last-modified": "Mon, 06 May 2024 07:08:09 GMT"}, b"dated text"

    site.pages.update({"/tagged": tagged, "/dated": dated})
    site.put("/plain", "plain text", "text/plain")
    urls = tuple(site.url + path for path in ("/tagged", "/dated", "/plain"))
    source = Web(urls=urls, allow_private=True)
    with KnowledgeBase(store, sources={"site": source}) as base:
        assert base.sync("site").added == 3
        assert base.sync("site").unchanged == 3
        assert len(base.search("text")) == 3
        site.put("/plain", "other words", "text/plain")
        report = base.sync("site")
        assert (report.updated, report.unchanged) == (1, 2)


def test_what_becomes_of_pages_that_fail(site: Site, store: Path) -> None:
    for path in ("/a", "/b", "/c"):
        site.put(path, f"text of {path}", "text/plain")
    source = Web(urls=tuple(site.url + path for path in ("/a", "/b", "/c")), allow_private=True)
    with KnowledgeBase(store, sources={"site": source}) as base:
        base.sync("site")
        site.pages["/a"] = (500, {}, b"")
        site.pages["/b"] = (410, {}, b"")
        report = base.sync("site")
        assert [(p.source_id, p.message) for p in report.problems] == [
            (f"{site.url}/a", "the server responded with status 500")
        ]
        assert (report.removed, report.documents) == (1, 2)
        assert report.notes == ("1 skipped: not found (404 or 410)",)


def test_redirects_are_followed_and_checked(site: Site) -> None:
    site.pages["/old"] = (302, {"location": "/new"}, b"")
    site.pages["/loop"] = (302, {"location": "/loop"}, b"")
    site.pages["/file"] = (302, {"location": "file:///etc/passwd"}, b"")
    site.pages["/login"] = (302, {"location": "http://user:secret@127.0.0.1/"}, b"")
    site.put("/new", "moved", "text/plain")
    old, *others = scan(site, "/old", "/loop", "/file", "/login")
    assert (old.source_id, old.source_url, old.body) == (f"{site.url}/old", f"{site.url}/new", "moved")
    assert [one.message for one in others] == [
        f"more than 5 redirects; the last one leads to {site.url}/loop",
        "127.0.0.1 redirects to an invalid URL 'file:///etc/passwd': the scheme must be http or https, not file",
        (
            "127.0.0.1 redirects to an invalid URL 'http://user:secret@127.0.0.1/': "
            "it must not contain a user name or password"
        ),
    ]


@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.1:1/",
        "http://[::ffff:127.0.0.1]:1/",
        "http://10.0.0.1/",
        "http://169.254.169.254/latest/meta-data/",
        "http://2130706433:1/",
        "http://168.63.129.16/",
    ],
)
def test_private_addresses_are_refused(address: str) -> None:
    source = Web(urls=(address,), robots=False)
    (failed,) = [one for one in source.scan({}) if not isinstance(one, Total)]
    assert isinstance(failed, Failed)
    assert failed.message.endswith(
        "; only public addresses are allowed (set allow_private to fetch it)"
    ) or failed.message.startswith(f"invalid URL '{address}': invalid host ")


def test_pages_are_bounded(site: Site) -> None:
    site.put("/large", "x" * 2000, "text/plain")
    bomb = gzip.compress(b"x" * 50_000_000)
    site.put("/bomb", bomb, "text/plain", content_encoding="gzip")
    site.put("/packed", gzip.compress(b"small"), "text/plain", content_encoding="gzip")
    site.put("/odd", b"...", "text/plain", content_encoding="br")
    site.put("/lies", b"not gzip", "text/plain", content_encoding="gzip")
    large, bombed, packed, odd, lies = scan(site, "/large", "/bomb", "/packed", "/odd", "/lies", max_page_size=1000)
    assert (large.message, bombed.message) == ("the response is larger than 1,000 bytes",) * 2
    assert packed.body == "small"
    assert odd.message == "the response has the unexpected encoding 'br'"
    assert lies.message == "the response is not valid gzip data"


def test_a_server_that_does_not_answer(site: Site) -> None:
    release = threading.Event()

    def slow(headers: Mapping[str, str], _: bytes) -> tuple[int, dict[str, str], bytes]:
        release.wait(30)
        return 200, {}, b""

    site.pages["/slow"] = slow
    (failed,) = scan(site, "/slow", timeout=0.2, robots=False)
    release.set()
    assert failed.message == "127.0.0.1 did not answer within 0.2 seconds"


def test_sitemaps(site: Site) -> None:
    url = site.url
    for path in ("/a", "/b", "/c", "/private/d", "/e"):
        site.put(path, f"text of {path}", "text/plain")
    site.put("/index.xml", sitemap(f"{url}/one.xml", f"{url}/two.xml.gz", "http://elsewhere.org/x.xml", kind="sitemap"))
    site.put("/one.xml", sitemap(f"{url}/a", f"{url}/a#part", f"{url}/private/d", "http://elsewhere.org/x"))
    site.put("/two.xml.gz", gzip.compress(sitemap(f"{url}/b").encode()), "application/gzip")
    site.put("/lines.txt", f"{url}/c\n\n{url}/e\n", "text/plain")
    scanned = scan(site, sitemaps=(f"{url}/index.xml", f"{url}/lines.txt"), exclude=("private/",), max_pages=3)
    assert [one.source_id for one in scanned if isinstance(one, Item)] == [f"{url}/c", f"{url}/e", f"{url}/a"]
    assert [one for one in scanned if isinstance(one, Skipped)] == [
        Skipped("http://elsewhere.org/x.xml", "on another host than the sitemap that lists it"),
        Skipped("http://elsewhere.org/x", "on another host than the sitemap that lists it"),
        Skipped("private/d", "in exclude"),
        Skipped(f"{url}/b", "more than max_pages = 3"),
    ]


DOCTYPE = "the sitemap has a document type declaration, which is not allowed"
LAUGHS = """<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]>
<urlset><url><loc>http://x/&b;</loc></url></urlset>"""


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (LAUGHS, DOCTYPE),
        (
            '<!DOCTYPE x SYSTEM "file:///etc/passwd"><urlset/>',
            DOCTYPE,
        ),
        ("<urlset>", "the sitemap is not XML: "),
        ("<urlset>" * 1000, "the sitemap is not XML: "),
        ("<html><body>Please log in</body></html>", "it is not a sitemap, but <html>"),
        ("Please log in", "it is not a sitemap: no line is an address"),
        ("", "it is not a sitemap: no line is an address"),
        (b"\x1f\x8bnot gzip", "the response is not valid gzip data"),
    ],
)
def test_hostile_sitemaps_fail_the_scan(site: Site, body: str | bytes, message: str) -> None:
    site.put("/sitemap.xml", body)
    with pytest.raises(KnowledgeError) as caught:
        scan(site, sitemaps=(f"{site.url}/sitemap.xml",))
    assert str(caught.value).startswith(f"cannot read the sitemap {site.url}/sitemap.xml: {message}")


def test_a_sitemap_that_unpacks_to_too_much(site: Site) -> None:
    site.put("/sitemap.xml", gzip.compress(b" " * 60_000_000))
    with pytest.raises(KnowledgeError, match=r": the response is larger than 50,000,000 bytes$"):
        scan(site, sitemaps=(f"{site.url}/sitemap.xml",))


def test_sitemaps_that_list_too_much(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fifty sitemaps of 50 MB each could fill the memory."""
    monkeypatch.setattr(web, "MAX_LISTED", 100)
    parts = [f"{site.url}/{number}.xml" for number in range(5)]
    site.put("/index.xml", sitemap(*parts, kind="sitemap"))
    for part in parts:
        site.put(part.removeprefix(site.url), sitemap(f"{part}/a", f"{part}/b"))
    with pytest.raises(KnowledgeError, match=r"^the sitemaps list more than 100 bytes of addresses$"):
        scan(site, sitemaps=(f"{site.url}/index.xml",))
    assert len(site.asked()) < len(parts)


def test_more_sitemaps_than_are_read_are_reported(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "MAX_SITEMAPS", 2)
    site.put("/index.xml", sitemap(f"{site.url}/one.xml", f"{site.url}/two.xml", kind="sitemap"))
    site.put("/one.xml", sitemap())
    scanned = scan(site, sitemaps=(f"{site.url}/index.xml",))
    assert Skipped(f"{site.url}/two.xml", "more than 2 sitemaps") in scanned


def test_a_sitemap_that_is_not_there_removes_nothing(site: Site, store: Path) -> None:
    site.put("/a", "text", "text/plain")
    site.put("/sitemap.xml", sitemap(f"{site.url}/a"))
    source = Web(sitemaps=(f"{site.url}/sitemap.xml",), allow_private=True)
    with KnowledgeBase(store, sources={"site": source}) as base:
        assert base.sync("site").added == 1
        del site.pages["/sitemap.xml"]
        report = base.sync("site")
        assert report.error == f"cannot read the sitemap {site.url}/sitemap.xml: the server responded with status 404"
        assert report.documents == 1


def test_robots_are_obeyed(site: Site) -> None:
    site.put("/robots.txt", "User-agent: *\nDisallow: /private\n", "text/plain")
    site.put("/private/x", "hidden", "text/plain")
    site.put("/open", "shown", "text/plain")
    private, public = scan(site, "/private/x", "/open")
    assert private == Skipped(f"{site.url}/private/x", "not allowed by robots.txt")
    assert public.body == "shown"
    assert site.asked() == ["/open"]
    assert scan(site, "/private/x", robots=False)[0].body == "hidden"
    site.pages["/robots.txt"] = (503, {}, b"")
    assert scan(site, "/open") == [
        Failed(f"{site.url}/open", "cannot read robots.txt: the server responded with status 503")
    ]


def test_no_credentials_or_cookies_are_sent(site: Site) -> None:
    site.put("/a", "a", "text/plain", set_cookie="id=1")
    site.put("/b", "b", "text/plain")
    scan(site, "/a", "/b", concurrency=1)
    for _, headers in site.requests:
        assert "cookie" not in headers
        assert "authorization" not in headers
        assert headers["host"] == site.url.removeprefix("http://")
        assert headers["user-agent"].startswith("moonbox/")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "a web source needs urls or sitemaps"),
        ({"urls": ("ftp://x",)}, "'ftp://x' is not an http or https URL"),
        ({"urls": ("http://[bad",)}, "'http://[bad' is not an http or https URL"),
        ({"urls": ("http://x",), "max_pages": 0}, "max_pages must be more than 0, not 0"),
        ({"urls": ("http://x",), "timeout": float("inf")}, "timeout must be more than 0, not inf"),
    ],
)
def test_options_that_are_wrong(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Web(**options)
    assert str(caught.value) == message
