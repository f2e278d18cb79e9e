"""Settings of host functions that the host chooses: what they may spend, and how http requests are made."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from moonbox._version import __version__
from moonbox.errors import UsageError

if TYPE_CHECKING:
    import ssl

    from moonbox.net.addresses import Resolver

__all__ = ["HostLimits", "HttpOptions"]

MB = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLimits:
    """Bounds of the host functions of one HostApi; sizes are bytes, times are seconds."""

    http_timeout: float = 30.0
    """A whole http call, redirects included, when the script gives no timeout."""
    max_http_timeout: float = 120.0
    """The longest timeout that a script may choose."""
    max_redirects: int = 10
    max_request: int = 10 * MB
    max_response: int = 10 * MB
    """Of the body, after decompression."""
    max_headers: int = 64_000
    """Of all request headers together; a response may have about 100 kB."""
    max_file: int = 10 * MB
    """One read, one write."""
    max_written: int = 100 * MB
    """All writes of one HostApi together."""
    max_entries: int = 10_000
    """Of one folder listing."""
    max_text: int = 10 * MB
    """Any text or data given to a function that computes (base64, crypto, csv, regex, url)."""
    max_cells: int = 500_000
    """Fields of one CSV text, or of the matches of one regex call."""
    max_parsed: int = 50 * MB
    """Characters in the rows of one parsed CSV text, with the column names that each row repeats."""
    max_matches: int = 10_000
    """Matches of one regex call."""
    max_regex_work: int = 400 * MB
    """Text size times compiled pattern size of one match (more with many groups); each takes RE2 up to 9 ns."""
    regex_seconds: float = 2.0
    """Of one regex call that looks for several matches."""
    max_sleep: float = 30.0
    max_random: int = 65_536
    max_log_records: int = 1_000
    max_log_message: int = 10_000

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            whole = field.type == "int"
            if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
                wanted = "a whole number" if whole else "a number of seconds"
                raise UsageError(f"HostLimits.{field.name} must be {wanted}, not {value!r}")
            if not 0 <= value < float("inf"):
                raise UsageError(f"HostLimits.{field.name} must be at least 0, not {value!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpOptions:
    """How http requests are made. Proxies and other settings of the environment are never used."""

    resolver: Resolver | None = None
    """Name resolution; the system's by default."""
    ssl_context: ssl.SSLContext | None = None
    """Certificates to trust; the system's and certifi's by default."""
    secrets_over_plain_http: bool = False
    """Send secrets without TLS to hosts by name. Local addresses need no such permission."""
    user_agent: str = f"moonbox/{__version__}"
