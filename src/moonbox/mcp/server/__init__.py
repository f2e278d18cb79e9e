"""The server: moonbox for MCP clients, over stdio and streamable HTTP."""
