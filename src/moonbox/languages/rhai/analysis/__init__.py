"""Between the syntax tree and the Lua text: folding, scopes, types."""
