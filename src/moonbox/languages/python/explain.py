"""What went wrong in a Python script, for the model that wrote it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import ValidationError, convert
from msgspec.structs import replace

from moonbox.findings import Finding
from moonbox.languages.explanations import explain_translated, refusal
from moonbox.languages.facts import unknown_tool
from moonbox.languages.python.language import PYTHON

if TYPE_CHECKING:
    from moonbox.errors import ScriptError
    from moonbox.languages.language import EngineError
    from moonbox.limits import Limits

_NO_ATTRIBUTE = re.compile(r"'(\w{1,40})' object has no attribute '(\w{1,60})'")
_NO_TOOL = re.compile(r"module 'tools[\w.]{0,80}' has no attribute '(\w{1,60})'")
_NO_NAME = re.compile(r"name '(\w{1,60})' is not defined")
_UNSUPPORTED = re.compile(r"The monty syntax parser does not yet support (.{1,100})")
_OF_PAGES = re.compile(r"(?:Runtime|Type)Error: (?=pages: )")
_LONGEST = 500  # characters
_MOST_FINDINGS = 20
_METHODS = {"dict": dict, "str": str, "list": list, "set": set, "tuple": tuple}


def explain(error: EngineError, *, sources: Mapping[str, str], tools: Collection[str], limits: Limits) -> ScriptError:
    """The error with its line, a caret, and what to write instead."""
    if isinstance(error.data, dict) and "types" in error.data:
        refused = refusal(_types(error.data["types"]), list(sources.values())[-1] if sources else "")
        assert refused is not None
        return refused
    explained = explain_translated(error, sources=sources, limits=limits)
    if (match := _UNSUPPORTED.search(explained.message)) is not None:
        explained = explained.with_(message=f"scripts cannot use {match[1]}")
    if (match := _OF_PAGES.match(explained.message)) is not None:
        explained = explained.with_(message=explained.message[match.end() :])
    hint = _hint(explained.message, tools) if explained.hint is None else None
    return explained if hint is None else explained.with_(hint=hint)


def _types(reported: Any) -> list[Finding]:
    """Why the type checker refuses a script, from an untrusted worker; at least one reason."""
    try:
        found = convert(reported, list[tuple[int, int, str]])[:_MOST_FINDINGS]
    except ValidationError:
        found = []
    texts = [(line, column, _plain(text)) for line, column, text in found] or [(1, 1, "the types are wrong")]
    findings = [Finding("error", text, line, column, code="types") for line, column, text in texts]
    return [replace(findings[0], hint=_advice(findings[0].message)), *findings[1:]]


def _plain(message: str) -> str:
    """The checker's words with the quotes of our messages."""
    return (message[:1].lower() + message[1:]).replace("`", "'")[:_LONGEST]


def _hint(message: str, tools: Collection[str]) -> str | None:
    from moonbox.suggest import did_you_mean, nearest

    if match := _NO_ATTRIBUTE.search(message):
        kind, name = match.groups()
        if kind in _METHODS and hasattr(_METHODS[kind], name) and not name.startswith("__"):
            return f"a method is not a value here: write a lambda, as in lambda *a: x.{name}(*a)"
    if match := _NO_TOOL.search(message):
        return unknown_tool(match[1], tools, PYTHON.tool_name, 'docs.search("words")')
    if match := _NO_NAME.search(message):
        return did_you_mean(nearest(match[1], [tool.rpartition(".")[2] for tool in tools]))
    return _advice(message)


def _advice(message: str) -> str | None:
    """What `modules.toml` says about such a message."""
    from moonbox.languages.python.check import modules  # only a run that failed needs it

    found = ((re.search(pattern, message), hint) for pattern, hint in modules().advice.items())
    return next((hint.format(*match.groups()) for match, hint in found if match), None)
