"""Connector scripts: .lua files that deliver documents to the knowledge base."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from moonbox.errors import ConfigError
from moonbox.knowledge.records import KnowledgeError, Scanned
from moonbox.scripts.configured import ScriptSettings
from moonbox.scripts.definition import read_source, script_repl
from moonbox.suggest import nearest, unknown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from moonbox.sandbox.repl import Repl

_CHECK = """
if type(connector) ~= "table" or type(connector.scan) ~= "function" then
  return "it must set connector = {name = …} and function connector.scan(config, cursor)"
end
"""
_SCAN = "return connector.scan(config, cursor)"
_MOST_PAGES = 10_000


@dataclass(frozen=True, slots=True)
class ScriptConnector:
    """A connector whose scan is a Lua function.

    `connector.scan(config, cursor)` returns a list of items, or {items = …, next = cursor} to be called again with it.
    """

    settings: ScriptSettings
    section: str
    require: tuple[str, ...] = ()
    """Layers of the jail without which its script is not run."""

    def scan(self, known: Mapping[str, str]) -> Iterator[Scanned]:
        from moonbox.sandbox.sandbox import Sandbox

        source = read_source(self.settings.path)
        with (
            Sandbox(min_workers=0, require=self.require) as sandbox,
            script_repl(sandbox, self.settings, section=self.section) as repl,
        ):
            repl.define("config", dict(self.settings.config))
            self._run(repl, source)
            problem = self._run(repl, _CHECK)
            if problem:
                raise KnowledgeError(f"{self.settings.path.name}: {problem}")
            yield from self._pages(repl)

    def _pages(self, repl: Repl) -> Iterator[Scanned]:
        cursor: Any = None
        for _ in range(_MOST_PAGES):
            repl.define("cursor", cursor)
            page = self._run(repl, _SCAN)
            is_page = isinstance(page, dict) and "items" in page
            if is_page and (misspelled := [key for key in page if key != "next" and nearest(str(key), ("next",))]):
                problem = unknown("key", str(misspelled[0]), ("items", "next"))
                raise KnowledgeError(f"{self.settings.path.name}: connector.scan returned an {problem}")
            items, cursor = (page["items"], page.get("next")) if is_page else (page, None)
            if items == {}:
                items = []
            if not isinstance(items, list):
                raise KnowledgeError(f"{self.settings.path.name}: connector.scan must return a list of items")
            yield from items
            if cursor is None:
                return
        raise KnowledgeError(f"{self.settings.path.name}: connector.scan returned more than {_MOST_PAGES:,} pages")

    def _run(self, repl: Repl, source: str) -> Any:
        run = repl.run(source)
        if run.error is not None:
            raise KnowledgeError(f"{self.settings.path.name}: {run.error}")
        return run.value


@dataclass(frozen=True, slots=True)
class ScriptConnectorKind:
    """A connector that is a script: path, timeout, grants; every further key is the script's own configuration."""

    protected: tuple[str, ...] = ()
    """Paths that the script cannot write, whatever its grants are."""
    hidden: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Values of variables that its documents must not contain."""
    require: tuple[str, ...] = ()
    """As in [sandbox]."""

    def build(self, options: Mapping[str, Any], base_dir: Path, where: str) -> ScriptConnector:
        settings = ScriptSettings.from_dict(
            where.rpartition(".")[2], options, base_dir, section=where, protected=self.protected, hidden=self.hidden
        )
        if settings.tools:
            raise ConfigError(f"[{where}] a connector script cannot call tools; remove the key tools")
        return ScriptConnector(settings, where, self.require)

    def schema(self) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": {"path": {"type": "string"}, "timeout": {"type": "number", "exclusiveMinimum": 0}},
            "required": ["path"],
        }
