"""Fixtures for the tests of requests to other machines."""

from __future__ import annotations

from tests.loopback_servers import serve, serve_raw

__all__ = ["serve", "serve_raw"]
