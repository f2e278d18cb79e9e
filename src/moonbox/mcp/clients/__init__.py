"""MCP clients: where they keep their configuration, and how moonbox is added to it."""
