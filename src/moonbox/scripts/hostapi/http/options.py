"""HttpOptions: what the host decides about every http call of a script."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from moonbox._version import __version__

if TYPE_CHECKING:
    import ssl

__all__ = ["HttpOptions", "Resolver"]

Resolver = Callable[[str, int], Sequence[str]]
"""The addresses of a host name, given with the port; raises OSError when there are none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpOptions:
    """How http calls are made. Proxies and other settings of the environment are never used."""

    resolver: Resolver | None = None
    """Name resolution; the system's by default."""
    ssl_context: ssl.SSLContext | None = None
    """Certificates to trust; the system's and certifi's by default."""
    secrets_over_plain_http: bool = False
    """Let secrets go to hosts by name without TLS. Local addresses need no such permission."""
    user_agent: str = f"moonbox/{__version__}"
