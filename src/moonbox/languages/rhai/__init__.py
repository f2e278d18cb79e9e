"""Rhai, the second language: compiled to Lua 5.4 in the host, run by a runtime in the worker."""

from __future__ import annotations

from moonbox.languages.rhai.compiler import Compiled, Compiler, compile
from moonbox.languages.rhai.errors import RhaiSyntaxError
from moonbox.languages.rhai.source import runtime_source
from moonbox.languages.rhai.syntax.state import ParseLimits

__all__ = ["Compiled", "Compiler", "ParseLimits", "RhaiSyntaxError", "compile", "runtime_source"]
