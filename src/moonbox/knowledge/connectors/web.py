"""The web connector: listed pages, and those of sitemaps."""

from __future__ import annotations

import json
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import unquote, urldefrag, urlsplit

from moonbox.config.reader import CLOSED, positive
from moonbox.errors import ConfigError, MoonboxError
from moonbox.knowledge.connectors.files import Globs, document_item
from moonbox.knowledge.connectors.site import MAX_UNPACKED, Fetch, Fetcher, Response, Robots, read_sitemap
from moonbox.knowledge.errors import KnowledgeError
from moonbox.knowledge.extract.extractor import Extractor
from moonbox.knowledge.extract.formats import Unreadable, kind_of, kind_of_type
from moonbox.knowledge.records import Failed, Skipped, Total, Unchanged

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from moonbox.knowledge.records import Scanned

__all__ = ["Web", "WebOptions"]

MAX_SITEMAPS = 50
GONE = (404, 410)


@dataclass(frozen=True, kw_only=True)
class WebOptions:
    """Pages by URL: those in `urls`, and those that the `sitemaps` list of their own hosts."""

    __pydantic_config__: ClassVar = CLOSED

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
        positive("max_pages", self.max_pages)
        positive("max_page_size", self.max_page_size)
        positive("timeout", self.timeout)
        positive("concurrency", self.concurrency)
        Globs(self.include, self.exclude).check()


class Web:
    """The connector; pages are fetched with `fetch`, by default a small client of our own."""

    def __init__(self, options: WebOptions, *, fetch: Fetch | None = None) -> None:
        self.options, self._fetch = options, fetch

    def scan(self, known: Mapping[str, str]) -> Iterator[Scanned]:
        options = self.options
        with ExitStack() as stack:
            fetch = self._fetch or stack.enter_context(self._fetcher(options.max_page_size))
            listing = self._fetch or stack.enter_context(self._fetcher(MAX_UNPACKED))
            extractor = stack.enter_context(Extractor())
            skipped: list[Scanned] = []
            pages = self._pages(listing, skipped)
            yield Total(len(pages) + len(skipped))
            yield from skipped
            robots = Robots(fetch) if options.robots else None
            for url, result in _fetched(pages, known, fetch, robots, options.concurrency):
                yield result if not isinstance(result, Response) else _scanned(url, result, extractor)

    def _fetcher(self, max_size: int) -> Fetcher:
        options = self.options
        return Fetcher(max_size=max_size, timeout=options.timeout, allow_private=options.allow_private)

    def _pages(self, fetch: Fetch, skipped: list[Scanned]) -> list[str]:
        globs = Globs(self.options.include, self.options.exclude)
        pages = dict.fromkeys(urldefrag(url).url for url in self.options.urls)
        for url, home in self._listed(fetch):
            origin = _origin(url)
            if origin is None or origin != home:
                skipped.append(Skipped(url, "on another host than the sitemap that lists it"))
            elif globs.chooses(unquote(urlsplit(url).path).lstrip("/") or "index.html"):
                pages.setdefault(urldefrag(url).url)
        for url in list(pages)[self.options.max_pages :]:
            skipped.append(Skipped(url, f"more than max_pages = {self.options.max_pages:,}"))
        return list(pages)[: self.options.max_pages]

    def _listed(self, fetch: Fetch) -> Iterator[tuple[str, str | None]]:
        """Every page of every sitemap, with the sitemap's host. Failing here fails the scan: nothing is removed."""
        waiting, seen = deque((url, _origin(url)) for url in self.options.sitemaps), set(self.options.sitemaps)
        while waiting:
            url, home = waiting.popleft()
            try:
                response = fetch(url, {})
                if response.status != 200:
                    raise KnowledgeError(f"the server responded with status {response.status}")
                sitemap = read_sitemap(response)
            except (MoonboxError, OSError) as error:
                raise KnowledgeError(f"cannot read the sitemap {url}: {error}") from error
            for page in sitemap.pages:
                yield page, home
            for further in sitemap.sitemaps:
                if further not in seen and _origin(further) == home and len(seen) < MAX_SITEMAPS:
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
    ahead: deque[tuple[str, Future[Response | Scanned]]] = deque()
    try:
        for url in pages:
            ahead.append((url, executor.submit(get, url)))
            if len(ahead) > concurrency * 2:
                first, future = ahead.popleft()
                yield first, future.result()
        while ahead:
            first, future = ahead.popleft()
            yield first, future.result()
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
    try:
        extracted = extractor.extract(response.body, kind, _charset(content_type))
    except Unreadable as error:
        return Skipped(url, str(error)) if error.expected else Failed(url, str(error))
    modified = _http_time(response.headers.get("last-modified"))
    return document_item(extracted, url, response.url, extracted.updated_at or modified, _fingerprint(response))


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


def _charset(content_type: str) -> str | None:
    for parameter in content_type.split(";")[1:]:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            return value.strip().strip("\"'")
    return None


def _origin(url: str) -> str | None:
    """Scheme, host and port of a URL; None when it is invalid."""
    try:
        parts = urlsplit(url)
        return f"{parts.scheme}://{parts.hostname}:{parts.port}" if parts.hostname else None
    except ValueError:
        return None
