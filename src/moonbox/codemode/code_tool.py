"""The code tool: its definition with the catalog, its lean definition beside direct tools, and its system prompt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moonbox.codemode.catalog import with_results
from moonbox.codemode.definitions import Definition

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from moonbox.codemode.catalog import Catalog
    from moonbox.codemode.routing import Routes
    from moonbox.config.sections import CodeModeSettings
    from moonbox.languages.texts import Texts
    from moonbox.limits import Limits
    from moonbox.tools.document import Schema
    from moonbox.tools.tool import Tool

__all__ = ["CodeTool"]


class CodeTool:
    """What the model is told about the tool that takes scripts."""

    def __init__(
        self, settings: CodeModeSettings, texts: Texts, routes: Routes, limits: Limits, count: Callable[[str], int]
    ) -> None:
        self._settings, self._texts, self._routes, self._limits, self._count = settings, texts, routes, limits, count

    @property
    def name(self) -> str:
        return self._settings.name or self._texts.name

    @property
    def parameter(self) -> str:
        """The name of its one parameter."""
        return self._settings.parameter or self._texts.parameter

    def prompt(self) -> str:
        """The addition to the system prompt."""
        if self._settings.system_prompt is not None:
            return self._settings.system_prompt
        reached = len(self._routes.hidden) > 0
        chosen = self._texts.system_prompt if reached else self._texts.system_prompt_without_tools
        return chosen.format(name=self.name)

    def definition(self, catalog: Catalog) -> Definition:
        """With the catalog of what scripts reach."""
        texts, hidden, kept = self._texts, self._routes.hidden, self._routes.kept
        own = self._settings.description
        parts = [texts.description if own is None else own]
        if len(hidden):
            parts += [texts.with_tools, *self._limits_text()] if own is None else []
            parts += [catalog.text] if catalog.tools else []
        if kept:
            names = ", ".join(sorted(texts.written(hidden.alias(path)) for path in kept))
            parts.append(texts.also_in_scripts.format(names=names))
        parameter = {"type": "string", "description": texts.parameter_description}
        return self._make("\n".join(parts), parameter, read_only=not len(hidden))

    def lean(self, everything: Mapping[str, Tool], shapes: Mapping[str, Schema]) -> Definition:
        """Beside direct definitions of every tool, by their names: these say the rest."""
        texts, hidden = self._texts, self._routes.hidden
        parts = [texts.lean if self._settings.description is None else self._settings.description]
        if any(tool.namespace for tool in hidden):
            parts.append(texts.lean_namespaces)
        if direct := [name for name, tool in everything.items() if tool.path not in hidden]:
            parts.append(texts.not_in_scripts.format(names=", ".join(direct)))
        definition = self._make(" ".join(parts), {"type": "string"}, read_only=False)
        return with_results(definition, hidden, texts, shapes, self._count)

    def _make(self, description: str, parameter: dict[str, Any], *, read_only: bool) -> Definition:
        schema = {
            "type": "object",
            "properties": {self.parameter: parameter},
            "required": [self.parameter],
            "additionalProperties": False,
        }
        annotations = {"readOnlyHint": read_only}
        return Definition(self.name, description, schema, annotations=annotations, overflow=self.parameter)

    def _limits_text(self) -> list[str]:
        limits = self._limits
        calls = [] if limits.max_tool_calls is None else [f"{limits.max_tool_calls} tool calls"]
        time = [] if limits.timeout is None else [f"{limits.timeout:g} seconds"]
        what = " and ".join([*calls, *time])
        return [self._texts.limits.format(what=what)] if what and self._texts.limits else []
