"""A bare Lua state with the Rhai compiler and runtime in it, for tests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lupa import lua54

from moonbox.languages.rhai.language import runtime_source

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Later", "Machine", "NoScript", "Outcome", "Stopped", "ToolFailed"]

_HOST = """
local runtime, limits, tools, printed, clock = ...
local STOP = {}
local null, array_mt = setmetatable({}, {__name = "null"}), {__name = "array"}
local host = {
  lib = {
    string = string, table = table, math = math, utf8 = utf8, coroutine = coroutine,
    pcall = pcall, error = error, select = select, type = type, next = next, setmetatable = setmetatable,
    tostring = tostring, tonumber = tonumber, rawget = rawget,
    debug = {setmetatable = debug.setmetatable, getmetatable = debug.getmetatable},
  },
  limits = limits, null = null, array_mt = array_mt, clock = clock,
  print = printed,
  load = function(text) return load(text, "=rhai", "t", {}) end,
  has_tool = function(name) return tools[name] ~= nil end,
  stop = function(limit, message) error({stop = STOP, limit = limit, message = message}, 0) end,
  is_stop = function(problem) return type(problem) == "table" and rawget(problem, "stop") == STOP end,
}
function host.call(name, args)
  local how, answer = tools[name](args)
  if how == "waits" then coroutine.yield() end
  if how == "fails" then error(answer, 0) end
  if how == "stops" then host.stop("time", "stopped") end
  return answer
end
function host.parallel(functions, settle)
  local threads, results, left = {}, {}, #functions
  for i = 1, #functions do threads[i] = coroutine.create(functions[i]) end
  while left > 0 do
    for i = 1, #threads do
      if threads[i] then
        local fine, value = coroutine.resume(threads[i])
        if not fine then error(value, 0) end
        if coroutine.status(threads[i]) == "dead" then
          results[i], threads[i], left = value, false, left - 1
        end
      end
    end
  end
  return results
end
local R = assert(load(runtime, "=rhai runtime", "t", {}))()(host)
return R, host
"""

_PROTECTED = """
local call, name, first, second, third = ...
local fine, value = pcall(call[name], first, second, third)
if fine then return "value", value end
return "error", value
"""

# Runs the compiler and counts the Lua instructions that it takes, in thousands.
_MEASURE = """
local R, source = ...
local steps = 0
debug.sethook(function() steps = steps + 1 end, "", 1000)
local fine, text = pcall(R.compiler.compile, source)
debug.sethook()
return steps, fine and #text or 0
"""


class NoScript(Exception):
    """A text that does not compile: what was wrong, where, and what to write instead if that is known."""

    def __init__(self, problem: Any) -> None:
        self.message, self.text, self.hint = str(problem.message), str(problem.text), problem.hint
        self.line, self.position = problem.line, problem.position
        super().__init__(self.text)


class ToolFailed(Exception):
    """What a tool of a test raises to fail."""

    def __init__(self, message: str, code: str = "failed", retryable: bool = False) -> None:
        super().__init__(message)
        self.fields = {"message": message, "code": code, "retryable": retryable}


class Stopped(Exception):
    """What a tool of a test raises to end the run from outside."""


@dataclass(frozen=True)
class Later:
    """What a tool of a test returns to let the other closures of a `parallel` go on first."""

    value: Any


@dataclass
class Outcome:
    """What a script came to."""

    kind: str
    """"value", or the kind of the error."""
    type: str = ""
    display: str = ""
    debug: str = ""
    text: str = ""
    hint: str | None = None
    error: str = ""
    raw: Any = None
    prints: list[str] = field(default_factory=list)
    operations: int = 0


class Machine:
    """One state; `run` scripts in it one after the other."""

    def __init__(
        self,
        limits: dict[str, int] | None = None,
        tools: dict[str, Callable[[Any], Any]] | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self.lua = lua54.LuaRuntime(unpack_returned_tuples=True)
        self.prints: list[str] = []
        host = self.lua.execute("return function(...) " + _HOST + " end")
        table = self.lua.table_from
        wrapped = {name: self._tool(name, call) for name, call in (tools or {}).items()}
        self.runtime, self.host = host(
            runtime_source(), table(limits or {}), table(wrapped), self.prints.append, clock or (lambda: 0.0)
        )
        self.state = self.runtime.new_state()
        self._protected = self.lua.execute("return function(...) " + _PROTECTED + " end")
        self._measure = self.lua.execute("return function(...) " + _MEASURE + " end")
        self._is_array = self.lua.eval("function(host, t) return getmetatable(t) == host.array_mt end")
        self._is_null = self.lua.eval("function(host, t) return rawequal(t, host.null) end")
        self._export = self.lua.eval(
            "function(R, v) local fine, x = pcall(R.export, v) if fine then return x end error(x.text, 0) end"
        )
        self._as_array = self.lua.eval("function(host, t) return setmetatable(t, host.array_mt) end")

    def compile(self, source: str, limits: Mapping[str, int] | None = None) -> str:
        """The Lua text of a script; raises NoScript."""
        return str(self._compiler("compile", source, self._limits(limits)))

    def check(self, source: str, limits: Mapping[str, int] | None = None, *, single: bool = False) -> None:
        """Parse a script, or a single expression; raises NoScript."""
        self._compiler("check", source, self._limits(limits), single)

    def compiling(self, source: str) -> tuple[int, int]:
        """What compiling takes: Lua instructions in thousands, and the size of the text that it gives."""
        steps, size = self._measure(self.runtime, source)
        return int(steps), int(size)

    def _compiler(self, name: str, *arguments: Any) -> Any:
        kind, value = self._protected(self.runtime.compiler, name, *arguments)
        if kind == "value":
            return value
        if isinstance(value, str) or value.kind != "syntax":
            raise AssertionError(f"the compiler failed: {value}")
        raise NoScript(value)

    def _limits(self, limits: Mapping[str, int] | None) -> Any:
        return None if limits is None else self.lua.table_from(dict(limits))

    def run(self, source: str, parse_limits: Mapping[str, int] | None = None) -> Outcome:
        """Compile and run; raises NoScript."""
        before = len(self.prints)
        kind, value = self._protected(self.runtime, "run", self.state, source, self._limits(parse_limits))
        if kind == "error" and not isinstance(value, str) and value.kind == "syntax":
            raise NoScript(value)
        outcome = Outcome(kind, raw=value, prints=[str(each) for each in self.prints[before:]])
        outcome.operations = self.runtime.operations(self.state)
        if kind == "value":
            outcome.type, outcome.display = self.runtime.type_of(value), self.runtime.display(value)
            outcome.debug = self.runtime.debug(value)
        elif kind == "error" and not isinstance(value, str) and value.text:
            outcome.kind, outcome.text, outcome.hint = value.kind, value.text, value.hint
            outcome.error = value.error
        else:
            outcome.kind = "stopped" if kind == "error" else kind
            outcome.text = value if isinstance(value, str) else str(value.message)
        return outcome

    def exported(self, outcome: Outcome) -> Any:
        """The value of a run as Python has it; a Lua error with the text of the refusal if it cannot leave."""
        return self.to_python(self._export(self.runtime, outcome.raw))

    def to_python(self, value: Any) -> Any:
        if lua54.lua_type(value) != "table":
            return value
        if self._is_null(self.host, value):
            return None
        if self._is_array(self.host, value):
            return [self.to_python(value[n + 1]) for n in range(len(value))]
        return {key: self.to_python(item) for key, item in value.items()}

    def to_lua(self, value: Any, *, inside: bool = False) -> Any:
        if value is None:
            return self.host.null if inside else None
        if isinstance(value, list):
            return self._as_array(self.host, self.lua.table(*(self.to_lua(item, inside=True) for item in value)))
        if isinstance(value, dict):
            return self.lua.table_from({key: self.to_lua(item, inside=True) for key, item in value.items()})
        return value

    def _tool(self, name: str, call: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def tool(args: Any) -> Any:
            try:
                answer = call(self.to_python(args))
            except ToolFailed as failure:
                return "fails", self.to_lua({"tool": name, **failure.fields})
            except Stopped:
                return "stops", None
            if isinstance(answer, Later):
                return "waits", self.to_lua(answer.value)
            return "answers", self.to_lua(answer)

        return tool
