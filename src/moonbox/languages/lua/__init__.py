"""The Lua 5.4 engine."""
