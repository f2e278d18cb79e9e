"""Fixtures of the tests of projects."""

from tests.mcp.conftest import driver

__all__ = ["driver"]
