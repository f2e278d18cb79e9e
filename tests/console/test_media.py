"""Images, sounds and files in a real browser: what tools return and scripts show; hostile ones too."""

from __future__ import annotations

import base64
import re
import struct
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from moonbox import Media, tool
from tests.long import only_long

from .serving import running_console
from .test_attacks import intact, unfold

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Locator, Page

    from .conftest import Visitor
    from .serving import Console

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
SAMPLES = bytes(8000)
SOUND = (
    b"RIFF" + struct.pack("<I", 36 + len(SAMPLES)) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 8000, 1, 8)
)
SOUND += b"data" + struct.pack("<I", len(SAMPLES)) + SAMPLES
DRAWING = b'<svg xmlns="http://www.w3.org/2000/svg" width="20" height="10"><rect width="20" height="10"/></svg>'
SCRIPTED = (
    b'<svg xmlns="http://www.w3.org/2000/svg" width="20" height="10" onload="parent.hacked=1;top.hacked=1">'
    b'<script>top.hacked = 1; fetch("http://elsewhere.invalid/")</script>'
    b'<image href="http://elsewhere.invalid/x.png" width="5" height="5"/>'
    b'<foreignObject width="20" height="10"><iframe xmlns="http://www.w3.org/1999/xhtml" src="/console/runs"/>'
    b"</foreignObject></svg>"
)
PAGE = b'<!doctype html><script>window.hacked = 1; top.hacked = 1</script><b id="hacked">taken over</b>'
NAMED = "<img src=x onerror=window.hacked=1>.png"


@tool
def chart() -> Media:
    """A picture."""
    return Media(PIXEL, "image/png", "chart.png")


@tool
def report() -> dict[str, Any]:
    """A picture, a sound and a file among other data."""
    return {
        "title": "the week",
        "parts": [Media(SOUND, name="talk.wav"), Media(b"a,b\n1,2\n", "text/csv", "rows.csv")],
        "drawing": Media(DRAWING, "image/svg+xml", "plan.svg"),
    }


@tool
def hostile(kind: str) -> Media:
    """Something that wants to be run."""
    return {
        "scripted drawing": Media(SCRIPTED, "image/svg+xml", "drawing.svg"),
        "page": Media(PAGE, "text/html", "page.html"),
        "page that is called a picture": Media(PAGE, "image/png", "page.png"),
        "picture that goes on as a page": Media(PIXEL + PAGE, "image/gif", "both.html"),
        "script": Media(b"window.hacked = 1", "text/javascript", "run.js"),
        "page that is called a sound": Media(PAGE, "audio/mpeg", "page.mp3"),
        "name": Media(PIXEL, "image/png", NAMED),
        "direction of a name": Media(PIXEL, "image/png", "\u202egnp.exe"),
        "long name": Media(b"x", "application/pdf", "n" * 5000 + ".pdf"),
    }[kind]


HOSTILE = (
    "scripted drawing",
    "page",
    "page that is called a picture",
    "picture that goes on as a page",
    "script",
    "page that is called a sound",
    "name",
    "direction of a name",
    "long name",
)
FORGED = {
    "address of a page": "{media = 'moonbox://media/../console/runs', type = 'image/png'}",
    "address elsewhere": "{media = 'http://elsewhere.invalid/x.png', type = 'image/png'}",
    "code as an address": "{media = 'javascript:window.hacked=1', type = 'text/html', name = 'x'}",
    "other types": "{media = 'moonbox://media/AAAA', type = {1}, name = {2}, size = {3}}",
    "code in a type": "{media = 'moonbox://media/AAAA', type = 'image/png\" onerror=\"window.hacked=1', size = 1e300}",
    "prototype as a type": "{media = 'moonbox://media/AAAA', type = '__proto__', name = '__proto__', size = -1}",
    "drawing within": f"'data:image/svg+xml;base64,{base64.b64encode(SCRIPTED).decode()}'",
    "page within": f"'data:text/html;base64,{base64.b64encode(PAGE).decode()}'",
    "page within, as bytes": f"{{mimeType = 'text/html', data = '{base64.b64encode(PAGE).decode()}'}}",
}


@pytest.fixture(scope="module")
def console() -> Iterator[Console]:
    with running_console([chart, report, hostile]) as running:
        yield running


def run(page: Page, source: str) -> None:
    page.locator("#editor textarea").fill(source)
    page.click("#run")
    expect(page.locator("#status")).to_have_class(re.compile("good|bad"))


def drawn(image: Locator) -> None:
    expect(image).to_be_visible()
    expect(image).to_have_js_property("complete", True)
    assert image.evaluate("image => image.decode().then(() => image.naturalWidth)") > 0


def test_a_picture_that_a_tool_returned_is_drawn_and_downloaded(page: Page) -> None:
    run(page, "return tools.chart{}")
    drawn(page.locator("#values img.medium"))
    expect(page.locator("#values figcaption")).to_contain_text("chart.png · image/png · 70 B")
    with page.expect_download() as download:
        page.locator("#values").get_by_role("link", name="Download").click()
    assert download.value.suggested_filename == "chart.png"
    assert download.value.path().read_bytes() == PIXEL
    page.locator("#values").get_by_role("button", name="Tree").click()
    drawn(page.locator("#values .tree img.medium"))


def test_media_within_data_are_shown_where_they_are(page: Page) -> None:
    run(page, "return tools.report{}")
    drawn(page.locator("#values img.medium"))
    sound = page.locator("#values audio")
    expect(sound).to_be_visible()
    expect(sound).to_have_js_property("duration", 1)
    with page.expect_download() as download:
        page.locator("#values .leaf", has_text="rows.csv").get_by_role("link", name="Download").click()
    assert download.value.path().read_bytes() == b"a,b\n1,2\n"
    run(page, "return {tools.chart{}, tools.chart{}}")
    expect(page.locator("#values .gallery img")).to_have_count(2)


def test_what_a_script_shows_stands_below_its_value_and_in_what_the_model_sees(page: Page) -> None:
    run(page, "show(tools.chart{})\nlocal c = tools.chart{}\nshow(c)\nreturn c")
    shown = page.get_by_role("region", name="Shown")
    expect(shown.locator("img")).to_have_count(1)
    drawn(shown.locator("img"))
    expect(page.locator("#values img")).to_have_count(2)
    expect(page.locator("#output")).to_contain_text("[chart.png: image/png, 70 bytes]")
    page.get_by_role("tab", name="Model sees").click()
    expect(page.locator("#model")).to_contain_text("and 2 media:")
    expect(page.locator("#model img")).to_have_count(2)
    page.get_by_role("link", name="Open the record").click()
    expect(page.get_by_role("region", name="Shown").locator("img")).to_have_count(1)
    drawn(page.locator("#values img").first)


def test_a_call_whose_result_was_not_returned_shows_it_too(page: Page) -> None:
    run(page, "tools.chart{} return 1")
    page.locator("#timeline .tl-row").hover()
    drawn(page.locator(".tl-card img.medium"))


def test_a_tool_that_is_called_from_its_form_shows_its_picture(visitor: Visitor, console: Console) -> None:
    page = visitor.enter(console, "tools/chart")
    page.click("#send")
    drawn(page.locator("#result img.medium"))


def test_what_is_no_longer_kept_is_named(page: Page, visitor: Visitor) -> None:
    visitor.allowed = ("status of 404",)
    run(
        page,
        "return {media = 'moonbox://media/AAAAAAAAAAAAAAAAAAAAAA', type = 'image/png', name = 'old.png', size = 7}",
    )
    expect(page.locator("#values figcaption")).to_contain_text("old.png · image/png · 7 B")
    expect(page.locator("#values figcaption")).to_contain_text("no longer kept")
    expect(page.locator("#values img")).to_have_count(0)


@only_long
def test_two_hundred_pictures_stay_usable(page: Page) -> None:
    page.get_by_text("Other limits").click()
    page.locator("#limits input[name=max_tool_calls]").fill("300")
    run(page, "local all = {} for n = 1, 200 do all[n] = tools.chart{} end return all")
    expect(page.locator("#values .gallery img")).to_have_count(200)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_hostile_media_are_only_media(page: Page, console: Console) -> None:
    kinds = ", ".join(f"'{kind}'" for kind in HOSTILE)
    run(
        page,
        f"local values = {{}}\nfor _, kind in ipairs{{{kinds}}} do\n  local m = tools.hostile{{kind = kind}}\n"
        "  show(m)\n  table.insert(values, {m, m})\n  table.insert(values, {deep = {m}})\nend\n"
        "return table.unpack(values)",
    )
    expect(page.locator("#status")).to_contain_text("ok")
    unfold(page)
    page.get_by_role("tab", name="Model sees").click()
    intact(page)
    page.get_by_role("tab", name="Result").click()
    page.get_by_role("link", name="Open the record").click()
    expect(page.locator("#values a[download]").first).to_be_visible()
    unfold(page)
    intact(page)
    addresses = {link.get_attribute("href") for link in page.locator("#values a[download]").all()}
    assert len(addresses) == len(HOSTILE)
    for address in addresses:
        headers = page.request.get(f"{console.url}{address}").headers
        assert headers["content-security-policy"] == "default-src 'none'; sandbox"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["content-type"].startswith(("image/", "audio/", "application/octet-stream"))
        assert "svg" not in headers["content-type"] or headers["content-disposition"].startswith("attachment")


def test_forged_handles_reach_nothing(page: Page, visitor: Visitor) -> None:
    visitor.allowed = ("status of 404",)
    run(
        page,
        f"local values = {{}}\nfor _, m in ipairs{{{', '.join(FORGED.values())}}} do\n  show(m)\n"
        "  table.insert(values, m)\n  table.insert(values, {m, {m}})\nend\nreturn table.unpack(values)",
    )
    expect(page.locator("#status")).to_contain_text("ok")
    expect(page.locator("#values")).to_contain_text(f"value {2 * len(FORGED)}")
    unfold(page)
    intact(page)
    for link in page.locator("#values a").all():
        assert re.fullmatch(r"/media/[\w-]+", link.get_attribute("href") or "")


def test_a_page_among_the_media_is_never_opened_as_one(page: Page, console: Console) -> None:
    run(page, "return tools.hostile{kind = 'page'}")
    address = page.locator("#values a[download]").get_attribute("href")
    with page.expect_download() as download:
        page.evaluate("address => location.assign(address)", address)
    assert download.value.suggested_filename == "page.html"
    intact(page)
    stranger = page.context.browser
    assert stranger is not None
    other = stranger.new_context()
    assert other.request.get(f"{console.url}{address}").status == 401
    other.close()
