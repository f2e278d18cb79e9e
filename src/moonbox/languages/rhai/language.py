"""Rhai's entry in the registry of languages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from moonbox.languages.language import Language
from moonbox.languages.translation import completeness_of, explain_translated

if TYPE_CHECKING:
    from collections.abc import Callable

    from moonbox.languages.translation import Translator

__all__ = ["RHAI"]


def _translator() -> Translator:
    from moonbox.languages.rhai.guest import RhaiTranslator

    return RhaiTranslator()


def _runtime() -> str:
    from moonbox.languages.rhai.source import runtime_source

    return runtime_source()


def _completeness() -> Callable[[str], bool]:
    return completeness_of(_translator)


RHAI = Language(
    name="rhai",
    suffix=".rhai",
    comment="//",
    lexer="rust",  # Pygments has none for Rhai, which looks like Rust
    first_index=0,
    folder=Path(__file__).parent,
    explain=explain_translated,
    completeness=_completeness,
    parameter_aliases=frozenset({"rhai", "rhai_code"}),
    translator=_translator,
    runtime=_runtime,
)
