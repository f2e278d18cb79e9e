"""What a call of the model's asks for: a script, or a tool and its arguments; or the answer to an invalid call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from moonbox.codemode.client_calls import Reply
from moonbox.codemode.definitions import find_script, parse_arguments, shorten
from moonbox.suggest import unknown

if TYPE_CHECKING:
    from moonbox.codemode.catalog import Catalog, Choice, CodeTool
    from moonbox.codemode.definitions import Definition
    from moonbox.codemode.routing import Routes
    from moonbox.languages.language import Texts
    from moonbox.tools.tool import Tool


@dataclass(frozen=True, slots=True)
class View:
    """What the model is shown."""

    code: Definition
    catalog: Catalog
    direct: dict[str, Tool]
    choice: Choice


class CallReader:
    """Reads the calls of a model, which may be wrong in any way."""

    def __init__(self, code_tool: CodeTool, routes: Routes, texts: Texts) -> None:
        self._code_tool = code_tool
        self._routes = routes
        self._texts = texts

    def read(self, name: Any, arguments: Any, view: View) -> str | tuple[Tool, dict[str, Any]] | Reply:
        """The script, or the tool and its arguments, or the answer to an invalid call."""
        if not isinstance(name, str):
            return Reply(f"error: the tool's name must be a string, not {shorten(name)}", True)
        given = parse_arguments(arguments)
        if view.choice.code and name == self._code_tool.name:
            return self._source(given)
        tool = view.direct.get(name) or next((tool for tool in view.direct.values() if tool.path == name), None)
        if tool is None:
            return Reply(self._unknown(name, view), True)
        if given is None:
            return Reply(f"error: the arguments of {name} must be a JSON object, not {shorten(arguments)}", True)
        return tool, given

    def _source(self, given: dict[str, Any] | None) -> str | Reply:
        code_tool = self._code_tool
        wanted = f'error: {code_tool.name} takes one argument: {{"{code_tool.parameter}": "<script>"}}'
        if given is None:
            return Reply(f"{wanted}; the arguments were not a JSON object", True)
        source = find_script(given, code_tool.parameter)
        return Reply(f"{wanted}, not {shorten(given)}", True) if source is None else source

    def _unknown(self, name: str, view: View) -> str:
        hidden, code_name = self._routes.hidden, self._code_tool.name
        if view.choice.code and (name in hidden or name.replace("__", ".") in hidden):
            path = name if name in hidden else name.replace("__", ".")
            written = self._texts.call.format(name=self._texts.written(hidden.alias(path)))
            return f"error: {name} is called from a script: use {code_name} and write {written}"
        return f"error: {unknown('tool', name, [*([code_name] if view.choice.code else []), *view.direct])}"
