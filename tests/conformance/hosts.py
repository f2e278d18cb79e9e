"""Hosts that run scripts: Python with processes, Python inline, Node and Chromium, behind one small interface."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from moonbox import Limits, Run, Sandbox

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from moonbox import Toolbox

ROOT = Path(__file__).parents[2]
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome") or ""
HOSTS = ("process", "inline", "node", "chromium")
MORE_HOSTS = {"deno": ("deno", "run", "-A"), "bun": ("bun",)}
"""Those that are not run unless they are asked for: the same driver as in Node."""


class Session(Protocol):
    """One Repl of a host: runs a script, with other limits where some are given."""

    def __call__(self, source: str, limits: dict[str, Any] | None = None) -> Run: ...


class Host(Protocol):
    """Something that runs scripts."""

    name: str

    def open(
        self, language: str, features: list[str], limits: dict[str, Any], *, check: bool, tools: str | None = None
    ) -> AbstractContextManager[Session]:
        """A Repl with those tools, by default the ones of its language."""

    def close(self) -> None: ...


def open_host(name: str, tools: Mapping[str, Toolbox]) -> Host:
    if name in ("process", "inline"):
        return PythonHost(name, tools)
    return DriverHost(name, tools)


def why_missing(name: str) -> str:
    """Why a host cannot be had here; empty when it can."""
    if name in ("process", "inline"):
        return ""
    if name in MORE_HOSTS and shutil.which(name) is None:
        return f"{name} is not installed"
    if shutil.which("node") is None:
        return "Node is not installed"
    if not (ROOT / "js" / "dist" / "index.js").exists():
        return "the npm package is not built; run: make js"
    if name == "chromium" and not CHROMIUM:
        return "Chromium is not installed"
    return ""


class PythonHost:
    """This process, with workers of its own or inline."""

    def __init__(self, isolation: str, tools: Mapping[str, Toolbox]) -> None:
        self.name = isolation
        self._tools = tools
        self._boxes: dict[tuple[str, tuple[str, ...], bool, str], Sandbox] = {}

    @contextlib.contextmanager
    def open(
        self, language: str, features: list[str], limits: dict[str, Any], *, check: bool, tools: str | None = None
    ) -> Iterator[Session]:
        key = language, tuple(features), check, tools or language
        if key not in self._boxes:
            self._boxes[key] = Sandbox(
                self._tools[tools or language],
                language=language,  # cases name only languages that exist
                isolation=self.name,  # type: ignore[arg-type]
                lua_features=set(features),
                check=check,
            )
        with self._boxes[key].repl(limits=Limits(**limits)) as repl:
            yield lambda source, limits=None: repl.run(source, limits=None if limits is None else Limits(**limits))

    def close(self) -> None:
        for box in self._boxes.values():
            box.close()


class DriverHost:
    """The npm package behind its driver, which speaks lines of JSON."""

    def __init__(self, name: str, tools: Mapping[str, Toolbox]) -> None:
        self.name = name
        script = "browser.mjs" if name == "chromium" else "node.mjs"
        self._process = subprocess.Popen(
            [*MORE_HOSTS.get(name, ("node",)), str(ROOT / "js" / "test" / script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env={**os.environ, "CHROMIUM": CHROMIUM},
        )
        self._last = 0
        for given, box in tools.items():
            self.ask("tools", name=given, tools=[describe(tool) for tool in box])

    def ask(self, op: str, **fields: Any) -> dict[str, Any]:
        """Send one request and wait for its answer."""
        self._last += 1
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"id": self._last, "op": op, **fields}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the driver of {self.name} ended with code {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        assert answer["id"] == self._last
        if "failed" in answer:
            raise RuntimeError(f"{self.name}: {answer['failed']}")
        return answer

    @contextlib.contextmanager
    def open(
        self, language: str, features: list[str], limits: dict[str, Any], *, check: bool, tools: str | None = None
    ) -> Iterator[Session]:
        with self.repl(language, features=features, limits=limits, check=check, tools=tools or language) as ask:
            yield lambda source, limits=None: Run.from_dict(ask(source=source, limits=limits)["run"])

    @contextlib.contextmanager
    def repl(self, language: str = "lua", **options: Any) -> Iterator[Callable[..., dict[str, Any]]]:
        """A Repl as a function that asks for a run; the answer has more than the run."""
        given = {"features": [], "limits": {}, "check": False, "tools": language, **options}
        repl = self.ask("open", language=language, **given)["repl"]
        try:
            yield functools.partial(self.ask, "run", repl=repl)
        finally:
            self.ask("close", repl=repl)

    def close(self) -> None:
        with contextlib.suppress(RuntimeError):  # it may be gone already
            self.ask("end")
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=30)
        self._process.stdout.close()


def describe(tool: Any) -> dict[str, Any]:
    """A tool as another host makes it."""
    return {
        "name": tool.name,
        "namespace": tool.namespace,
        "description": tool.description,
        "parameters": tool.parameters,
        "returns": tool.returns,
        "policy": tool.policy,
        "hints": tool.hints.to_dict(),
        "timeout": tool.timeout,
        "tags": list(tool.tags),
        "failures": tool.failures,
    }
