"""The calls of a Python script to the host: one at a time, or many at once where they are awaited together."""

from __future__ import annotations

import builtins
import json

from moonbox.languages.python.encode import CannotLeave, Encoder
from moonbox.languages.python.rewriting import parameter

TYPE_CHECKING = False  # see worker/protocol.py: a worker starts without `typing`
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from moonbox.languages.engine import Wire

_PART = "\x1f"
_MOST_UNDER_WAY = 1000  # the host refuses ten times as many at once
_DOCS = ("search", "describe", "get", "names")


class Stopped(Exception):
    """The host has ended the run."""


class ScriptCalls:
    """Numbers the calls of a session, sends them, and sorts the answers."""

    def __init__(self) -> None:
        self.wire: Wire = None  # type: ignore[assignment]  # connected before the first call
        self.targets: dict[str, str] = {}
        """Dotted names of functions, as scripts write them, and what the host calls them."""
        self.failures: dict[str, Mapping[str, Any]] = {}
        """Errors of tools in this run, by the text that the script's exception has."""
        self.waiting = False
        """The script waits for the host."""
        self.refused = False
        """No further call is made: the script has printed too much."""
        self._parameters: Mapping[str, list[str]] = {}
        self._forms: dict[str, Any] = {}
        self._encoder: Encoder = None  # type: ignore[assignment]
        self._last = 0
        self._queue: list[tuple[int, bytes]] = []  # not sent yet
        self._numbers: dict[int, int] = {}  # number on the wire → Monty's, of calls that are awaited
        self._arrived: dict[int, Any] = {}  # Monty's number → the answer

    def configure(self, environment: Mapping[str, Any]) -> None:
        self._parameters = environment.get("parameters", {})
        self.targets = {f"docs.{name}": f"docs.{name}" for name in _DOCS}
        self._forms = {}
        for name, target, *form in environment["tools"]:
            written = name.replace(_PART, ".")
            is_hidden = written.partition(".")[0] in environment["taken"]
            for each in (f"tools.{written}",) if is_hidden else (f"tools.{written}", written):
                self.targets[each], self._forms[each] = target, form[0] if form else {}
        for name, target in environment["functions"]:
            self.targets.setdefault(name.replace(_PART, "."), target)  # a tool of that name hides it

    def is_tool(self, name: str) -> bool:
        return self.targets.get(name, "").startswith("tools.")

    def function(self, name: str) -> Callable[..., None] | None:
        """What stands for a function that a script uses as a value; None where there is none of that name."""
        if name not in self.targets and name not in _LOCAL:
            return None

        def stand_in(*_: Any) -> None:
            return

        stand_in.__name__ = name
        return stand_in

    def begin(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self.failures = {}
        self.refused = False
        self._last = 0  # a replay leaves stopped runs out: numbers must not depend on earlier runs
        self._queue, self._numbers, self._arrived = [], {}, {}

    def end(self) -> None:
        """Cancel what the script no longer waits for."""
        sent = sorted(set(self._numbers) - {number for number, _ in self._queue})
        if sent:
            self.wire.cancel(json.dumps(sent).encode())
        self._numbers = {}

    def answer(self, step: Any, awaited: bool) -> dict[str, Any]:
        """The answer to a call that Monty has stopped at; a promise of it where the script awaits it."""
        name = step.function_name
        if name in _LOCAL:
            return {"return_value": _LOCAL[name](self, *step.args)}
        args, kwargs = step.args, step.kwargs
        if name == "_call":
            name, args, kwargs = step.args[0], (), step.args[1]
        target = self.targets.get(name)
        if target is None:
            return {"exception": NameError(f"name '{name}' is not defined")}
        arguments = self._arguments(name, target, args, kwargs)
        if isinstance(arguments, str):
            return {"exception": TypeError(arguments)}
        if self.refused:
            raise Stopped
        try:
            number = self._enter(target, arguments)
        except CannotLeave as problem:
            return {"exception": TypeError(f"{name}: {problem}")}
        if not awaited:
            return self._outcome(*self._wait_for(number))
        self._numbers[number] = step.call_id
        return {"future": ...}

    def ask(self, target: str) -> Any:
        """A question to the host."""
        return self._wait_for(self._enter(target, []))[1]

    def settled(self, pending: list[int]) -> dict[int, Any]:
        """Results of some of these calls, which the script awaits."""
        while not (ready := {call: self._arrived.pop(call) for call in pending if call in self._arrived}):
            self._take(self._exchange())
        return ready

    def _arguments(self, name: str, target: str, args: Any, kwargs: Any) -> list[Any] | str:
        """What is sent: the named arguments as one mapping; or why they cannot be sent."""
        names = self._parameters.get(target)
        args, names = (args, None) if names is None else _gathered(args, names)
        if not kwargs:
            if names is None or len(args) > len(names) or (len(args) == 1 and isinstance(args[0], dict)):
                return list(args)
            return [dict(zip(names, args, strict=False))]
        if not target.startswith("tools."):
            return [*args, *kwargs.values()]
        names = names or []
        if len(args) > len(names):
            return f"{name}() takes {len(names)} positional arguments but {len(args)} were given"
        given = dict(zip(names, args, strict=False))
        kwargs = {parameter(word, names): value for word, value in kwargs.items()}
        twice = [each for each in kwargs if each in given]
        return f"{name}() got multiple values for argument '{twice[0]}'" if twice else [{**given, **kwargs}]

    def _enter(self, target: str, arguments: list[Any]) -> int:
        self._last += 1
        encoded = b",".join(self._encoder.encode(argument, "argument") for argument in arguments)
        text = b'[%d,"%s",[%s]]' % (self._last, json.dumps(target)[1:-1].encode(), encoded)
        self._queue.append((self._last, text))
        return self._last

    def _wait_for(self, number: int) -> tuple[bool, Any]:
        while True:
            answers = self._exchange()
            mine = [(ok, value) for got, ok, value in answers if got == number]
            self._take([each for each in answers if each[0] != number])
            if mine:
                return mine[0]

    def _exchange(self) -> list[tuple[int, bool, Any]]:
        """Send what waits, as far as not too much is under way, and receive at least one answer."""
        room = _MOST_UNDER_WAY - (len(self._numbers) - len(self._queue)) if self._numbers else len(self._queue)
        leaving, self._queue = self._queue[: max(room, 1)], self._queue[max(room, 1) :]
        payload = b"[" + b",".join(text for _, text in leaving) + b"]" if leaving else b""
        self.waiting = True
        answers = self.wire.exchange(payload)
        self.waiting = False
        if answers is None:
            raise Stopped
        return list(answers)

    def _take(self, answers: list[tuple[int, bool, Any]]) -> None:
        for number, ok, value in answers:
            call = self._numbers.pop(number, None)
            if call is not None:
                self._arrived[call] = self._outcome(ok, value)

    def _outcome(self, ok: bool, value: Any) -> dict[str, Any]:
        if ok:
            return {"return_value": value}
        tool = value.get("tool")
        text = f"{tool}: {value.get('message')}" if tool else str(value.get("message"))
        self.failures[text] = value
        return {"exception": _exception(value)(text)}

    def failure_of(self, problem: Any) -> Mapping[str, Any] | None:
        """The failure of a tool that was raised as this exception."""
        failure = self.failures.get(_text(problem))
        return failure if failure is not None and _exception(failure) is type(problem) else None

    def _failure(self, problem: Any) -> dict[str, Any]:
        """The fields of a caught error."""
        fields = {"code": None, "message": _text(problem), "tool": None, "retryable": False, "data": None}
        return {**fields, **(self.failure_of(problem) or {})}

    def _form(self, tool: str) -> Any:
        """The name of a tool, and how it is paged; None where there is no such tool."""
        return {"tool": tool, **self._forms[tool]} if isinstance(tool, str) and tool in self._forms else None


_LOCAL: dict[str, Callable[..., Any]] = {
    "failure": ScriptCalls._failure,
    "_failure": ScriptCalls._failure,
    "_form": ScriptCalls._form,
}


def _text(problem: Any) -> str:
    return str(problem.args[0]) if isinstance(problem, KeyError) and problem.args else str(problem)  # not quoted


def _exception(failure: Mapping[str, Any]) -> type[Exception]:
    """What a failure is raised as: the exception of Python that the tool raised, as far as Monty has it."""
    name = str(failure.get("message")).partition(":")[0].replace("JSONDecodeError", "ValueError")
    kind = getattr(builtins, name, None) if name.isidentifier() else None
    if not (isinstance(kind, type) and issubclass(kind, Exception)):
        return _OF_CODES.get(str(failure.get("code")), RuntimeError)
    return next((known for known in kind.__mro__ if known in _EXCEPTIONS), RuntimeError)


_OF_CODES = {"timeout": TimeoutError, "denied": PermissionError}
_EXCEPTIONS = (
    *(AssertionError, AttributeError, FileExistsError, FileNotFoundError, IndexError, IsADirectoryError, KeyError),
    *(LookupError, NotADirectoryError, NotImplementedError, OverflowError, PermissionError, RuntimeError, TimeoutError),
    *(TypeError, OSError, ValueError, ZeroDivisionError, ArithmeticError),
)


def _gathered(args: Any, names: list[str]) -> tuple[list[Any], list[str]]:
    """Positional arguments, with those for `*name` as one list, and the names without the mark."""
    plain = [name.removeprefix("*") for name in names]
    at = len(args) if plain == names else next(at for at, name in enumerate(names) if name.startswith("*"))
    rest = list(args[at:])
    return (list(args) if not rest or (len(rest) == 1 and isinstance(rest[0], list)) else [*args[:at], rest]), plain
