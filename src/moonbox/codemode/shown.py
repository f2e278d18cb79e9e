"""What the model is shown of a toolbox: the code tool in both sizes, direct definitions, or both; and what it calls."""

from __future__ import annotations

import copy
import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from moonbox.codemode.catalog import BYTES_PER_TOKEN, Catalog, make_catalog
from moonbox.codemode.client_calls import Reply
from moonbox.codemode.definitions import (
    Definition,
    find_script,
    from_tool,
    in_format,
    parse_arguments,
    provider_names,
    shorten,
)
from moonbox.codemode.routing import ClientTools, Routes
from moonbox.languages.registry import language
from moonbox.runs.environment import Additions
from moonbox.schema.type_reader import type_text
from moonbox.suggest import unknown
from moonbox.tools.paging import paging_form
from moonbox.tools.signature import visible
from moonbox.wording import counted

if TYPE_CHECKING:
    from moonbox.config.sections import CodeModeSettings
    from moonbox.languages.language import Texts
    from moonbox.sandbox.repl import Repl
    from moonbox.sandbox.sandbox import Sandbox
    from moonbox.tools.tool import Tool
    from moonbox.tools.toolbox import Toolbox

LEAN_TOKENS = 250
"""The most that the definition of a lean code tool takes."""
_MOST_NAMES = 12
_FAR_CALLS, _FAR_SECONDS = 500, 120
"""Limits that no script comes near by chance: the description leaves them out."""
_RECORDS = r"(?:\}|\b(?:[A-Z]\w*|any|object))\[\]|: array\b|-> (?:any|array|object)\b|\{\[string\]: [A-Z{]"
"""In a catalog: a list of objects, an object of objects, a result of which nothing is known."""
_ENOUGH_RESULTS = 3
"""Of one tool, before its results count as known."""


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


@dataclass(frozen=True, slots=True)
class View:
    """What the model is shown."""

    code: Definition
    catalog: Catalog
    direct: dict[str, Tool]
    choice: Choice
    added: dict[str, str]
    """What was added beside tools."""


class ToolPresentation:
    """The tools of a Sandbox, or of one Repl, as a model sees them, and the reader of the model's calls."""

    def __init__(
        self,
        sandbox: Sandbox,
        repl: Repl | None,
        settings: CodeModeSettings,
        *,
        count: Callable[[str], int],
        later: Collection[str],
        client_tools: ClientTools,
    ) -> None:
        self._sandbox, self._settings, self._count = sandbox, settings, count
        self._host: Sandbox | Repl = sandbox if repl is None else repl
        self._later, self._client_tools = later, client_tools
        self._texts = language(sandbox.language).texts
        self._take(self._host.toolbox)
        self.learn(shapes=settings.learned_shapes)

    def of(self, toolbox: Toolbox) -> ToolPresentation:
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
        self._view: View | None = None
        self._lock = threading.Lock()

    def learn(self, *, shapes: bool) -> None:
        """Take in what is known of results now: the shapes of all, or only those of text that holds JSON."""
        learned = self._sandbox.toolbox.learned
        with self._lock:
            known = learned.snapshot()
            self._shapes = known if shapes else {path: part for path, part in known.items() if "contentSchema" in part}
            self._sizes, self._uses = learned.sizes(), learned.uses()
            self._view = None

    def current(self) -> View:
        """What is shown now; made anew when the tools have changed."""
        with self._lock:
            added = self._host.docs.added(Additions.standard().docs)
            if self.routes.update() or self._view is None or self._view.added != added:
                self._view = self._make_view(added)
            return self._view

    def definitions(self, view: View, labels: Mapping[str, str] | None) -> list[Definition]:
        """The code tool, for a conversation with these labels, and the direct tools."""
        direct, code = _definitions(view.direct), view.code
        if labels and not view.choice.both:
            code = self._full(self._make_catalog(labels), view.added)
        shown = [code, *direct] if view.choice.code else direct
        return [item.within(self._settings.description_chars) for item in shown]

    def only_direct(self) -> dict[str, Tool]:
        """The tools that the model can call and scripts cannot, by the names that models use."""
        direct = {} if self._view is None else self._view.direct
        return {name: tool for name, tool in direct.items() if tool.path not in self.routes.hidden}

    # The code tool

    @property
    def name(self) -> str:
        """The code tool's name."""
        return self._settings.name or self._texts.name

    @property
    def parameter(self) -> str:
        """The name of its one parameter."""
        return self._settings.parameter or self._texts.parameter

    def prompt(self) -> str:
        """The addition to the system prompt."""
        if self._settings.system_prompt is not None:
            return self._settings.system_prompt
        reached = len(self.routes.hidden) > 0
        chosen = self._texts.system_prompt if reached else self._texts.system_prompt_without_tools
        return chosen.format(name=self.name)

    def _full(self, catalog: Catalog, added: Mapping[str, str]) -> Definition:
        """With the catalog of what scripts reach, and the first sentences about what was added beside tools."""
        texts, hidden, kept = self._texts, self.routes.hidden, self.routes.kept
        own = self._settings.description
        parts = [texts.description, texts.helpers if _has_records(hidden, catalog) else ""] if own is None else [own]
        if len(hidden) and own is None:
            paged = any(paging_form(tool) is not None for tool in hidden)
            grouped = any(tool.namespace for tool in hidden)
            parts += [texts.with_tools, texts.groups if grouped else "", texts.paging if paged else ""]
            parts += [self._failures_text(), self._limits_text()]
        if added:
            # The sentence often begins with the name already.
            lines = (said if said.startswith(name) else f"{name} — {said}" for name, said in added.items())
            parts.append("\n".join([texts.added_title, *(visible(f"- {line}") for line in lines)]))
        parts.append(catalog.text)
        if kept:
            names = ", ".join(sorted(texts.written(hidden.alias(path)) for path in kept))
            parts.append(texts.also_in_scripts.format(names=names))
        parameter = {"type": "string", "description": texts.parameter_description}
        return self._code_definition("\n".join(filter(None, parts)), parameter, read_only=not len(hidden))

    def _lean(self, everything: Mapping[str, Tool]) -> Definition:
        """Beside direct definitions of every tool, by their names: these say the rest."""
        texts, hidden = self._texts, self.routes.hidden
        parts = [texts.lean if self._settings.description is None else self._settings.description]
        if any(tool.namespace for tool in hidden):
            parts.append(texts.lean_namespaces)
        if direct := [name for name, tool in everything.items() if tool.path not in hidden]:
            parts.append(texts.not_in_scripts.format(names=", ".join(direct)))
        definition = self._code_definition(" ".join(parts), {"type": "string"}, read_only=False)
        return self._with_results(definition)

    def _with_results(self, definition: Definition) -> Definition:
        """A lean code tool that also says what the tools return, as far as it is known and there is room."""
        results: list[str] = []
        described = definition
        for tool in self.routes.hidden:
            returned = tool.with_shape(self._shapes.get(tool.path)).returned
            text = type_text(returned, nested=2, notation=self._texts.types)
            if "{" not in text:
                continue  # no field to know
            results.append(visible(f"{tool.path} {text}"))
            line = self._texts.lean_results.format(results="; ".join(results))
            longer = replace(definition, description=f"{definition.description}\n{line}")
            if self._tokens([longer]) > LEAN_TOKENS:
                break
            described = longer
        return described

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
        texts, hidden, holds = self._texts, self.routes.hidden, self._sandbox.failures
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
        limits = self._host.limits
        told = (limits.max_tool_calls, _FAR_CALLS, "tool calls"), (limits.timeout, _FAR_SECONDS, "seconds")
        what = " and ".join(f"{most:g} {unit}" for most, far, unit in told if most is not None and most < far)
        return self._texts.limits.format(what=what) if what else ""

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
        code = self._full(catalog, added)
        direct = provider_names(self.routes.direct, [self.name])
        everything = provider_names(self.toolbox, [self.name])
        lean = self._lean(everything)
        choice = self._choose([code, *_definitions(direct)], _definitions(everything), lean)
        shown = direct if choice.code and not choice.both else everything
        return View(lean if choice.both else code, catalog, shown, choice, added)

    def _choose(self, with_code: Sequence[Definition], all_direct: Sequence[Definition], lean: Definition) -> Choice:
        """Take what the mode says.

        `auto` takes the code tool where its definition is smaller, and both otherwise. What is known of results decides
        from then on: one that takes more than the definitions of either way together belongs into a script; where every
        result is smaller than the lean code tool, and no script ever asked for one, the code tool is not worth its
        place.
        """
        mode, hidden, sizes, prompt = self._settings.mode, self.routes.hidden, self._sizes, self.prompt()
        code_tokens = self._tokens(with_code) + (self._count(prompt) if prompt else 0)
        direct_tokens, lean_tokens = self._tokens(all_direct), self._tokens([lean])
        both_tokens = direct_tokens + lean_tokens
        seen = [sizes[tool.path] for tool in hidden if tool.path in sizes]
        known = [size for size in seen if size.results >= _ENOUGH_RESULTS]
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

    def _tokens(self, definitions: Sequence[Definition]) -> int:
        """What a request takes that carries them; the formats differ by a few characters for each tool."""
        sent = in_format(definitions, "anthropic")
        return self._count(json.dumps(sent, ensure_ascii=False, separators=(",", ":")))

    # The model's calls

    def read(self, name: Any, arguments: Any, view: View) -> str | tuple[Tool, dict[str, Any]] | Reply:
        """The script, or the tool and its arguments, or the answer to an invalid call."""
        if not isinstance(name, str):
            return Reply(f"error: the tool's name must be a string, not {shorten(name)}", True)
        given = parse_arguments(arguments)
        if view.choice.code and name == self.name:
            return self._source(given)
        tool = view.direct.get(name) or next((tool for tool in view.direct.values() if tool.path == name), None)
        if tool is None:
            return Reply(self._unknown(name, view), True)
        if given is None:
            return Reply(f"error: the arguments of {name} must be a JSON object, not {shorten(arguments)}", True)
        return tool, given

    def _source(self, given: dict[str, Any] | None) -> str | Reply:
        wanted = f'error: {self.name} takes one argument: {{"{self.parameter}": "<script>"}}'
        if given is None:
            return Reply(f"{wanted}; the arguments were not a JSON object", True)
        source = find_script(given, self.parameter)
        return Reply(f"{wanted}, not {shorten(given)}", True) if source is None else source

    def _unknown(self, name: str, view: View) -> str:
        hidden, code_name = self.routes.hidden, self.name
        if view.choice.code and (name in hidden or name.replace("__", ".") in hidden):
            path = name if name in hidden else name.replace("__", ".")
            written = self._texts.call.format(name=self._texts.written(hidden.alias(path)))
            return f"error: {name} is called from a script: use {code_name} and write {written}"
        return f"error: {unknown('tool', name, [*([code_name] if view.choice.code else []), *view.direct])}"


def _definitions(tools: Mapping[str, Tool]) -> list[Definition]:
    return [from_tool(tool, name) for name, tool in tools.items()]


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
