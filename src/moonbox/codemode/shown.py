"""What the model is shown of a toolbox, and what its calls ask for."""

from __future__ import annotations

import copy
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from moonbox.codemode.catalog import Catalog, make_catalog
from moonbox.codemode.client_calls import Reply
from moonbox.codemode.code_tool import Choice, CodeTool, choose
from moonbox.codemode.definitions import Definition, find_script, from_tool, parse_arguments, provider_names, shorten
from moonbox.codemode.routing import ClientTools, Routes
from moonbox.languages.registry import language
from moonbox.suggest import unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from moonbox.config.sections import CodeModeSettings
    from moonbox.sandbox.sandbox import Sandbox
    from moonbox.tools.tool import Tool
    from moonbox.tools.toolbox import Toolbox


@dataclass(frozen=True, slots=True)
class View:
    """What the model is shown."""

    code: Definition
    catalog: Catalog
    direct: dict[str, Tool]
    choice: Choice
    added: dict[str, str]
    """What was added beside tools."""


class Shown:
    """A Sandbox's tools as a model sees them, and the reader of its calls, which may be wrong in any way."""

    def __init__(
        self,
        sandbox: Sandbox,
        settings: CodeModeSettings,
        *,
        count: Callable[[str], int],
        later: Collection[str],
        client_tools: ClientTools,
    ) -> None:
        self._sandbox, self._settings, self._count = sandbox, settings, count
        self._later, self._client_tools = later, client_tools
        self._texts = language(sandbox.language).texts
        self._take(sandbox.toolbox)
        self.learn(shapes=settings.learned_shapes)

    def of(self, toolbox: Toolbox) -> Shown:
        """The same of other tools."""
        other = copy.copy(self)
        other._take(toolbox)
        return other

    def _take(self, toolbox: Toolbox) -> None:
        settings = self._settings
        self.toolbox = toolbox
        self.routes = Routes(
            toolbox,
            keep_visible=settings.keep_visible,
            approvals=settings.approvals,
            client_tools=self._client_tools,
            later=self._later,
        )
        self.code_tool = CodeTool(settings, self._texts, self.routes, self._sandbox, self._count)
        self._view: View | None = None
        self._lock = threading.Lock()

    def learn(self, *, shapes: bool) -> None:
        """Take in what is known of results now; shapes only if they are shown."""
        learned = self._sandbox.toolbox.learned
        with self._lock:
            self._shapes = learned.snapshot() if shapes else {}
            self._sizes, self._uses = learned.sizes(), learned.uses()
            self._view = None

    def current(self) -> View:
        """What is shown now; made anew when the tools have changed."""
        with self._lock:
            added = self._sandbox.docs.added()
            if self.routes.update() or self._view is None or self._view.added != added:
                self._view = self._make_view(added)
            return self._view

    def definitions(self, view: View, labels: Mapping[str, str] | None) -> list[Definition]:
        """The code tool, for a conversation with these labels, and the direct tools."""
        direct, code = _definitions(view.direct), view.code
        if labels and not view.choice.both:
            code = self.code_tool.definition(self._make_catalog(labels), view.added)
        shown = [code, *direct] if view.choice.code else direct
        return [item.within(self._settings.description_chars) for item in shown]

    def only_direct(self) -> dict[str, Tool]:
        """The tools that the model can call and scripts cannot, by the names that models use."""
        direct = {} if self._view is None else self._view.direct
        return {name: tool for name, tool in direct.items() if tool.path not in self.routes.hidden}

    def _make_catalog(self, labels: Mapping[str, str] | None = None) -> Catalog:
        return make_catalog(
            self.routes.hidden,
            self._texts,
            full_schemas=self._settings.full_schemas,
            budget=self._settings.catalog_tokens,
            count=self._count,
            shapes=self._shapes,
            leave_out=self.routes.kept,
            uses=self._uses,
            labels=labels,
        )

    def _make_view(self, added: dict[str, str]) -> View:
        catalog = self._make_catalog()
        code = self.code_tool.definition(catalog, added)
        direct = provider_names(self.routes.direct, [self.code_tool.name])
        everything = provider_names(self.toolbox, [self.code_tool.name])
        lean = self.code_tool.lean(everything, self._shapes)
        choice = choose(
            self._settings.mode,
            [code, *_definitions(direct)],
            _definitions(everything),
            lean,
            prompt=self.code_tool.prompt(),
            hidden=self.routes.hidden,
            sizes=self._sizes,
            count=self._count,
        )
        shown = direct if choice.code and not choice.both else everything
        return View(lean if choice.both else code, catalog, shown, choice, added)

    def read(self, name: Any, arguments: Any, view: View) -> str | tuple[Tool, dict[str, Any]] | Reply:
        """The script, or the tool and its arguments, or the answer to an invalid call."""
        if not isinstance(name, str):
            return Reply(f"error: the tool's name must be a string, not {shorten(name)}", True)
        given = parse_arguments(arguments)
        if view.choice.code and name == self.code_tool.name:
            return self._source(given)
        tool = view.direct.get(name) or next((tool for tool in view.direct.values() if tool.path == name), None)
        if tool is None:
            return Reply(self._unknown(name, view), True)
        if given is None:
            return Reply(f"error: the arguments of {name} must be a JSON object, not {shorten(arguments)}", True)
        return tool, given

    def _source(self, given: dict[str, Any] | None) -> str | Reply:
        code_tool = self.code_tool
        wanted = f'error: {code_tool.name} takes one argument: {{"{code_tool.parameter}": "<script>"}}'
        if given is None:
            return Reply(f"{wanted}; the arguments were not a JSON object", True)
        source = find_script(given, code_tool.parameter)
        return Reply(f"{wanted}, not {shorten(given)}", True) if source is None else source

    def _unknown(self, name: str, view: View) -> str:
        hidden, code_name = self.routes.hidden, self.code_tool.name
        if view.choice.code and (name in hidden or name.replace("__", ".") in hidden):
            path = name if name in hidden else name.replace("__", ".")
            written = self._texts.call.format(name=self._texts.written(hidden.alias(path)))
            return f"error: {name} is called from a script: use {code_name} and write {written}"
        return f"error: {unknown('tool', name, [*([code_name] if view.choice.code else []), *view.direct])}"


def _definitions(tools: Mapping[str, Tool]) -> list[Definition]:
    return [from_tool(tool, name) for name, tool in tools.items()]
