"""A Lua engine of the tests' own, and what `explain` makes of its reports."""

from __future__ import annotations

import json
import threading
import tomllib
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moonbox.languages.language import EngineError
from moonbox.languages.lua.explain.compose import compose
from moonbox.languages.lua.vm import LuaVM
from moonbox.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from moonbox.errors import ScriptError
    from moonbox.languages.engine import EngineReport

MOST_CALLS = 1_500_000
"""Calls of functions, Python's own among them, that the explanation of any script may take."""
CASES: dict[str, Any] = tomllib.loads(Path(__file__).with_name("cases.toml").read_text(encoding="utf-8"))
TOOLS = ("echo", "github.create_issue", "github.list_issues", "weather.get_forecast")


class Bench:
    """Runs scripts one after another in one Lua state, as a Repl does; `compose` is asked, so that a flaw shows."""

    def __init__(
        self,
        *,
        tools: Sequence[str] = TOOLS,
        limits: Limits | None = None,
        failures: Mapping[str, dict[str, Any]] | None = None,
        features: Sequence[str] = (),
    ) -> None:
        self.tools = tuple(tools)
        self.limits = limits or Limits()
        self.vm = LuaVM()
        self.sources: dict[str, str] = {}
        self.printed = threading.Event()
        self._failures = dict(failures or {})
        self.vm.connect(self)
        entries = [[path.replace(".", "\x1f"), f"tools.{path}"] for path in (*self.tools, *self._failures)]
        self.vm.configure({"tools": entries, "functions": [], "values": [], "features": list(features)})
        self.vm.set_limits(self.limits.to_dict())

    def report(self, source: str) -> EngineReport:
        number = len(self.sources) + 1
        self.sources["script" if number == 1 else f"script#{number}"] = source
        return self.vm.run(source.encode(), number, 1)

    def value(self, source: str) -> Any:
        """What a script returns."""
        report = self.report(source)
        assert report.kind == "ok", report.message
        return json.loads(report.values)[0]

    def error(self, source: str) -> EngineError | None:
        """What the engine reports of a run; None when it went well."""
        report = self.report(source)
        if report.kind == "ok":
            return None
        frames = tuple((chunk, line, name) for chunk, line, name in json.loads(report.frames))
        return EngineError(report.kind, report.message.decode(), report.limit, frames, json.loads(report.extra))

    def run(self, source: str) -> ScriptError | None:
        error = self.error(source)
        return None if error is None else self.explain(error)

    def fails(self, source: str) -> ScriptError:
        error = self.run(source)
        assert error is not None, "the script did not fail"
        return error

    def explain(self, error: EngineError) -> ScriptError:
        return compose(error, sources=self.sources, tools=self.tools, limits=self.limits)

    @contextmanager
    def interrupted(self, number: int | None = None) -> Iterator[list[bool]]:
        """Interrupt the next run, or that one, from another thread once a script prints; whether it was under way."""
        accepted: list[bool] = []
        wanted = len(self.sources) + 1 if number is None else number

        def interrupt() -> None:
            assert self.printed.wait(30)
            accepted.append(self.vm.interrupt(wanted, 1))

        self.printed.clear()
        thread = threading.Thread(target=interrupt)
        thread.start()
        yield accepted
        thread.join()

    # The wire of the engine

    def exchange(self, calls: bytes) -> list[tuple[int, bool, Any]]:
        answers: list[tuple[int, bool, Any]] = []
        for call, target, arguments in json.loads(calls or b"[]"):
            failure = self._failures.get(target.removeprefix("tools."))
            answers.append(
                (call, False, dict(failure)) if failure else (call, True, arguments[0] if arguments else None)
            )
        return answers

    def cancel(self, ids: bytes) -> None:
        pass

    def emit(self, text: bytes) -> None:
        self.printed.set()
