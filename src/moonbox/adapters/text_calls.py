"""Tool calls that a local model writes as text, in the ways in which models were trained to write them."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

__all__ = ["TextCall", "read_calls", "said_before_calls", "said_in_json"]

TextCall = tuple[str, Any]
"""A tool's name and its arguments: a dict, or text that should have been one."""

_TAGGED = re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.DOTALL)  # Hermes, Qwen
_FUNCTION = re.compile(r"<function=([\w.-]+)>(.*?)(?:</function>|\Z)", re.DOTALL)  # Qwen Coder, Llama 3.1
_PARAMETER = re.compile(r"<parameter=([\w.-]+)>\n?(.*?)\n?(?:</parameter>|\Z)", re.DOTALL)
_MISTRAL = re.compile(r"\[TOOL_CALLS\]\s*(.*)\Z", re.DOTALL)
_MISTRAL_NAMED = re.compile(r"([\w.-]+)(?:\[CALL_ID\][\w-]*)?\[ARGS\]")
_MARKS = ("<tool_call>", "<function=", "[TOOL_CALLS]", "<|python_tag|>")
_ANSWER = re.compile(r'\s*\{\s*"answer"\s*:\s*"((?:[^"\\]|\\.)*\\?)', re.DOTALL)
_UNFINISHED = re.compile(
    r"(?:\\u[dD][89abAB][0-9a-fA-F]{2})?\\(?:u[0-9a-fA-F]{0,3})?\Z|\\u[dD][89abAB][0-9a-fA-F]{2}\Z"
)
_DECODER = json.JSONDecoder(strict=False)  # models, and llama.cpp's grammars, leave line breaks in strings as they are


def read_calls(text: str, names: Collection[str]) -> tuple[str, list[TextCall]]:
    """The text before the calls, and the calls; `names` are the tools that the model may mean without saying so."""
    starts = [at for mark in _MARKS if (at := text.find(mark)) >= 0]
    if starts:
        before, rest = text[: min(starts)], text[min(starts) :]
        return before.strip(), list(_marked(rest))
    bare = _object(text.strip().removeprefix("```json").removesuffix("```").strip())
    if bare is not None and bare[0] in names:
        return "", [bare]
    return text, []


def said_before_calls(text: str) -> str:
    """What can be shown of a text that is still being written: nothing of a call, nor what may become one."""
    stripped = text.lstrip()
    if stripped.startswith(("{", "```json")):
        return ""
    starts = [at for mark in _MARKS if (at := text.find(mark)) >= 0]
    if starts:
        return text[: min(starts)].rstrip()
    longest = max(map(len, _MARKS)) - 1
    for size in range(min(longest, len(text)), 0, -1):
        if any(mark.startswith(text[-size:]) for mark in _MARKS):
            return text[:-size]
    return text


def said_in_json(text: str) -> str:
    """The same of `{"answer": "…"}`."""
    found = _ANSWER.match(text)
    if found is None:
        return ""
    body = _UNFINISHED.sub("", found[1])
    try:
        return str(json.loads(f'"{body}"', strict=False))
    except ValueError:
        return ""


def _marked(text: str) -> Iterator[TextCall]:
    if found := _MISTRAL.search(text):
        yield from _mistral(found[1])
        return
    if "<|python_tag|>" in text:
        yield from _several(text.split("<|python_tag|>", 1)[1])
        return
    for part in [match[1] for match in _TAGGED.finditer(text)] or [text]:
        functions = [] if part.lstrip().startswith("{") else list(_FUNCTION.finditer(part))
        if functions:
            yield from ((match[1], _parameters(match[2])) for match in functions)
        else:
            yield _object(part.strip()) or ("", part.strip())


def _several(text: str) -> Iterator[TextCall]:
    """Llama 3 writes one object after another, with semicolons between."""
    rest = text.strip()
    while rest:
        try:
            item, end = _DECODER.raw_decode(rest)
        except (ValueError, RecursionError):
            yield "", rest
            return
        yield _named(item) or ("", rest[:end])
        rest = rest[end:].lstrip(" \n\t;")


def _mistral(text: str) -> Iterator[TextCall]:
    if text.startswith("["):
        found = _json(text)
        for item in found if isinstance(found, list) else [found]:
            yield _named(item) or ("", text)
        return
    for match in _MISTRAL_NAMED.finditer(text):
        yield match[1], _json(text[match.end() :])


def _parameters(text: str) -> Any:
    """Qwen Coder writes each parameter as it is, between tags; Llama 3.1 writes one JSON object."""
    found = {match[1]: match[2] for match in _PARAMETER.finditer(text)}
    return found or _json(text.strip())


def _object(text: str) -> TextCall | None:
    return _named(_json(text))


def _named(item: Any) -> TextCall | None:
    """`{"name": …, "arguments": …}`, or `parameters` instead."""
    if not isinstance(item, dict) or not isinstance(item.get("name"), str):
        return None
    arguments = item.get("arguments", item.get("parameters", {}))
    return item["name"], _json(arguments) if isinstance(arguments, str) else arguments


def _json(text: str) -> Any:
    """The JSON value at the beginning of the text, or the text."""
    try:
        return _DECODER.raw_decode(text.lstrip())[0]
    except (ValueError, RecursionError):
        return text
