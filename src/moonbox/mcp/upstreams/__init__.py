"""Upstreams: other MCP servers, started, supervised, and offered as tools."""
