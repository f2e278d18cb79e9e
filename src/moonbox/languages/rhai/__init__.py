"""Rhai, the second language: compiled to Lua 5.4 and run by a runtime, both in the worker."""
