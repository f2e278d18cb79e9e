"""The Lua files of the compiler and the runtime as one chunk."""

from __future__ import annotations

from pathlib import Path

__all__ = ["runtime_source"]

_FOLDER = Path(__file__).parent
# In the order in which they build on each other.
_COMPILER = (
    *("words", "lexer", "literals", "hints", "stream", "tree", "operands", "expressions", "statements"),
    *("constants", "purity", "folding", "optimizer", "scopes", "types"),
    *("writer", "write_operators", "write_calls", "write_chains", "write_expressions"),
    *("write_branches", "write_statements", "compile"),
)
_RUNTIME = (
    *("values", "errors", "format", "sizes", "search", "operators", "comparison", "ranges", "access", "tools", "calls"),
    *("parallel", "core", "numbers", "strings", "sorting", "arrays", "maps", "blobs", "json", "state"),
)
_END = """
return function(host)
  local C, R = {}, {}
  for i = 1, #compiler do compiler[i](C, host.lib) end
  R.compiler = C
  for i = 1, #runtime do runtime[i](R, host.lib, host) end
  C.raise = R.syntax_error
  return R
end
"""


def runtime_source() -> str:
    """A Lua chunk that returns `function(host) ... return R end`."""
    parts = ["local compiler,runtime={},{}"]
    for folder, names in (("compiler", _COMPILER), ("runtime", _RUNTIME)):
        for name in names:
            text = (_FOLDER / folder / f"{name}.lua").read_text(encoding="utf-8")
            parts.append(f"{folder}[#{folder}+1]=(function()\n{text}\nend)()")
    return "\n".join([*parts, _END])
