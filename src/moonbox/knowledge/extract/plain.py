"""The text of plain files: encodings, Markdown, reStructuredText and tables of comma-separated values."""

from __future__ import annotations

import codecs
import csv
import io
import re
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import zip_longest
from typing import Any
from xml.etree import ElementTree

from moonbox.errors import UsageError
from moonbox.knowledge.extract.formats import Extracted, Unreadable
from moonbox.knowledge.records import time_or_none
from moonbox.knowledge.text import clean, clean_line

SNIFFED = 8_192
MAX_FRONT = 20_000
TITLE_SEARCHED = 4_000
MAX_CHARS = 10_000_000
"""Of one document."""
MAX_ENTRIES, MAX_ADDRESS = 50_000, 2_000
"""Of one sitemap."""

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
CODECS = (
    *("cp1250", "cp1251", "cp1252", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp932", "cp949", "gb18030"),
    *("big5", "euc_jp", "euc_kr", "iso2022_jp", "koi8_r", "mac_cyrillic", "shift_jis", "tis_620", "utf_16_be"),
    *("utf_16_le", "utf_32_be", "utf_32_le", "utf_8"),
)
"""The encodings that are looked for."""
FEWEST_DETECTED, MOST_DETECTED = 24, 50_000
"""The fewest bytes of non-ASCII text by which an encoding is detected, and the most bytes that are read for it."""
_CONTROLS = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_NO_TEXT = "no text in any known encoding"
# A page names its encoding, and Python's list has some that are not encodings of text (zlib) or are slow (punycode).
_ALLOWED = re.compile(
    r"utf-?8|utf-?16(-?[lb]e)?|(us-)?ascii|iso-?8859-?\d{1,2}|latin-?[1-9]|windows-?125\d|cp-?(125\d|437|850|866|932|949)"
    r"|shift[_-]?jis|euc-?(jp|kr)|iso-2022-jp|gb2312|gbk|gb18030|big5|koi8-?[ru]|mac-?(roman|intosh)|tis-620",
    re.IGNORECASE,
)
_DECLARED = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([a-zA-Z0-9_-]{1,40})", re.IGNORECASE)


def decode(data: bytes, charset: str | None = None) -> str:
    """The text in some bytes; raises Unreadable for binary data, and for what is no text in any encoding.

    A byte order mark decides, then the given charset, then UTF-8, then what charset-normalizer finds. A short text that
    is not UTF-8 is Windows-1252, unless a good part of it is UTF-8: then the rest is damage and becomes U+FFFD.
    """
    for mark, name in _BOMS:
        if data.startswith(mark):
            return data.decode(name, "replace")
    if b"\0" in data[:SNIFFED]:
        raise Unreadable("binary file", expected=True)
    if charset and _ALLOWED.fullmatch(charset.strip()):
        with suppress(UnicodeDecodeError, LookupError):  # the given charset may be wrong
            return data.decode(charset.strip().replace("macintosh", "mac-roman"))
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        repaired = data.decode("utf-8", "replace")
    damaged = repaired.count("\ufffd")
    sound = sum(character > "\x7f" for character in repaired) - damaged
    if sound * 4 >= damaged and (damaged < FEWEST_DETECTED or sound >= damaged):
        return repaired
    if len(_CONTROLS.findall(data, 0, SNIFFED)) * 50 > min(len(data), SNIFFED):
        raise Unreadable(_NO_TEXT, expected=True)
    if damaged < FEWEST_DETECTED:
        return data.decode("cp1252", "replace")
    import charset_normalizer

    lines = b"\n".join(line for line in data.split(b"\n") if not line.isascii())
    found = charset_normalizer.from_bytes(lines[:MOST_DETECTED], cp_isolation=list(CODECS)).best()
    if found is None:
        raise Unreadable(_NO_TEXT, expected=True)
    return data.decode(found.encoding, "replace")


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


def read_csv(text: str) -> Extracted:
    """A table of comma-separated values, with other marks between them too, as text."""
    csv.field_size_limit(MAX_CHARS)
    text = clean(text)
    try:
        dialect: Any = csv.Sniffer().sniff(text[:SNIFFED], ",;\t|")
    except csv.Error:
        dialect = csv.excel
    try:
        return Extracted(bounded(table(csv.reader(io.StringIO(text), dialect))), markdown=False)
    except csv.Error as error:
        raise Unreadable(f"the table is damaged: {error}") from None


def table(rows: Iterable[Iterable[Any]]) -> Iterator[str]:
    """A line for each row, with the names of the columns if the first row has such: a search finds a row alone."""
    names: list[str] | None = None
    for number, row in enumerate(rows):
        cells = ["" if cell is None else clean_line(str(cell)) for cell in row]
        if number == 0:
            whole = all(cells) and len({*cells}) == len(cells) > 1 and not any(map(_NUMBER.fullmatch, cells))
            names = cells if whole else None
        if names is None or number == 0:
            line = " | ".join(cells).strip(" |")
        else:
            line = "; ".join(f"{name}: {cell}" for name, cell in zip_longest(names, cells, fillvalue="") if cell)
        if line:
            yield line


def bounded(parts: Iterable[str], between: str = "\n") -> str:
    """The parts as one text, as many as there is room for."""
    kept, size = [], 0
    for part in parts:
        size += len(part) + len(between)
        if size > MAX_CHARS:
            break
        kept.append(part)
    return between.join(kept)


def read_sitemap(body: bytes) -> tuple[list[str], list[str]]:
    """The pages and the further sitemaps that a sitemap lists: XML, an index of sitemaps, or plain lines."""
    if not body.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
        lines = (line.strip() for line in body.decode("utf-8", "replace").splitlines())
        pages = [line for line in lines if line and len(line) <= MAX_ADDRESS][:MAX_ENTRIES]
        if not any(line.startswith(("http://", "https://")) for line in pages):
            raise UsageError("it is not a sitemap: no line is an address")
        return pages, []
    if b"<!DOCTYPE" in body:
        raise UsageError("the sitemap has a document type declaration, which is not allowed")
    try:
        root = ElementTree.fromstring(body)
    except ElementTree.ParseError as error:
        raise UsageError(f"the sitemap is not XML: {error}") from None
    kind = _local(root.tag)
    if kind not in ("urlset", "sitemapindex"):
        raise UsageError(f"it is not a sitemap, but <{kind[:40]}>")
    found: dict[str, list[str]] = {"sitemap": [], "url": []}
    for entry in root:
        for part in entry:
            address = (part.text or "").strip()
            if _local(part.tag) == "loc" and 0 < len(address) <= MAX_ADDRESS:
                found["sitemap" if _local(entry.tag) == "sitemap" else "url"].append(address)
    return found["url"][:MAX_ENTRIES], found["sitemap"][:MAX_ENTRIES]


def allows(robots: bytes, url: str) -> bool:
    """Whether a site's robots.txt allows moonbox a page."""
    from urllib.robotparser import RobotFileParser  # it loads much

    rules = RobotFileParser()
    rules.parse(robots.decode("utf-8", "replace").splitlines())
    return rules.can_fetch("moonbox", url)


def _local(tag: str) -> str:
    return tag.rpartition("}")[2]


_NUMBER = re.compile(r"[-+\d.,: /%]*")
