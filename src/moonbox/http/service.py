"""The service behind the HTTP API: which tools and runs there are, without any HTTP."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from moonbox.audit.sinks import MemorySink
from moonbox.errors import AuditError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from moonbox.audit.records import Run
    from moonbox.sandbox.sandbox import Sandbox
    from moonbox.tools.tool import Tool

__all__ = ["Service"]

_REMEMBERED_RUNS = 200


@dataclass(slots=True)
class Service:
    """What is served."""

    sandbox: Sandbox
    builtin: Collection[str] = ()
    """Paths of the tools that come with moonbox."""
    trail: Any = None
    """Where runs are read from: a sink that can be read. Without one the latest runs are kept in memory."""
    refresh: Callable[[], object] = field(default=lambda: None)
    """Called before tools are listed or called: takes up changed files."""
    recent: MemorySink = field(default_factory=lambda: MemorySink(_REMEMBERED_RUNS))

    def tools(self) -> list[dict[str, Any]]:
        self.refresh()
        return [self.describe(tool) for tool in self.sandbox.toolbox]

    def describe(self, tool: Tool) -> dict[str, Any]:
        return {
            "name": tool.path,
            "description": tool.description,
            "builtin": tool.path in self.builtin,
            "parameters": tool.parameters,
            "returns": tool.returns,
        }

    async def call(self, name: str, arguments: dict[str, Any]) -> Run:
        self.refresh()
        return self._kept(await self.sandbox.acall(name, arguments))

    async def run(self, source: str) -> Run:
        return self._kept(await self.sandbox.arun(source))

    def runs(self, limit: int, offset: int) -> list[dict[str, Any]]:
        return [summary.to_dict() for summary in self._readable().list(limit, offset)]

    def find(self, run: str) -> Run | None:
        try:
            found: Run = self._readable().get(run)
        except (AuditError, UsageError):
            return None
        return found

    def _kept(self, run: Run) -> Run:
        if self.trail is None:
            self.recent.write(run)
        return run

    def _readable(self) -> Any:
        return self.trail if self.trail is not None else self.recent
