"""Rhai as a guest language of the Lua engine."""

from __future__ import annotations

from moonbox.languages.registry import BadSyntax
from moonbox.languages.rhai.compiler import Compiler
from moonbox.languages.rhai.errors import RhaiSyntaxError

__all__ = ["RhaiTranslator"]


class RhaiTranslator:
    """Compiles, and remembers the latest scripts."""

    def __init__(self) -> None:
        self._compiler = Compiler()

    def translate(self, source: str) -> str:
        try:
            return self._compiler.compile(source).lua
        except RhaiSyntaxError as problem:
            raise BadSyntax(problem.text, problem.line, problem.position, problem.hint) from None
