"""Upstreams: MCP servers of others, started, watched, restarted, and offered as tools."""
