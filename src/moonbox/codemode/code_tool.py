"""The code tool in both sizes, and the choice between it, direct definitions of all tools, and both."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from moonbox.codemode.catalog import BYTES_PER_TOKEN
from moonbox.codemode.definitions import Definition, in_format
from moonbox.tools.document import Document
from moonbox.tools.learned import with_shape
from moonbox.tools.paging import paging_form
from moonbox.tools.signature import type_text, visible
from moonbox.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from moonbox.codemode.catalog import Catalog
    from moonbox.codemode.routing import Routes
    from moonbox.config.sections import CodeModeSettings
    from moonbox.languages.language import Texts
    from moonbox.sandbox.sandbox import Sandbox
    from moonbox.tools.document import Schema
    from moonbox.tools.learned import ResultSize
    from moonbox.tools.tool import Tool
    from moonbox.tools.toolbox import Toolbox

LEAN_TOKENS = 250
"""The most that the definition of a lean code tool takes."""
_MOST_NAMES = 12
_RECORDS = r"(?:\}|\b(?:[A-Z]\w*|any|object))\[\]|: array\b|-> (?:any|array|object)\b|\{\[string\]: [A-Z{]"
"""In a catalog: a list of objects, an object of objects, a result of which nothing is known."""
_ENOUGH_RESULTS = 3
"""Of one tool, before its results count as known."""


class CodeTool:
    """The description of the tool that takes scripts."""

    def __init__(
        self, settings: CodeModeSettings, texts: Texts, routes: Routes, box: Sandbox, count: Callable[[str], int]
    ) -> None:
        self._settings, self._texts, self._routes, self._box, self._count = settings, texts, routes, box, count

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

    def definition(self, catalog: Catalog, added: Mapping[str, str]) -> Definition:
        """With the catalog of what scripts reach, and the first sentences about what was added beside tools."""
        texts, hidden, kept = self._texts, self._routes.hidden, self._routes.kept
        own = self._settings.description
        parts = [texts.description, texts.helpers if _has_records(hidden, catalog) else ""] if own is None else [own]
        if len(hidden) and own is None:
            paged = any(paging_form(tool) is not None for tool in hidden)
            parts += [texts.with_tools, texts.paging if paged else ""]
            parts += [self._failures_text(), self._limits_text()]
        if added:
            parts.append("\n".join([texts.added_title, *(_added(name, said) for name, said in added.items())]))
        parts.append(catalog.text)
        if kept:
            names = ", ".join(sorted(texts.written(hidden.alias(path)) for path in kept))
            parts.append(texts.also_in_scripts.format(names=names))
        parameter = {"type": "string", "description": texts.parameter_description}
        return self._code_definition("\n".join(filter(None, parts)), parameter, read_only=not len(hidden))

    def lean(self, everything: Mapping[str, Tool], shapes: Mapping[str, Schema]) -> Definition:
        """Beside direct definitions of every tool, by their names: these say the rest."""
        texts, hidden = self._texts, self._routes.hidden
        parts = [texts.lean if self._settings.description is None else self._settings.description]
        if any(tool.namespace for tool in hidden):
            parts.append(texts.lean_namespaces)
        if direct := [name for name, tool in everything.items() if tool.path not in hidden]:
            parts.append(texts.not_in_scripts.format(names=", ".join(direct)))
        definition = self._code_definition(" ".join(parts), {"type": "string"}, read_only=False)
        return with_results(definition, hidden, texts, shapes, self._count)

    def _code_definition(self, description: str, parameter: dict[str, Any], *, read_only: bool) -> Definition:
        schema = {
            "type": "object",
            "properties": {self.parameter: parameter},
            "required": [self.parameter],
            "additionalProperties": False,
        }
        annotations = {"readOnlyHint": read_only}
        return Definition(self.name, description, schema, annotations=annotations, overflow=self.parameter)

    def _failures_text(self) -> str:
        """What becomes of results that are nothing but a failure, and of which tools' results the opposite."""
        texts, hidden, holds = self._texts, self._routes.hidden, self._box.failures
        others = [tool for tool in hidden if tool.failures not in (None, holds)]
        if len(others) == len(hidden):
            holds, others = others[0].failures or holds, []
        text = texts.failures_raise if holds == "raise" else texts.failures_return
        if not others:
            return text
        names = _grouped(others, hidden, texts)
        listed = ", ".join(names[:_MOST_NAMES]) + (", …" if len(names) > _MOST_NAMES else "")
        return f"{text} {texts.failures_except.format(names=listed)}"

    def _limits_text(self) -> str:
        limits = self._box.limits
        calls = [] if limits.max_tool_calls is None else [f"{limits.max_tool_calls} tool calls"]
        time = [] if limits.timeout is None else [f"{limits.timeout:g} seconds"]
        what = " and ".join([*calls, *time])
        return self._texts.limits.format(what=what) if what else ""


def _has_records(hidden: Toolbox, catalog: Catalog) -> bool:
    """Whether scripts may get lists of objects, or objects by their keys: the helpers are for these."""
    if not len(hidden) or catalog.detail in ("names", "search") or any(tool.returns is None for tool in hidden):
        return True
    return re.search(_RECORDS, catalog.text) is not None


def _grouped(tools: Sequence[Tool], among: Toolbox, texts: Texts) -> list[str]:
    """The names of tools as scripts write them; a namespace of which these are all the tools is one name."""
    sizes = Counter(tool.namespace for tool in among)
    whole = {space for space, count in Counter(tool.namespace for tool in tools).items() if count == sizes[space]}
    names = (
        f"{tool.namespace}.*" if tool.namespace in whole and tool.namespace else among.alias(tool) for tool in tools
    )
    return [visible(texts.written(name)) for name in dict.fromkeys(names)]


def _added(name: str, said: str) -> str:
    """One function, value or entry; the sentence often begins with the name already."""
    return visible(f"- {said}" if said.startswith(name) else f"- {name} — {said}")


@dataclass(frozen=True, slots=True)
class Choice:
    """Which way the tools are shown, and why."""

    code: bool
    """Whether the code tool is offered."""
    code_tokens: int
    """What goes with every request in code mode: the code tool, its catalog, the direct tools and the system prompt."""
    direct_tokens: int
    """The same with every tool direct: their definitions."""
    reason: str
    both: bool = False
    """Whether every tool is direct too, beside a lean code tool."""
    both_tokens: int = 0
    """The same with both."""


def choose(
    mode: str,
    with_code: Sequence[Definition],
    all_direct: Sequence[Definition],
    lean: Definition,
    *,
    prompt: str,
    hidden: Toolbox,
    sizes: Mapping[str, ResultSize],
    count: Callable[[str], int],
) -> Choice:
    """Take what the mode says. `hidden` is what scripts would reach, `sizes` what is known of results.

    `auto` takes the code tool where its definition is smaller, and both otherwise. What is known of results decides
    from then on: one that takes more than the definitions of either way together belongs into a script; where every
    result is smaller than the lean code tool, and no script ever asked for one, the code tool is not worth its place.
    """
    code_tokens = count(_sent(with_code)) + (count(prompt) if prompt else 0)
    direct_tokens = count(_sent(all_direct))
    lean_tokens = count(_sent([lean]))
    both_tokens = direct_tokens + lean_tokens
    known = [sizes[tool.path] for tool in hidden if tool.path in sizes and sizes[tool.path].results >= _ENOUGH_RESULTS]
    tokens = [size.mean / BYTES_PER_TOKEN for size in known]
    code, both = False, False
    if mode == "never":
        why = "mode is never"
    elif mode == "always" or not all_direct:
        code, why = True, f"mode is {mode}"
    elif not len(hidden):
        why = "no tool may be called from scripts"
    elif code_tokens < direct_tokens:
        code, why = True, "the code tool is smaller"
    elif max(tokens, default=0) > code_tokens + both_tokens:
        code, why = True, f"results are large, up to {counted(round(max(tokens)), 'token')}"
    elif len(known) == len(hidden) and max(tokens) < lean_tokens and not any(size.scripted for size in known):
        why = "results are small, and no script asked for them"
    else:
        code, both, why = True, True, "direct definitions are smaller, and a lean code tool is beside them"
    costs = (
        f"{counted(code_tokens, 'token')} with the code tool, {direct_tokens:,} with every tool direct, "
        f"{both_tokens:,} with both"
    )
    return Choice(code, code_tokens, direct_tokens, f"{why} ({costs})", both, both_tokens)


def with_results(
    definition: Definition,
    tools: Iterable[Tool],
    texts: Texts,
    shapes: Mapping[str, Schema],
    count: Callable[[str], int],
) -> Definition:
    """A lean code tool that also says what the tools return, as far as it is known and there is room."""
    results: list[str] = []
    described = definition
    for tool in tools:
        schema = with_shape(tool, shapes.get(tool.path)).returns
        text = "" if schema is None else type_text(schema, Document(schema), nested=2, notation=texts.types)
        if "{" not in text:
            continue  # no field to know
        results.append(visible(f"{tool.path} {text}"))
        line = texts.lean_results.format(results="; ".join(results))
        longer = replace(definition, description=f"{definition.description}\n{line}")
        if count(_sent([longer])) > LEAN_TOKENS:
            break
        described = longer
    return described


def _sent(definitions: Sequence[Definition]) -> str:
    """The definitions as a request carries them; the formats differ by a few characters for each tool."""
    return json.dumps(in_format(definitions, "anthropic"), ensure_ascii=False, separators=(",", ":"))
