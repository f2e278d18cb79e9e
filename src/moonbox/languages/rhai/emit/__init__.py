"""From the syntax tree to Lua text."""
