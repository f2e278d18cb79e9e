"""Robots.txt: what a site asks programs to leave alone."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.robotparser import RobotFileParser

from moonbox.errors import MoonboxError
from moonbox.knowledge.connectors.fetching import FetchError

if TYPE_CHECKING:
    from moonbox.knowledge.connectors.fetching import Fetch

__all__ = ["Robots"]

MAX_SIZE = 500_000


class Robots:
    """The rules of the hosts that a scan visits, each fetched once."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self._lock = threading.Lock()
        self._rules: dict[str, RobotFileParser | str] = {}

    def allow(self, url: str) -> bool:
        """Whether a page may be fetched; raises FetchError when the site's rules cannot be had."""
        parts = urlsplit(url)
        home = f"{parts.scheme}://{parts.netloc}"
        with self._lock:
            if home not in self._rules:
                self._rules[home] = self._read(home)
            rules = self._rules[home]
        if isinstance(rules, str):
            raise FetchError(f"robots.txt could not be read: {rules}")
        return rules.can_fetch("moonbox", url)

    def _read(self, home: str) -> RobotFileParser | str:
        rules = RobotFileParser()
        try:
            response = self._fetch(home + "/robots.txt", {})
        except (MoonboxError, OSError) as error:
            return str(error)
        if response.status >= 500:
            return f"the server answered {response.status}"
        # No such file means no rules.
        lines = response.body[:MAX_SIZE].decode("utf-8", "replace").splitlines() if response.status == 200 else []
        rules.parse(lines)
        return rules
