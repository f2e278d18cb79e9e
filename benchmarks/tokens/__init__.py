"""The token economy: conversations, what they cost, and the work they do."""
