"""MCP both ways: servers of others behind one code tool, and moonbox as a server for any client."""
