"""The Lua chunk of a whole script."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moonbox.languages.rhai.analysis.lending import lenders
from moonbox.languages.rhai.analysis.scopes import Scopes
from moonbox.languages.rhai.analysis.types import infer
from moonbox.languages.rhai.emit.statements import StatementEmitter
from moonbox.languages.rhai.emit.text import quote

if TYPE_CHECKING:
    from moonbox.languages.rhai.analysis.variables import Var
    from moonbox.languages.rhai.syntax.nodes import Script
    from moonbox.languages.rhai.syntax.state import ParseLimits

__all__ = ["write_chunk"]


def write_chunk(script: Script, limits: ParseLimits) -> str:
    """The text of the chunk; it is called with the runtime, the state and the context of a run."""
    scopes = Scopes(script)
    infer(scopes)
    return ChunkEmitter(scopes, lenders(script, scopes), limits).chunk(script)


class ChunkEmitter(StatementEmitter):
    """Puts functions, constants and the script's own code together."""

    def chunk(self, script: Script) -> str:
        definitions: list[str] = []
        for function in script.functions:
            definitions += self.definition(function)
        main = self._main(script)
        helpers = list(self.helpers)
        head = [
            "local R,S,K=...",
            "local F,U,E=S.functions,R.U,R.E",
            f"local {','.join(helpers)}={','.join('R.' + name for name in helpers)}",
        ]
        if self.chars:
            head.append("local C={" + ",".join(f"R.char({quote(char)})" for char in self.chars) + "}")
        return "\n".join([*head, *definitions, "return (function(K,d)", *main, "end)(K,2)"])

    def _main(self, script: Script) -> list[str]:
        self.fn = self.new_function()
        tops = [var for var in self.scopes.vars if var.top]
        names = []
        for var in tops:
            var.cell = var.captured
            if self.place(var):
                names.append(var.lua)
        self.tail(script.body)
        head = ["local " + ",".join(names)] if names else []
        for name, cell in self.states.items():
            if "(" not in cell:
                head.append(f"local {cell}={self.call('cellof', quote(name))}")
        saved = [f"if {var.lua}~=nil then {_save(var)} end" for var in tops]
        save = ["K.save=function(V)", *saved, "end"] if saved else []
        body = self.fn.text()
        split = sum(line.startswith("local ") for line in body[:2]) if self.fn.spilled else 1
        return [*body[:split], *head, *save, *body[split:]]


def _save(var: Var) -> str:
    """The statement that keeps a variable for the next run."""
    name = quote(var.name)
    if var.cell:
        return f"{var.lua}[2]={'true' if var.const else 'nil'} V[{name}]={var.lua}"
    return f"V[{name}]={{{var.lua}{',true' if var.const else ''}}}"
