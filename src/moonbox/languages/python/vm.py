"""The engine for Python scripts: drives Monty's process step by step, and speaks with the host as every engine does."""

from __future__ import annotations

import json
import keyword
import os
import re
import time
from contextlib import suppress
from datetime import UTC, datetime

from moonbox.languages.engine import EngineLost, EngineReport
from moonbox.languages.python.answers import Calls, Stopped
from moonbox.languages.python.encode import Encoder, Refused, TooLarge
from moonbox.languages.python.rewriting import Rewritten, rewrite

TYPE_CHECKING = False  # see worker/protocol.py: a worker starts without `typing`
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from moonbox.languages.engine import Wire

PRELUDE = os.path.join(os.path.dirname(__file__), "prelude")  # noqa: PTH118, PTH120 - as in lua/vm.py
_REASONS = {0: "", 1: "time", 2: "cancelled", 3: "calls", 4: "memory"}
_PART = "\x1f"  # separates the parts of a name
_KEPT_FROM, _KEPT_SHARE = 500, 16  # bytes; share of max_memory: see lua/prelude/kept.lua
_MOST_FRAMES = 20
_PATIENCE = 0.8  # seconds for Monty's own limit to stop what the host has interrupted
_UNLIMITED = 2**31 - 1
_SIGKILL = 9
_RESOURCES = (
    ("memory", "MemoryError: memory limit exceeded"),
    ("memory", "MemoryError: the worker exceeded its memory limit"),
    ("time", "TimeoutError: feed time limit exceeded"),
)
_CLOCKS = frozenset({"time.monotonic", "time.perf_counter", "time.process_time"})
_NO_SLEEP = "scripts cannot sleep: go on, and look again in a later run"


class MontyVM:
    """One session of Monty. Runs are serial; `interrupt` may be called from another thread."""

    is_native = False
    polling = ""
    warm_up = None
    """No script that a zygote could run: the session begins in the worker."""

    def __init__(self, native: Any = None) -> None:
        import collections  # noqa: F401 - Monty's client imports these when it first meets such values
        import decimal  # noqa: F401
        import pathlib  # noqa: F401
        import uuid  # noqa: F401

        import pydantic_monty

        self._monty = pydantic_monty
        self._pool: Any = None
        self._session: Any = None
        self._modules: dict[str, Any] = {}
        self._ours = {name[:-6] for name in os.listdir(PRELUDE) if name.endswith(".monty")} - {"functions", "pages"}  # noqa: PTH208
        self._sources = {name: _read(name) for name in ("functions", "pages", *self._ours)}
        self._limits: Mapping[str, Any] = {}
        self._environment: Mapping[str, Any] = {}
        self._inputs: list[tuple[str, Any]] = []
        self._calls = Calls()
        self._used = False
        self._pid = 0
        self._feeds: list[tuple[str, Rewritten | None]] = []
        self._printed = 0
        self._output: list[str] = []
        self._run_number = self._reason = 0
        self._overflow = 0.0
        self._ended = False
        self._chunk = ""
        self._defined: dict[str, None] = {}

    # The host's requests

    def start(self, program: str) -> int:
        """Start Monty's process; its number."""
        self._pool = self._monty.Monty(
            binary_path=program,
            max_processes=1,
            feed_duration_limit_grace=None,  # the host's clock ends what does not stop
            turn_duration_limit_grace=None,
        ).__enter__()
        self._open()
        self._pid = int(self._session.worker_pid)
        return self._pid

    def connect(self, wire: Wire) -> None:
        self._calls.wire = wire

    def configure(self, config: Mapping[str, Any]) -> None:
        self._environment = config
        if self._pool is not None:
            self._open() if not self._used else self._define()

    def set_limits(self, limits: Mapping[str, Any]) -> None:
        self._limits = limits
        if self._pool is not None and not self._used:
            self._open()

    def set_inputs(self, inputs: list[tuple[str, Any]]) -> None:
        """Globals of the next run, and of that run only."""
        self._inputs = inputs

    def globals(self) -> bytes:
        """JSON of [name, kind] pairs: what scripts have defined."""
        return json.dumps([[name, "value"] for name in self._defined]).encode()

    @property
    def output_cut(self) -> int:
        """Bytes printed past the limit in the last run."""
        return int(max(0, self._printed - self._limits["max_output"]))

    def interrupt(self, number: int, reason: int) -> bool:
        """From another thread: stop that run. Nothing interrupts Monty: what its own limit does not stop, is killed."""
        if self._run_number != number:
            return False
        self._reason = reason
        time.sleep(_PATIENCE)
        if self._run_number == number and not self._calls.waiting:
            self._end()
        return True

    def _end(self) -> None:
        """End Monty's process; the run then ends too."""
        with suppress(OSError):
            self._ended = True
            os.kill(self._pid, _SIGKILL)

    def interrupt_any(self, reason: int) -> None:
        if self._run_number:
            self.interrupt(self._run_number, reason)

    def halt(self, reason: int) -> None:
        """The run under way must stop for that reason."""
        self._reason = reason

    # One run

    def run(self, source: bytes, number: int, seed: int) -> EngineReport:
        """Run one script to its end."""
        report = EngineReport()
        self._run_number, self._reason, self._printed, self._used = number, 0, 0, True
        self._chunk = "script" if number == 1 else f"script#{number}"
        self._output = []
        began = time.thread_time()
        text = source.decode("utf-8", "replace")
        encoder = Encoder(self._limits)
        self._calls.begin(encoder)
        try:
            value = self._execute(text, number, seed)
            self._run_number = 0
            if self._calls.refused:
                raise Stopped
            report.values = b"[]" if value is None else b"[" + encoder.encode(value, "value") + b"]"
            report.kept = self._keep(number, value, len(report.values))
        except Stopped:
            report.kind, report.limit = "stop", self._stop()
        except TooLarge as problem:
            report.kind, report.limit, report.message = "stop", problem.limit, str(problem).encode()
        except Refused as problem:
            report.kind, report.message = "runtime", str(problem).encode()
        except self._monty.MontyCrashedError:
            if not self._stop():
                raise EngineLost from None
            report.kind, report.limit, self._ended = "stop", self._stop(), True
        except self._monty.MontyError as problem:
            self._fail(report, problem)
        finally:
            self._run_number = 0
        if self._ended:
            report.last, report.extra = True, json.dumps({**json.loads(report.extra), "lost": True}).encode()
        self._calls.end()
        report.cpu = time.thread_time() - began
        return report

    def _stop(self) -> str:
        """Why the run has to end; empty where it has not."""
        return "output" if self._calls.refused else _REASONS.get(self._reason, "")

    def _execute(self, text: str, number: int, seed: int) -> Any:
        script = rewrite(text, self._calls.is_tool, self._ours, number)
        for module in script.modules:
            self._feed(self._sources[module])
        if "random" in text:
            self._feed(f"import random as _random\n_random.seed({seed})")
        for definition in script.before:
            self._feed(definition.text, self._chunk, definition)
        inputs = dict(self._inputs)
        self._inputs = []
        try:
            return self._feed(script.text, self._chunk, script, inputs)
        finally:
            if inputs:
                self._forget(inputs)

    def _feed(self, text: str, chunk: str = "", script: Rewritten | None = None, inputs: Any = None) -> Any:
        """Feed a text to Monty and answer what it asks until it is done."""
        monty = self._monty
        self._feeds.append((chunk, script))
        options: Any = {"inputs": inputs} if inputs else {}
        step = self._session.feed_start(text, print_callback=self._print, skip_type_check=True, **options)
        while not isinstance(step, monty.MontyComplete):
            try:
                if isinstance(step, monty.FutureSnapshot):
                    step = step.resume(self._calls.settled(step.pending_call_ids))
                elif isinstance(step, monty.NameLookupSnapshot):
                    step = self._name(step)
                elif step.is_os_function:
                    step = self._system(step)
                else:
                    step = step.resume(self._calls.answer(step, self._is_awaited(step)))
            except (Stopped, Refused, TooLarge):
                self._abandon(step)
                raise
        return step.output

    def _abandon(self, step: Any) -> None:
        """End a script that waits: it gets an error that `except Exception` does not catch."""
        monty = self._monty
        for _ in range(100):
            if isinstance(step, monty.MontyComplete):
                return
            try:
                if isinstance(step, monty.FutureSnapshot):
                    step = step.resume({call: {"exception": KeyboardInterrupt()} for call in step.pending_call_ids})
                elif isinstance(step, monty.NameLookupSnapshot):
                    step = step.resume()
                else:
                    step = step.resume({"exception": KeyboardInterrupt()})
            except monty.MontyCrashedError:
                raise
            except monty.MontyError:
                return
        self._end()

    def _is_awaited(self, step: Any) -> bool:
        place = step.position
        at = place.filename.removeprefix("<python-input-").rstrip(">")
        script = self._feeds[int(at)][1] if at.isdigit() and int(at) < len(self._feeds) else None
        return bool(step.allow_eager_await) or (script is not None and (place.start, place.end) in script.awaited)

    def _name(self, step: Any) -> Any:
        function = self._calls.function(step.variable_name)
        return step.resume() if function is None else step.resume(value=function)

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
        data = text.encode("utf-8", "replace")
        room = self._limits["max_output"] - self._printed
        self._printed += len(data)
        self._output.append(text)
        if room > 0:
            self._calls.wire.emit(data if len(data) <= room else data[:room])
        if len(data) > room and not self._calls.refused:
            self._calls.refused, self._overflow = True, time.monotonic()
        elif self._calls.refused and time.monotonic() - self._overflow > _PATIENCE:
            self._end()

    # How it ends

    def _fail(self, report: EngineReport, problem: Any) -> None:
        monty, text = self._monty, str(problem)
        report.kind, report.message = "runtime", text.encode("utf-8", "replace")
        frames, column = self._frames(problem.traceback() if hasattr(problem, "traceback") else [])
        report.frames = json.dumps(frames).encode()
        extra: dict[str, Any] = {"column": column} if column else {}
        lines = [line for chunk, line, _ in frames if chunk == self._chunk]
        if lines:
            extra["line"] = lines[0]
        failed = self._calls.failures.get(text.removeprefix("RuntimeError: "))
        if self._stop():
            report.kind, report.limit, report.message = "stop", self._stop(), b""
        elif isinstance(problem, monty.MontySyntaxError):
            report.kind = "syntax"
        elif failed is not None and text.startswith("RuntimeError: "):
            report.kind, report.message = "tool", str(failed.get("message")).encode("utf-8", "replace")
            extra["data"] = [failed]
        for limit, beginning in _RESOURCES:
            if report.kind == "runtime" and text.startswith(beginning):
                report.kind, report.limit, report.message = "stop", limit, b""
                self._ended = not self._is_usable()
        report.extra = json.dumps(extra).encode()

    def _is_usable(self) -> bool:
        """Whether the session can go on: what filled its memory may still be there."""
        try:
            self._feed("None")
        except (self._monty.MontyError, RuntimeError):
            return False
        return True

    def _frames(self, traceback: list[Any]) -> tuple[list[tuple[str, int, str]], int]:
        """Of the scripts only, innermost first; and the column of the first that is in this run's script."""
        frames, column = [], 0
        for frame in reversed(traceback):
            at = frame.filename.removeprefix("<python-input-").rstrip(">")
            chunk, script = self._feeds[int(at)] if at.isdigit() and int(at) < len(self._feeds) else ("", None)
            if not chunk:
                continue
            if not column and chunk == self._chunk:
                column = script.column(frame.line, frame.column) if script is not None else frame.column
            frames.append((chunk, frame.line, frame.function_name or "<module>"))
        return frames[:_MOST_FRAMES], column

    def _keep(self, number: int, value: Any, size: int) -> int:
        """Keep a large value, and a large output, under a name for later runs; which of them were kept."""
        kept: dict[str, Any] = {}
        if size >= _KEPT_FROM and size <= self._limits["max_memory"] // _KEPT_SHARE:
            kept[f"_{number}"] = kept["_"] = value
        if self._printed >= _KEPT_FROM:
            kept[f"_{number}_printed"] = "".join(self._output)
        if not kept:
            return 0
        try:
            self._feed("None", inputs=kept)
        except (self._monty.MontyError, RuntimeError):
            return 0
        return ("_" in kept) + 2 * (f"_{number}_printed" in kept)

    # The session

    def _open(self) -> None:
        """Begin a new session, with the limits and the environment as they are."""
        if self._session is not None:
            self._session.__exit__(None, None, None)
        limits: dict[str, Any] = {"max_suspensions": _UNLIMITED, "max_memory": self._limits["max_memory"]}
        if self._limits["timeout"] is not None:
            limits["max_feed_duration_secs"] = float(self._limits["timeout"])
        self._session = self._pool.checkout(
            limits=limits,
            external_modules=self._modules,
            os_policy={"datetime": "call_host", "sleep": "call_host", "random_start": {"seed": 0}},
        ).__enter__()
        self._feeds = []
        self._printed = 0
        functions = Rewritten(self._sources["functions"])
        functions.awaited = {match.span(1) for match in re.finditer(r"r = (f\(x\))", functions.text)}
        self._feed(functions.text, "", functions)
        self._feed(self._sources["pages"])
        self._define()

    def _define(self) -> None:
        """Make tools, functions and values known to the session."""
        environment = self._environment
        tree: dict[str, Any] = {}
        self._calls.configure(environment)
        for name, target in self._calls.targets.items():
            *spaces, last = name.split(".")
            place = tree
            for space in spaces:
                inner = place.get(space)
                place[space] = place = inner if isinstance(inner, dict) else {}
            place.setdefault(last, target)
        values = {}
        for name, value in environment["values"]:
            root, _, rest = name.partition(_PART)
            if not rest:
                values[name] = value
            else:
                tree.setdefault(root, {})[rest] = value
        roots = {name: inner for name, inner in tree.items() if isinstance(inner, dict)}
        self._modules.clear()
        self._modules.update((name, self._module(inner)) for name, inner in roots.items())
        self._feed("\n".join(["pass", *(f"import {name}" for name in roots)]), inputs=values)

    def _module(self, members: dict[str, Any]) -> Any:
        attributes = {
            name: self._module(item) if isinstance(item, dict) else _stand_in if isinstance(item, str) else item
            for name, item in members.items()
            if not keyword.iskeyword(name)
        }
        return self._monty.ExternalModule(attributes)

    def _forget(self, inputs: Mapping[str, Any]) -> None:
        with suppress(self._monty.MontyError, RuntimeError):
            self._feed(";".join(f"{name}=None" for name in inputs))


def _stand_in(*_: Any) -> None:
    """What a module of Monty has in the place of a tool; the call itself comes as a snapshot."""


def _read(name: str) -> str:
    with open(f"{PRELUDE}/{name}.monty", encoding="utf-8") as file:  # noqa: PTH123 - pathlib is slow to import here
        return file.read()
