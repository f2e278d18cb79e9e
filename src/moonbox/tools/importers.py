"""Tools from the definitions that model providers use, with a function of the host that answers their calls."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from moonbox.errors import ToolDefinitionError
from moonbox.suggest import suggestion
from moonbox.tools.tool import Tool

__all__ = ["Dispatch", "from_anthropic", "from_gemini", "from_openai"]

Dispatch = Callable[[str, dict[str, Any]], Any] | Mapping[str, Callable[[dict[str, Any]], Any]]
"""`call(name, arguments)` for every tool, or one `call(arguments)` for each name; synchronous or not."""


def from_openai(definitions: Iterable[Any], call: Dispatch, **options: Any) -> list[Tool]:
    """From `{"type": "function", "function": {...}}` (chat completions) or the flat form (responses)."""
    tools = []
    for definition in _mappings(definitions, "OpenAI"):
        if definition.get("type", "function") != "function":
            raise ToolDefinitionError(
                f"an OpenAI tool of type {definition['type']!r} is run by OpenAI and cannot be imported"
            )
        inner = definition.get("function", definition)
        tools.append(_tool(inner, inner.get("parameters"), call, options))
    return tools


def from_anthropic(definitions: Iterable[Any], call: Dispatch, **options: Any) -> list[Tool]:
    """From `{"name": …, "description": …, "input_schema": {...}}`."""
    tools = []
    for definition in _mappings(definitions, "Anthropic"):
        if "input_schema" not in definition:
            kind = definition.get("type", "?")
            raise ToolDefinitionError(f"an Anthropic tool of type {kind!r} has no input_schema and cannot be imported")
        tools.append(_tool(definition, definition["input_schema"], call, options))
    return tools


def from_gemini(definitions: Iterable[Any], call: Dispatch, **options: Any) -> list[Tool]:
    """From function declarations, alone or inside `{"function_declarations": [...]}`."""
    tools = []
    for definition in _mappings(definitions, "Gemini"):
        inner = definition.get("function_declarations", definition.get("functionDeclarations"))
        for item in _mappings(inner, "Gemini") if inner is not None else [definition]:
            parameters = _either(item, "parameters_json_schema", "parametersJsonSchema")
            returns = _either(item, "response_json_schema", "responseJsonSchema")
            if parameters is None:
                parameters = _from_openapi(item.get("parameters"))
            if returns is None:
                returns = _from_openapi(item.get("response"))
            tools.append(_tool(item, parameters, call, {"returns": returns, **options}))
    return tools


def _mappings(definitions: Iterable[Any], provider: str) -> Iterator[Mapping[str, Any]]:
    if isinstance(definitions, Mapping):
        definitions = [definitions]
    for definition in definitions:
        if hasattr(definition, "model_dump"):  # the provider's own pydantic type
            definition = definition.model_dump(exclude_none=True, by_alias=False)
        if not isinstance(definition, Mapping):
            raise ToolDefinitionError(f"invalid {provider} definition (expected a dict): {definition!r}")
        yield definition


def _tool(definition: Mapping[str, Any], parameters: Any, call: Dispatch, options: dict[str, Any]) -> Tool:
    name = definition.get("name")
    if not isinstance(name, str):
        raise ToolDefinitionError(f"the definition {definition!r} has no name")
    return Tool.from_schema(
        name=name,
        description=definition.get("description") or "",
        parameters=parameters,
        call=_dispatcher(name, call),
        **options,
    )


def _dispatcher(name: str, call: Dispatch) -> Callable[[dict[str, Any]], Any]:
    if isinstance(call, Mapping):
        if name not in call:
            raise ToolDefinitionError(f"no function for tool {name!r}{suggestion(name, call)}")
        return call[name]
    if not callable(call):
        raise ToolDefinitionError("call must be a function of (name, arguments) or a mapping from name to function")
    return functools.partial(call, name)


def _either(item: Mapping[str, Any], *keys: str) -> Any:
    return next((item[key] for key in keys if item.get(key) is not None), None)


def _from_openapi(schema: Any) -> Any:
    """JSON Schema from Gemini's dialect: upper-case types, `nullable`, and numbers written as text."""
    if not isinstance(schema, Mapping):
        return schema
    converted: dict[str, Any] = {}
    for key, value in schema.items():
        keyword = _KEYWORDS.get(str(key)) or str(key)
        if keyword == "type":
            converted["type"] = str(getattr(value, "value", value)).lower()
        elif keyword in {"properties", "$defs"}:
            converted[keyword] = {name: _from_openapi(part) for name, part in value.items()}
        elif keyword in {"items", "additionalProperties"}:
            converted[keyword] = _from_openapi(value)
        elif keyword in {"anyOf", "prefixItems"}:
            converted[keyword] = [_from_openapi(part) for part in value]
        elif keyword in _COUNTS:
            converted[keyword] = int(value)
        elif keyword not in _NOT_JSON_SCHEMA:
            converted[keyword] = value
    if converted.get("type") == "type_unspecified":
        del converted["type"]
    return _nullable(converted) if schema.get("nullable") else converted


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    if isinstance(schema.get("enum"), list):
        schema["enum"] = [*schema["enum"], None]
    if isinstance(schema.get("type"), str):
        schema["type"] = [schema["type"], "null"]
    elif "anyOf" in schema:
        schema["anyOf"] = [*schema["anyOf"], {"type": "null"}]
    return schema


_KEYWORDS = {
    "any_of": "anyOf",
    "max_items": "maxItems",
    "min_items": "minItems",
    "max_length": "maxLength",
    "min_length": "minLength",
    "max_properties": "maxProperties",
    "min_properties": "minProperties",
    "prefix_items": "prefixItems",
    "additional_properties": "additionalProperties",
    "defs": "$defs",
    "ref": "$ref",
}
_COUNTS = frozenset({"maxItems", "minItems", "maxLength", "minLength", "maxProperties", "minProperties"})
_NOT_JSON_SCHEMA = frozenset({"nullable", "property_ordering", "propertyOrdering", "example"})
