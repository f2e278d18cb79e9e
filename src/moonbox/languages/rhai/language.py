"""Rhai's entry in the registry of languages: a compiler to Lua and a runtime, both Lua files that the worker loads."""

from __future__ import annotations

from collections.abc import Callable, Collection

from moonbox.languages.language import Language, Lexis, on_first_use
from moonbox.languages.tables import text

# The files of each folder, in the order in which they build on each other.
PARSER = ("words", "lexer", "literals", "hints", "stream", "tree", "operands", "expressions", "statements")
COMPILER = (
    *PARSER,
    *("constants", "purity", "folding", "optimizer", "scopes", "types"),
    *("writer", "write_operators", "write_calls", "write_chains", "write_expressions"),
    *("write_branches", "write_statements", "compile"),
)
RUNTIME = (
    *("values", "errors", "format", "sizes", "search", "operators", "comparison", "ranges", "access", "tools", "calls"),
    *("parallel", "core", "numbers", "strings", "sorting", "arrays", "maps", "lists", "blobs", "json", "state"),
)


def runtime_source(*more: str) -> str:
    """The Lua files as one chunk, which returns `function(host) … return R end`; `more` are files of the compiler."""
    parts = [folder_source("compiler", (*COMPILER, *more)), folder_source("runtime", RUNTIME)]
    return "\n".join([*parts, text("rhai/runtime_end.lua")])


def folder_source(folder: str, names: Collection[str]) -> str:
    """Lua files of a folder as statements, which make a list of what each returns."""
    parts = [f"local {folder}={{}}"]
    for name in names:
        source = text(f"rhai/{folder}/{name}.lua")
        parts.append(f"{folder}[#{folder}+1]=(function()\n{source}\nend)()")
    return "\n".join(parts)


def _completeness() -> Callable[[str], bool]:
    from moonbox.languages.rhai.program import SyntaxProblem, rhai_outline

    def is_complete(text: str) -> bool:
        problem = rhai_outline(text)
        if not isinstance(problem, SyntaxProblem):
            return True
        lines = text.rstrip().split("\n")
        at_end = (problem.line or 1, problem.column or 1) > (len(lines), len(lines[-1]))
        return not at_end or "string" in problem.message

    return is_complete


RHAI = Language(
    name="rhai",
    suffix=".rhai",
    comment="//",
    lexer="rust",  # Pygments has none for Rhai, which looks like Rust
    lexis=Lexis(
        r"""(?P<begin> \#++" | /\*) | (?P<comment> //[^\n]*+)
        | (?P<string> "(?:[^"\\]|\\.)*+"? | '(?:[^'\\\n]|\\.)*+'? | `[^`]*+`?)""",
        block_values=True,
    ),
    first_index=0,
    nothing="()",
    explain=on_first_use("rhai.vocabulary", "explain"),
    completeness=_completeness,
    parameter_aliases=frozenset({"rhai", "rhai_code"}),
    program=on_first_use("rhai.program", "rhai_program"),
    vocabulary=on_first_use("rhai.vocabulary", "rhai_vocabulary"),
    runtime=runtime_source,
)
