"""A bare Lua state with the Rhai compiler and runtime in it, for tests."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lupa import lua54

from moonbox.languages.rhai.language import runtime_source

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["CASES", "Later", "Machine", "NoScript", "Outcome", "Stopped", "ToolFailed"]


CASES: dict[str, Any] = tomllib.loads(Path(__file__).with_name("cases.toml").read_text(encoding="utf-8"))


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
        self.helpers = self.lua.execute(Path(__file__).with_suffix(".lua").read_text(encoding="utf-8"))
        # Looked up here: a tool uses them while a coroutine runs, in which lupa cannot look up.
        self._is_null, self._is_array = self.helpers.is_null, self.helpers.is_array
        self._as_array = self.helpers.as_array
        table = self.lua.table_from
        wrapped = {name: self._tool(name, call) for name, call in (tools or {}).items()}
        self.runtime, self.host = self.helpers.host(
            runtime_source(), table(limits or {}), table(wrapped), self.prints.append, clock or (lambda: 0.0)
        )
        self.state = self.runtime.new_state()

    def compile(self, source: str, limits: Mapping[str, int] | None = None) -> str:
        """The Lua text of a script; raises NoScript."""
        return str(self._compiler("compile", source, self._limits(limits)))

    def check(self, source: str, limits: Mapping[str, int], *, single: bool = False) -> None:
        """Parse a script, or a single expression; raises NoScript."""
        self._compiler("check", source, self._limits(limits), single)

    def compiling(self, source: str) -> tuple[int, int]:
        """What compiling takes: Lua instructions in thousands, and the size of the text that it gives."""
        steps, size = self.helpers.measure(self.runtime, source)
        return int(steps), int(size)

    def _compiler(self, name: str, *arguments: Any) -> Any:
        kind, value = self.helpers.protected(self.runtime.compiler, name, *arguments)
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
        kind, value = self.helpers.protected(self.runtime, "run", self.state, source, self._limits(parse_limits))
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
        return self.to_python(self.helpers.export(self.runtime, outcome.raw))

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
