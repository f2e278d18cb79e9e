"""The engine for Python scripts: drives Monty's process step by step, and speaks with the host as every engine does."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from moonbox.languages.engine import EngineLost, EngineReport
from moonbox.languages.python.answers import ScriptCalls, Stopped
from moonbox.languages.python.encode import MOST_NAMES, CannotLeave, Encoder, NamespaceShown, TooLarge, told
from moonbox.languages.python.lines import Rewritten
from moonbox.languages.python.rewriting import METHODS, OF_CLASSES, TWIN, defined, rewrite
from moonbox.languages.python.session import MontySession
from moonbox.languages.python.typed import certain_findings

TYPE_CHECKING = False  # see worker/protocol.py: a worker starts without `typing`
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from moonbox.languages.engine import Wire

PRELUDE = os.path.join(os.path.dirname(__file__), "prelude")  # noqa: PTH118, PTH120 - as in lua/vm.py
_REASONS = {0: "", 1: "time", 2: "cancelled", 3: "calls"}
_PART = "\x1f"  # separates the parts of a name
_KEPT_FROM, _KEPT_SHARE = 500, 16  # bytes; share of max_memory: see lua/prelude/kept.lua
_MOST_FRAMES, _MOST_NAMES, _LONGEST_KIND = 20, 1000, 100
_PATIENCE, _TO_STOP_PRINTING = 0.8, 3.0  # seconds for Monty's own limit, and for what prints too much, to end
_CLOCKS = frozenset({"time.monotonic", "time.perf_counter", "time.process_time"})
_NO_SLEEP = "write: sleep(seconds)"
_MEMORY = ("MemoryError: memory limit exceeded", "MemoryError: the worker exceeded its memory limit")
_TIME = "TimeoutError: feed time limit exceeded"
_KEY = "KeyError: "
CHECKED = "checked"
"""What a script is called that is checked and not run."""
_NEVER_SET = "_never_set"
_NO_DATA = frozenset({"function", "type", "module", "builtin_function_or_method", "generator", "coroutine"})


class _WrongTypes(Exception):
    """The type checker has found what cannot work."""


class MontyVM:
    """One session of Monty. Runs are serial; `interrupt` may be called from another thread."""

    is_native = False
    polling = ""
    warm_up = None

    def __init__(self, native: Any = None) -> None:
        for name in ("collections", "decimal", "pathlib", "uuid", "unicodedata"):
            import_module(name)  # Monty's client, and Python's parser, import them when they need them
        self._monty = _client()
        names = {name.removesuffix(".monty") for name in os.listdir(PRELUDE)}  # noqa: PTH208 - as above
        self._sources = {name: _read(name) for name in sorted(names)}
        self._ours = names - {"functions", "pages"}  # modules that Monty lacks
        self._session: MontySession = None  # type: ignore[assignment]  # started before the first run
        self._limits: Mapping[str, Any] = {}
        self._environment: Mapping[str, Any] = {}
        self._inputs: dict[str, Any] = {}
        self._calls = ScriptCalls()
        self._feeds: list[tuple[str, Rewritten | None]] = []  # the chunk of each text that was fed; "" of our own
        self._used = False  # scripts have run here
        self._names: dict[str, None] = {}  # globals that scripts set
        self._run_number = self._reason = self._printed = 0
        self._overflow = 0.0
        self._output: list[str] = []
        self._chunk = ""
        self._script: Rewritten | None = None  # the latest
        self._step: Any = None  # what Monty has stopped at

    def start(self, program: str) -> int:
        self._session = MontySession(self._monty, program)
        self._open()
        return self._session.pid

    def connect(self, wire: Wire) -> None:
        self._calls.wire = wire

    def configure(self, config: Mapping[str, Any]) -> None:
        self._environment = config
        if self._session is not None:
            self._define() if self._used else self._open()

    def set_limits(self, limits: Mapping[str, Any]) -> None:
        """Monty's own limit of memory is that of the first run; the host enforces others."""
        self._limits = limits
        if self._session is not None:
            self._session.change_limits(limits) if self._used else self._open()

    def set_inputs(self, inputs: list[tuple[str, Any]]) -> None:
        self._inputs = dict(inputs)

    def globals(self) -> bytes:
        return json.dumps(self._kinds()).encode()

    def _kinds(self) -> list[tuple[str, str]]:
        """Monty does not tell: it is asked for the type of each name that the scripts set somewhere."""
        names, kinds = list(self._names), None
        self._calls.refused = True
        with suppress(self._monty.MontyError, RuntimeError, Stopped, CannotLeave, TooLarge):
            kinds = self._feed(f"[{','.join(f'_kind(lambda: {name})' for name in names)}]")
        pairs = zip(names, kinds, strict=False) if isinstance(kinds, list) else ()
        return [(name, kind[:_LONGEST_KIND]) for name, kind in pairs if isinstance(kind, str)]

    def inspect(self, call: int, number: int) -> bytes:
        """Monty has no locals to show, and tells the frames with an error: the script gets one, which ends its run."""
        self._run_number, chunk = 0, _chunk(number)  # what it prints then is not the run's
        problem = self._session.abandon(self._step)
        frames, _ = self._frames(problem.traceback() if hasattr(problem, "traceback") else [], [])
        values, shown = {}, NamespaceShown()
        for name, kind in self._kinds()[:MOST_NAMES]:
            values[name] = f"<{kind}>"
            with suppress(self._monty.MontyError, RuntimeError, Stopped, CannotLeave, TooLarge):
                values[name] = shown.value(self._feed(name)) if kind not in _NO_DATA else f"<{kind}>"
        return told([(name, line, where == chunk) for where, line, name in frames], values)

    @property
    def output_cut(self) -> int:
        return int(max(0, self._printed - self._limits["max_output"]))

    def interrupt(self, number: int, reason: int) -> bool:
        """Nothing interrupts Monty: what its own limit does not stop is killed."""
        if self._run_number != number:
            return False
        self._reason = reason
        time.sleep(_PATIENCE)
        if self._run_number == number and not self._calls.waiting:
            self._session.kill()
        return True

    def interrupt_any(self, reason: int) -> None:
        self.interrupt(self._run_number or -1, reason)

    def halt(self, reason: int) -> None:
        self._reason = reason

    def check(self, source: bytes) -> EngineReport:
        """What Monty's parser and type checker say of a script. The line before it keeps it from running."""
        if self._session.ended:
            raise EngineLost
        report, self._chunk, self._reason, self._calls.refused = EngineReport(), CHECKED, 0, False
        script = self._script = rewrite(source.decode("utf-8", "replace"), self._calls.is_tool, self._ours, 0)
        try:
            self._session.abandon(self._session.try_out(f"{_NEVER_SET}\n{script.text}", skip_type_check=True))
            self._check_types(script, self._session.try_out)
        except _WrongTypes as problem:
            self._report_types(report, problem)
        except self._monty.MontyCrashedError:
            raise EngineLost from None
        except self._monty.MontyError as problem:
            self._fail(report, problem)
        return report

    def run(self, source: bytes, number: int, seed: int) -> EngineReport:
        if self._session.ended:
            raise EngineLost
        report, encoder = EngineReport(), Encoder(self._limits)
        self._run_number, self._reason, self._printed, self._used = number, 0, 0, True
        self._chunk = _chunk(number)
        self._output = []
        began = time.thread_time()
        self._calls.begin(encoder)
        text = source.decode("utf-8", "replace")
        if self._script is not None:
            self._script.settle()
        script = self._script = rewrite(text, self._calls.is_tool, self._ours, number, self._names)
        try:
            value = self._execute(script, seed)
            self._run_number = 0
            if self._calls.refused:
                raise Stopped
            report.values = b"[]" if value is None else b"[" + encoder.encode(value, "value", self._ask) + b"]"
            report.kept = self._keep(number, value, len(report.values))
        except Stopped:
            report.kind, report.limit = "stop", self._stop()
        except (TooLarge, CannotLeave) as problem:
            report.kind, report.limit = ("stop", problem.limit) if isinstance(problem, TooLarge) else ("runtime", "")
            report.message, report.extra = str(problem).encode(), b'{"line":%d}' % script.value_line
        except _WrongTypes as problem:
            self._report_types(report, problem)
        except self._monty.MontyCrashedError:
            if not self._stop():
                raise EngineLost from None
            report.kind, report.limit, self._session.ended = "stop", self._stop(), True
        except self._monty.MontyError as problem:
            self._fail(report, problem)
        finally:
            self._run_number = self._reason = 0
        if self._session.ended:
            report.last, report.extra = True, json.dumps({**json.loads(report.extra), "lost": True}).encode()
        self._calls.end()
        report.cpu = time.thread_time() - began
        return report

    def _stop(self) -> str:
        """Why the run has to end; empty where it has not."""
        return "output" if self._calls.refused else _REASONS.get(self._reason, "")

    def _execute(self, script: Rewritten, seed: int) -> Any:
        self._check_types(script, self._session.feed)
        names = [name for name in defined(script.source) if name not in self._inputs]
        self._names |= dict.fromkeys(names[: _MOST_NAMES - len(self._names)])
        for module in script.modules:
            self._feed(self._sources[module])
        if "random" in script.source:
            self._feed(f"import random as _random\n_random.seed({seed})")
        inputs, self._inputs = self._inputs, {}
        try:
            return self._feed(script.text, self._chunk, script, inputs)
        finally:
            if inputs:
                with suppress(self._monty.MontyError, RuntimeError):
                    self._feed(";".join(f"{name}=None" for name in inputs))

    def _check_types(self, script: Rewritten, feed: Callable[[str], Any]) -> None:
        """Raise what Monty's type checker finds that is certain to fail."""
        monty = self._monty
        if not (script.has_tools and self._session.checks_types):
            return
        try:
            imports = ", ".join(self._session.paths)
            step = feed(f"{_NEVER_SET}; import {imports}\n{script.text}")
            while getattr(step, "function_name", None) == "import_stubs":  # of the modules
                step = step.resume_auto()
            self._session.abandon(step)
        except monty.MontyTypingError as problem:
            text, stubs = f"\n{script.text}", self._environment.get("stubs", {})
            found = certain_findings(json.loads(problem.display()), text, stubs.values())
            places = [
                (*script.place(each["location"]["row"] - 1, each["location"]["column"]), each["message"])
                for each in found
            ]
            certain = [(line, at or 1, message) for line, at, message in places if line not in script.caught]
            if certain:
                raise _WrongTypes(certain[:_MOST_FRAMES]) from None
        except monty.MontyCrashedError:
            raise
        except (monty.MontyError, RuntimeError):
            return  # the run says what is wrong

    def _feed(self, text: str, chunk: str = "", script: Rewritten | None = None, inputs: Any = None) -> Any:
        """Feed a text to Monty and answer what it asks until it is done."""
        monty = self._monty
        self._feeds.append((chunk, script))
        step = self._session.feed(text, inputs=inputs, print_callback=self._print, skip_type_check=True)
        while not isinstance(step, monty.MontyComplete):
            self._step = step
            try:
                if self._reason:
                    raise Stopped
                if isinstance(step, monty.FutureSnapshot):
                    step = step.resume(self._calls.settled(step.pending_call_ids))
                elif isinstance(step, monty.NameLookupSnapshot):
                    function = self._calls.function(step.variable_name)
                    step = step.resume() if function is None else step.resume(value=function)
                elif step.is_os_function:
                    step = self._system(step)
                else:
                    step = step.resume(self._calls.answer(step, self._is_awaited(step)))
            except (Stopped, CannotLeave, TooLarge):
                self._session.abandon(step)
                raise
        return step.output

    def _fed(self, filename: str) -> tuple[str, Rewritten | None]:
        """The chunk of the text with that name, "" of ours, and how it was rewritten."""
        at = filename.removeprefix("<python-input-").rstrip(">")
        if not at.isdigit():
            return "", None
        return self._feeds[int(at)] if int(at) < len(self._feeds) else (CHECKED, self._script)

    def _is_awaited(self, step: Any) -> bool:
        place, script = step.position, self._fed(step.position.filename)[1]
        return bool(step.allow_eager_await) or (script is not None and (place.start, place.end) in script.awaited)

    def _system(self, step: Any) -> Any:
        """The clock is the host's; nothing else of a system is there."""
        name = step.function_name
        if name == "import":
            return step.resume_auto()
        if name == "time.time":
            target = "sys.clock" if step.args[0] in _CLOCKS else "sys.time"
            return step.resume({"return_value": float(self._calls.ask(target))})
        if name in ("datetime.now", "date.today"):
            now = datetime.fromtimestamp(self._calls.ask("sys.time"), UTC)
            zone = step.args[0] if step.args else None
            local = now.astimezone(zone) if zone is not None else now.replace(tzinfo=None)
            return step.resume({"return_value": local if name == "datetime.now" else local.date()})
        if name in ("time.sleep", "asyncio.sleep"):
            return step.resume({"exception": RuntimeError(_NO_SLEEP)})
        return step.resume_not_handled()

    def _print(self, stream: str, text: str) -> None:
        if not self._run_number:
            return
        data = text.encode("utf-8", "replace")
        room = self._limits["max_output"] - self._printed
        self._printed += len(data)
        if room > 0:
            self._output.append(text)
            self._calls.wire.emit(data[:room])
        if len(data) > room and not self._calls.refused:
            self._calls.refused, self._overflow = True, time.monotonic()
        elif self._calls.refused and time.monotonic() - self._overflow > _TO_STOP_PRINTING:
            self._session.kill()

    def _report_types(self, report: EngineReport, problem: _WrongTypes) -> None:
        report.kind, report.extra = "syntax", json.dumps({"data": [{"types": problem.args[0]}]}).encode()

    def _fail(self, report: EngineReport, problem: Any) -> None:
        text = str(problem)
        if text.startswith(_KEY):
            text = f"{_KEY}{problem.exception()}"  # which quotes the key
        report.kind, report.message = "runtime", text.encode("utf-8", "replace")
        frames, extra = self._frames(problem.traceback() if hasattr(problem, "traceback") else [], self._noted(text))
        report.frames = json.dumps(frames).encode()
        failed = None if not hasattr(problem, "exception") else self._calls.failure_of(problem.exception())
        if self._stop():
            report.kind, report.limit, report.message = "stop", self._stop(), b""
        elif text.startswith((*_MEMORY, _TIME)):
            report.kind, report.limit, report.message = "stop", "time" if text.startswith(_TIME) else "memory", b""
            try:  # what filled the memory may still be there
                self._feed("None")
            except (self._monty.MontyError, RuntimeError):
                self._session.ended = True
        elif isinstance(problem, self._monty.MontySyntaxError):
            report.kind = "syntax"
        elif failed is not None:
            report.kind, report.message = "tool", str(failed.get("message")).encode("utf-8", "replace")
            extra["data"] = [failed]
        report.extra = json.dumps(extra).encode()

    def _noted(self, text: str) -> list[tuple[str, int, str]]:
        """Where the error was raised that a `try` has let through, and the calls that led to it; see lines.py."""
        unnoted = self._script is None or not self._script.is_guarded or self._chunk == CHECKED
        if unnoted or self._stop() or text.startswith((*_MEMORY, _TIME)):
            return []
        try:
            kind, message, lines = self._feed("_noted_lines()")
        except (self._monty.MontyError, RuntimeError, Stopped, CannotLeave, TooLarge):
            return []
        if text not in (f"{kind}: {message}", kind) and not (kind == "KeyError" and text.startswith(_KEY)):
            return []  # another one
        return [(_chunk(number), line, function) for line, number, function in lines]

    def _frames(
        self, traceback: list[Any], noted: list[tuple[str, int, str]]
    ) -> tuple[list[tuple[str, int, str]], dict[str, Any]]:
        """Of the scripts only, innermost first; and the line and column of the first in this run's script."""
        found: list[tuple[str, int, int | None, str]] = [(chunk, line, None, name) for chunk, line, name in noted]
        for frame in list(reversed(traceback))[1 if noted else 0 :]:
            chunk, script = self._fed(frame.filename)
            if chunk:
                before = chunk == CHECKED  # the line that keeps it from running
                place = (frame.line - before, frame.column)
                found.append(
                    (chunk, *(place if script is None else script.place(*place)), frame.function_name or "<module>")
                )
        here = next(({"line": line, "column": at} for chunk, line, at, _ in found if chunk == self._chunk), {})
        frames = [(chunk, line, _plain(name)) for chunk, line, _, name in found[:_MOST_FRAMES]]
        return frames, {key: number for key, number in here.items() if number is not None}

    def _ask(self, place: str) -> Any:
        """The type of a part of the value, and its elements where it is a view or a range; None if it has no name."""
        if self._script is None or not self._script.value:
            return None
        try:
            return self._feed(f"_sent({self._script.value}{place})")
        except (self._monty.MontyError, RuntimeError):
            return None

    def _keep(self, number: int, value: Any, size: int) -> int:
        """Keep a large value, and a large output, under a name for later runs; which of them were kept."""
        kept: dict[str, Any] = {}
        if _KEPT_FROM <= size <= self._limits["max_memory"] // _KEPT_SHARE:
            kept[f"_{number}"] = kept["_"] = value
        if self._printed >= _KEPT_FROM:
            kept[f"_{number}_printed"] = "".join(self._output)
        if not kept:
            return 0
        with suppress(self._monty.MontyError, RuntimeError):
            self._feed("_0 = None", inputs=kept)
        return ("_" in kept) + 2 * (f"_{number}_printed" in kept)

    def _open(self) -> None:
        """Begin a new session, with the limits and the environment as they are."""
        self._session.open(self._limits, self._environment.get("stubs", {}))
        self._feeds = []
        tables = f"_METHODS, _OF_CLASSES = {_table(METHODS)}, {_table(OF_CLASSES)}"
        ours = Rewritten(
            "\n".join([self._sources["functions"], tables, self._sources["pages"]])
        )  # each feed takes a turn
        ours.awaited = {match.span(1) for match in re.finditer(r"r = (f\(x\))", ours.text)}
        self._feed(ours.text, "", ours)
        self._define()

    def _define(self) -> None:
        """Make tools, functions and values known to the session."""
        self._calls.configure(self._environment)
        values = [(name.replace(_PART, "."), value) for name, value in self._environment["values"]]
        roots = self._session.define(self._calls.targets, values, self._environment.get("reserved", ()))
        plain = {name: value for name, value in values if "." not in name}
        self._feed("\n".join(["pass", *(f"import {name}" for name in roots)]), inputs=plain)


def _client() -> Any:
    """Monty's client, which is one extension.

    The package around it imports asyncio, inspect and typing, for what no script needs. A zygote, which has no typing
    otherwise, would take more than twice as long to start: it gets an empty package. The extension looks for two
    classes of the package, which have no instance here.
    """
    if "typing" in sys.modules:
        return import_module("pydantic_monty")
    spec = find_spec("pydantic_monty")
    if spec is None:
        raise ModuleNotFoundError("No module named 'pydantic_monty'", name="pydantic_monty")
    package, wrappers = ModuleType("pydantic_monty"), ModuleType("pydantic_monty.class_instance")
    package.__path__ = spec.submodule_search_locations or []
    for name in ("ClassInstance", "ClassType"):
        setattr(wrappers, name, type(name, (), {}))
    sys.modules |= {"pydantic_monty": package, "pydantic_monty.class_instance": wrappers}
    return import_module("pydantic_monty._monty")


def _table(names: Mapping[str, frozenset[str]]) -> str:
    return "{" + ", ".join(f"{kind!r}: {' '.join(sorted(each))!r}.split()" for kind, each in names.items()) + "}"


def _chunk(number: int) -> str:
    """What the script of a run is called."""
    return "script" if number == 1 else f"script#{number}"


def _plain(function: str) -> str:
    """The name that a function has in the script; see rewriting.py."""
    return "<lambda>" if re.fullmatch(r"_f\d+", function) else function.removeprefix(TWIN)


def _read(name: str) -> str:
    with open(f"{PRELUDE}/{name}.monty", encoding="utf-8") as file:  # noqa: PTH123 - pathlib is slow to import here
        return file.read()
