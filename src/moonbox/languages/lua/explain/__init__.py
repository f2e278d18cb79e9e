"""Explanations of errors in Lua scripts: where a run failed, why, and what to write instead."""
