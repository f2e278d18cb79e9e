"""Rhai, the second language: compiled to Lua 5.4 in the host, run by a runtime in the worker."""

from __future__ import annotations

from moonbox.engine.rhai.compiler import Compiled, Compiler, compile
from moonbox.engine.rhai.errors import RhaiSyntaxError
from moonbox.engine.rhai.source import runtime_source
from moonbox.engine.rhai.syntax.state import ParseLimits

__all__ = ["Compiled", "Compiler", "ParseLimits", "RhaiSyntaxError", "compile", "runtime_source"]
