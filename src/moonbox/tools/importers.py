"""Tools from what others define: definitions of model providers, and tool objects of agent frameworks.

LangChain's, LlamaIndex's and Pydantic AI's tools are read by what they have and not by their class, so that no
framework is imported here. A tool that wants its framework's own context (Pydantic AI's RunContext, LlamaIndex's
Context) gets that of the call in which the script runs; the framework's adapter says which one that is.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any

from moonbox.closing import during
from moonbox.errors import ArgumentError, Denied, ToolDefinitionError, ToolError
from moonbox.schema.tree import with_parts, without_properties
from moonbox.suggest import suggestion
from moonbox.tools.tool import Tool

Dispatch = Callable[[str, dict[str, Any]], Any] | Mapping[str, Callable[[dict[str, Any]], Any]]
"""`call(name, arguments)` for every tool, or one `call(arguments)` for each name; synchronous or not."""
_context: ContextVar[Any] = ContextVar("moonbox_framework_context", default=None)


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
    named = {_KEYWORDS.get(str(key), str(key)): value for key, value in schema.items()}
    said = {
        keyword: int(value) if keyword in _COUNTS else value
        for keyword, value in named.items()
        if keyword not in _NOT_JSON_SCHEMA
    }
    converted = with_parts(said, lambda part, _: _from_openapi(part))
    if "type" in converted:
        kind = str(getattr(converted["type"], "value", converted["type"])).lower()
        converted["type"] = kind
        if kind == "type_unspecified":
            del converted["type"]
    return _nullable(converted) if schema.get("nullable") else converted


WRAPPED = "x-fastmcp-wrap-result"
"""In a result schema of FastMCP: the value is wrapped in an object {result = …}, which MCP requires."""


def unwrapped(schema: dict[str, Any] | None) -> dict[str, Any] | None:
    """The schema of what scripts get: that of the value itself if it is wrapped only for MCP."""
    properties = schema.get("properties") if schema is not None and schema.get(WRAPPED) else None
    inner = properties.get("result") if isinstance(properties, dict) else None
    if schema is None or not isinstance(inner, dict):
        return schema
    return {**inner, **({"$defs": schema["$defs"]} if "$defs" in schema else {})}


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


def framework_context(context: Any) -> AbstractContextManager[None]:
    """Around a script's run: the framework's context of the call that runs it."""
    return during(_context, context)


def from_langchain(tools: Iterable[Any], **options: Any) -> list[Tool]:
    """From LangChain tools: `@tool` functions, StructuredTools, any BaseTool."""
    return [_from_langchain(tool, options) for tool in _listed(tools, "LangChain", "invoke", "tool_call_schema")]


def from_llamaindex(tools: Iterable[Any], **options: Any) -> list[Tool]:
    """From LlamaIndex tools: FunctionTools, QueryEngineTools, any BaseTool."""
    return [_from_llamaindex(tool, options) for tool in _listed(tools, "LlamaIndex", "metadata", "__call__")]


def from_pydantic_ai(tools: Iterable[Any], **options: Any) -> list[Tool]:
    """From Pydantic AI tools (`pydantic_ai.Tool`) and FunctionToolsets."""
    collected: list[Any] = []
    for item in [tools] if hasattr(tools, "get_tools") or hasattr(tools, "function_schema") else tools:
        inner = getattr(item, "tools", None)
        collected += inner.values() if isinstance(inner, Mapping) else [item]
    return [_from_pydantic_ai(tool, options) for tool in _listed(collected, "Pydantic AI", "function_schema", "name")]


# LangChain


def _from_langchain(tool: Any, options: dict[str, Any]) -> Tool:
    schema = _langchain_schema(tool)
    _refuse_injected(tool, schema)
    # Its own handlers would make an answer of a failure; a script should see that it failed.
    raising = tool.model_copy(update={"handle_tool_error": False, "handle_validation_error": False})

    def call(arguments: dict[str, Any]) -> Any:
        with _langchain_errors(tool):
            return raising.invoke(arguments)

    async def acall(arguments: dict[str, Any]) -> Any:
        with _langchain_errors(tool):
            return await raising.ainvoke(arguments)

    return Tool.from_schema(
        name=tool.name,
        description=tool.description,
        parameters=schema,
        call=acall if _is_async_langchain(tool) else call,
        **options,
    )


def _langchain_schema(tool: Any) -> dict[str, Any]:
    """The schema that the model would see: without the arguments that LangChain fills in."""
    if tool.args_schema is None and hasattr(tool, "coroutine"):  # the old kind, of one text
        return {"type": "object", "properties": tool.args, "required": list(tool.args)}
    schema = tool.tool_call_schema
    if not isinstance(schema, dict):
        schema = schema.model_json_schema() if hasattr(schema, "model_json_schema") else schema.schema()
    return {key: value for key, value in schema.items() if key not in {"title", "description"}}


def _refuse_injected(tool: Any, schema: dict[str, Any]) -> None:
    """An argument that LangChain fills in, and that has no default, makes a tool useless for scripts."""
    fields = getattr(tool.args_schema, "model_fields", {})
    names = {*getattr(tool, "_injected_args_keys", ()), *fields} - set(schema.get("properties", {}))
    for name in sorted(names):
        if name not in fields or fields[name].is_required():
            raise ToolDefinitionError(
                f"the LangChain tool {tool.name!r} takes {name!r} from the agent's graph, which a script cannot give; "
                "keep it as a tool of the agent itself"
            )


def _is_async_langchain(tool: Any) -> bool:
    if hasattr(tool, "coroutine"):
        return tool.coroutine is not None
    defining = next(base for base in type(tool).__mro__ if "_arun" in vars(base))
    return defining.__name__ != "BaseTool"


@contextlib.contextmanager
def _langchain_errors(tool: Any) -> Iterator[None]:
    """LangChain's exceptions as a script sees them, in the words of the tool's own handler if it has one."""
    try:
        yield
    except Exception as error:  # its classes are known by their names alone; others go on
        kinds = {base.__name__ for base in type(error).__mro__}
        if "ToolException" in kinds:
            raise ToolError(_handled(tool.handle_tool_error, error)) from error
        if "ValidationError" in kinds and tool.handle_validation_error:
            raise ArgumentError(_handled(tool.handle_validation_error, error)) from error
        raise


def _handled(handler: Any, error: Exception) -> str:
    if isinstance(handler, str):
        return handler
    return str(handler(error)) if callable(handler) else str(error)


# LlamaIndex


def _from_llamaindex(tool: Any, options: dict[str, Any]) -> Tool:
    metadata = tool.metadata
    wants = getattr(tool, "ctx_param_name", None)
    given = getattr(tool, "partial_params", None) or {}

    def complete(arguments: dict[str, Any]) -> dict[str, Any]:
        known = {**arguments, **given}  # what was fixed beforehand is not for a script to change
        return {**known, wants: needed_context(metadata.name)} if wants else known

    def call(arguments: dict[str, Any]) -> Any:
        return _llamaindex_result(tool, getattr(tool, "call", tool)(**complete(arguments)))

    async def acall(arguments: dict[str, Any]) -> Any:
        return _llamaindex_result(tool, await tool.acall(**complete(arguments)))

    return Tool.from_schema(
        name=metadata.name,
        description=metadata.description,
        parameters=without_properties(metadata.get_parameters_dict(), {*given, wants}),
        call=acall if inspect.iscoroutinefunction(getattr(tool, "real_fn", None)) else call,
        **options,
    )


def _llamaindex_result(tool: Any, output: Any) -> Any:
    """What the function returned; the text that the tool made of it where that says something else."""
    if getattr(output, "is_error", False):
        raise ToolError(str(output.content))
    raw = output.raw_output
    is_plain = hasattr(tool, "real_fn") and output.content == str(raw)
    return raw if is_plain else output.content


# Pydantic AI


def _from_pydantic_ai(tool: Any, options: dict[str, Any]) -> Tool:
    schema = tool.function_schema

    async def call(arguments: dict[str, Any]) -> Any:
        context = None
        if tool.takes_ctx or tool.prepare is not None or tool.args_validator is not None:
            context = dataclasses.replace(needed_context(tool.name), tool_name=tool.name)
        with pydantic_ai_errors():
            # Both may forbid what the model asks for, so they are asked as Pydantic AI would.
            if tool.prepare is not None and await tool.prepare_tool_def(context) is None:
                raise Denied(f"the tool '{tool.name}' is not available now")
            values = schema.validator.validate_python(arguments)
            if tool.args_validator is not None:
                checked = tool.args_validator(context, **values)
                if inspect.isawaitable(checked):
                    await checked
            result = await schema.call(values, context)
        return result.return_value if hasattr(result, "return_value") else result

    settings: dict[str, Any] = {
        "policy": "approve" if tool.requires_approval else "auto",
        "timeout": tool.timeout,
        "max_concurrency": 1 if tool.sequential else None,
        "returns": getattr(schema, "return_schema", None) or None,
    }
    return Tool.from_schema(
        name=tool.name,
        description=tool.description or "",
        parameters=schema.json_schema,
        call=call,
        **(settings | options),
    )


@contextlib.contextmanager
def pydantic_ai_errors() -> Iterator[None]:
    """Around a tool of Pydantic AI's: its exceptions as a script sees them."""
    try:
        yield
    except Exception as error:  # its classes are known by their names alone; others go on
        message = getattr(error, "message", "") or str(error)
        match type(error).__name__:
            case "ModelRetry":
                raise ToolError(message, code="retry", retryable=True) from error
            case "ToolFailed":
                raise ToolError(message) from error
            case "ApprovalRequired" | "CallDeferred":
                raise Denied("this call needs a person's approval, for which a script cannot wait") from error
            case "ValidationError":
                raise ArgumentError(str(error)) from error
        raise


# All of them

_FRAMEWORKS = {
    "LangChain": (("invoke", "tool_call_schema"), "Toolbox.from_langchain([…])"),
    "LlamaIndex": (("metadata", "acall"), "Toolbox.from_llamaindex([…])"),
    "Pydantic AI": (("function_schema", "takes_ctx"), "Toolbox.from_pydantic_ai([…])"),
    "OpenAI Agents SDK": (("on_invoke_tool", "params_json_schema"), "OpenAIAgents(…).hiding([…])"),
    "smolagents": (("forward", "inputs", "output_type"), "Smolagents(…).hiding([…])"),
}
"""What a framework's tools have, and what takes them."""


def refuse_foreign(tool: Any) -> None:
    """Raise ToolDefinitionError for a framework's tool: it looks like a function, and is more than that."""
    for framework, (attributes, taker) in _FRAMEWORKS.items():
        if all(hasattr(tool, attribute) for attribute in attributes):
            name = getattr(tool, "name", None) or type(tool).__name__
            raise ToolDefinitionError(f"{name!r} is a tool of the framework {framework}; use {taker}")


def _listed(tools: Iterable[Any], framework: str, *attributes: str) -> Iterator[Any]:
    if all(hasattr(tools, attribute) for attribute in attributes):
        tools = [tools]
    for tool in tools:
        if not all(hasattr(tool, attribute) for attribute in attributes) or isinstance(tool, type):
            raise ToolDefinitionError(f"{tool!r} is not a {framework} tool")
        yield tool


def needed_context(tool: str) -> Any:
    """The framework's context of the call that runs the script, for this tool."""
    context = _context.get()
    if context is None:
        raise ToolError(
            f"{tool} needs the context of the agent that runs it; use it through the adapter of its framework",
            code="missing_context",
            tool=tool,
        )
    return context
