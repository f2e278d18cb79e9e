"""The web connector: listed pages and those of sitemaps, fetched with the bounded client as robots.txt allows."""

from __future__ import annotations

import json
import re
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from email.message import Message
from email.utils import parsedate_to_datetime
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING
from urllib.parse import unquote, urldefrag, urlsplit

from moonbox._version import __version__
from moonbox.config.reader import positive, settings_model
from moonbox.errors import ConfigError, MoonboxError
from moonbox.knowledge.connectors.filesystem import Globs, read_item
from moonbox.knowledge.extract.extractor import Extractor
from moonbox.knowledge.extract.formats import Unreadable, kind_of, kind_of_type
from moonbox.knowledge.records import Failed, KnowledgeError, Scanned, Skipped, Total, Unchanged
from moonbox.net.addresses import InvalidURL, NetError, parse_target
from moonbox.net.client import Client, PublicAddresses, Request, Response, read_body

if TYPE_CHECKING:
    Fetch = Callable[[str, Mapping[str, str]], Response]

MAX_SITEMAPS = 50
GONE = (404, 410)
_ELSEWHERE = "on another host than the sitemap that lists it"
_HEADERS = {"user-agent": f"moonbox/{__version__}", "accept": "text/html, text/plain, application/pdf, */*;q=0.5"}
MAX_UNPACKED = 50_000_000
MAX_LISTED = 100_000_000
MAX_ROBOTS = 500_000


@settings_model
class Web:
    """Pages by URL: those in `urls`, and those that the `sitemaps` list of their own hosts."""

    urls: tuple[str, ...] = ()
    """URLs of pages."""
    sitemaps: tuple[str, ...] = ()
    """URLs of sitemaps: XML, an index, or plain lines; compressed with gzip or not."""
    include: tuple[str, ...] = ("**",)
    """Globs of the paths to take from sitemaps, without the first slash; the path of a site's root is index.html."""
    exclude: tuple[str, ...] = ()
    """Globs of the paths to leave out."""
    max_pages: int = 1_000
    """How many pages are taken at most; the others are reported."""
    max_page_size: int = 5_000_000
    """In bytes; larger pages are skipped and reported."""
    timeout: float = 30.0
    """Seconds for one page."""
    concurrency: int = 4
    """Pages fetched at the same time."""
    robots: bool = True
    """Whether robots.txt is followed."""
    allow_private: bool = False
    """Whether private and loopback addresses are fetched."""

    def __post_init__(self) -> None:
        if not self.urls and not self.sitemaps:
            raise ConfigError("a web source needs urls or sitemaps")
        for url in (*self.urls, *self.sitemaps):
            if not url.startswith(("http://", "https://")) or _origin(url) is None:
                raise ConfigError(f"{url!r} is not an http or https URL")
        for name in ("max_pages", "max_page_size", "timeout", "concurrency"):
            positive(name, getattr(self, name))
        Globs(self.include, self.exclude)

    def scan(self, known: Mapping[str, str]) -> Iterator[Scanned]:
        addresses = PublicAddresses(self.allow_private)
        with Client(addresses, extra="web", purpose="a web source") as client, Extractor() as extractor:
            fetch = partial(fetch_page, client, self.timeout, self.max_page_size)
            skipped: list[Scanned] = []
            pages = self._pages(partial(fetch_page, client, self.timeout, MAX_UNPACKED), extractor, skipped)
            yield Total(len(pages) + len(skipped))
            yield from skipped
            robots = Robots(fetch, extractor) if self.robots else None
            for url, result in _fetched(pages, known, fetch, robots, self.concurrency):
                yield result if not isinstance(result, Response) else _scanned(url, result, extractor)

    def _pages(self, fetch: Fetch, extractor: Extractor, skipped: list[Scanned]) -> list[str]:
        globs = Globs(self.include, self.exclude)
        pages = dict.fromkeys(urldefrag(url).url for url in self.urls)
        for url, home in self._listed(fetch, extractor, skipped):
            origin = _origin(url)
            if origin is None or origin != home:
                skipped.append(Skipped(url, _ELSEWHERE))
            elif globs.chooses(unquote(urlsplit(url).path).lstrip("/") or "index.html"):
                pages.setdefault(urldefrag(url).url)
        skipped += globs.missed()
        for url in list(pages)[self.max_pages :]:
            skipped.append(Skipped(url, f"more than max_pages = {self.max_pages:,}"))
        return list(pages)[: self.max_pages]

    def _listed(self, fetch: Fetch, extractor: Extractor, skipped: list[Scanned]) -> Iterator[tuple[str, str | None]]:
        """Every page of every sitemap, with the sitemap's host. Failing here fails the scan: nothing is removed."""
        waiting, seen = deque((url, _origin(url)) for url in self.sitemaps), set(self.sitemaps)
        size = 0
        while waiting:
            url, home = waiting.popleft()
            try:
                response = fetch(url, {})
                if response.status != 200:
                    raise KnowledgeError(f"the server responded with status {response.status}")
                body = response.body
                if body.startswith(b"\x1f\x8b"):
                    body = read_body([body], "gzip", MAX_UNPACKED)
                listed, others = extractor.sitemap(body)
            except (MoonboxError, OSError, Unreadable) as error:
                raise KnowledgeError(f"cannot read the sitemap {url}: {error}") from error
            size += sum(map(len, (*listed, *others)))
            if size > MAX_LISTED:
                raise KnowledgeError(f"the sitemaps list more than {MAX_LISTED:,} bytes of addresses")
            for page in listed:
                yield page, home
            for further in others:
                if _origin(further) != home:
                    skipped.append(Skipped(further, _ELSEWHERE))
                elif further not in seen and len(seen) >= MAX_SITEMAPS:
                    skipped.append(Skipped(further, f"more than {MAX_SITEMAPS} sitemaps"))
                elif further not in seen:
                    seen.add(further)
                    waiting.append((further, home))


def _fetched(
    pages: list[str], known: Mapping[str, str], fetch: Fetch, robots: Robots | None, concurrency: int
) -> Iterator[tuple[str, Response | Scanned]]:
    """The pages in order, some of them fetched ahead."""

    def get(url: str) -> Response | Scanned:
        try:
            if robots is not None and not robots.allow(url):
                return Skipped(url, "not allowed by robots.txt")
            return fetch(url, _conditions(known.get(url)))
        except (MoonboxError, OSError) as error:
            return Failed(url, str(error))

    executor = ThreadPoolExecutor(max(1, concurrency), thread_name_prefix="moonbox-fetch")
    left = iter(pages)
    try:
        ahead = deque((url, executor.submit(get, url)) for url in islice(left, concurrency * 2))
        while ahead:
            ahead.extend((url, executor.submit(get, url)) for url in islice(left, 1))
            url, future = ahead.popleft()
            yield url, future.result()
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


def _scanned(url: str, response: Response, extractor: Extractor) -> Scanned:
    if response.status == 304:
        return Unchanged(url)
    if response.status in GONE:
        return Skipped(url, "not found (404 or 410)")
    if response.status != 200:
        return Failed(url, f"the server responded with status {response.status}")
    content_type = response.headers.get("content-type", "")
    kind = kind_of_type(content_type) if content_type else kind_of(urlsplit(url).path)
    if kind is None:
        return Skipped(url, f"content type {content_type.partition(';')[0][:60]}")
    modified, message = _http_time(response.headers.get("last-modified")), Message()
    message["content-type"] = content_type[:1_000]
    charset = message.get_content_charset()
    return read_item(
        extractor, response.body, kind, url, response.url, _fingerprint(response), charset=charset, modified=modified
    )


def _conditions(fingerprint: str | None) -> dict[str, str]:
    if fingerprint is None:
        return {}
    etag, modified = json.loads(fingerprint)
    headers = {"if-none-match": etag, "if-modified-since": modified}
    return {name: value for name, value in headers.items() if value}


def _fingerprint(response: Response) -> str | None:
    etag, modified = response.headers.get("etag"), response.headers.get("last-modified")
    fingerprint = json.dumps([etag, modified])
    return fingerprint if (etag or modified) and len(fingerprint) < 1_000 else None


def _http_time(value: str | None) -> float | None:
    try:
        return parsedate_to_datetime(value).timestamp() if value else None
    except (ValueError, OverflowError, IndexError):
        return None


def _origin(url: str) -> str | None:
    """Scheme, host and port of a URL; None when it is invalid."""
    try:
        parts = urlsplit(url)
        return f"{parts.scheme}://{parts.hostname}:{parts.port}" if parts.hostname else None
    except ValueError:
        return None


def fetch_page(client: Client, timeout: float, max_size: int, url: str, headers: Mapping[str, str]) -> Response:
    """A page, bounded in size and time; raises NetError."""
    given = tuple((name, value.encode()) for name, value in {**_HEADERS, **headers}.items())
    try:
        return client.send(Request(parse_target(_ascii(url)), headers=given), timeout=timeout, max_bytes=max_size)
    except NetError as problem:
        advice = " (set allow_private to fetch it)" if problem.code == "not_allowed" else ""
        raise NetError(problem.message + advice, code=problem.code) from None


def _ascii(url: str) -> str:
    """Encode a URL that a person wrote: an international host name, spaces in the path."""
    scheme, slashes, rest = url.partition("://")
    end = re.search(r"[/?#]|$", rest)
    assert end is not None  # the end of the text always matches
    authority, path = rest[: end.start()], rest[end.start() :]
    if not authority.isascii():
        try:
            authority = authority[:300].encode("idna").decode()
        except UnicodeError:
            raise InvalidURL(url, "the host is not a valid international name") from None
    return f"{scheme}{slashes}{authority}{path.replace(' ', '%20')}"


class Robots:
    """The rules of the hosts that a scan visits, each fetched once."""

    def __init__(self, fetch: Fetch, extractor: Extractor) -> None:
        self._fetch, self._extractor = fetch, extractor
        self._lock = threading.Lock()
        self._rules: dict[str, bytes | str] = {}

    def allow(self, url: str) -> bool:
        """Whether a page may be fetched; raises KnowledgeError when the site's rules cannot be read."""
        parts = urlsplit(url)
        origin = f"{parts.scheme}://{parts.netloc}"
        with self._lock:
            if origin not in self._rules:
                self._rules[origin] = self._read(origin)
            rules = self._rules[origin]
        try:
            if isinstance(rules, bytes):
                return not rules or self._extractor.allows(rules, url)
        except Unreadable as error:
            rules = str(error)
        raise KnowledgeError(f"cannot read robots.txt: {rules}")

    def _read(self, origin: str) -> bytes | str:
        """The rules, or why there are none that can be followed."""
        try:
            response = self._fetch(origin + "/robots.txt", {})
        except (MoonboxError, OSError) as error:
            return str(error)
        if response.status >= 500:
            return f"the server responded with status {response.status}"
        return response.body[:MAX_ROBOTS] if response.status == 200 else b""  # no such file means no rules
