"""Errors of requests to other machines."""

from __future__ import annotations

from moonbox.errors import MoonboxError

__all__ = ["InvalidURL", "NetError"]


class NetError(MoonboxError):
    """A request that could not be made or answered.

    `code` is one of: connection, timeout, tls, protocol, redirects, too_large, not_allowed, secret_refused,
    invalid_url.
    """

    def __init__(self, message: str, *, code: str, retryable: bool = False) -> None:
        self.message, self.code, self.retryable = message, code, retryable
        super().__init__(message)


class InvalidURL(NetError):
    """A URL that is not valid, or that two programs could read differently."""

    def __init__(self, url: str, reason: str) -> None:
        excerpt = url if len(url) <= 100 else url[:100] + "…"
        super().__init__(f"invalid URL {excerpt!r}: {reason}", code="invalid_url")
