"""The clients: where each MCP client keeps its configuration, and how moonbox is entered there."""
