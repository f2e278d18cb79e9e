"""OpenAI chat completions, as the API checks and writes them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from wire.checks import a_list, a_table, a_text, json_text, needs, schema, text_of, tool_name
from wire.model import Called, Refused, Result, Seen, Turn

if TYPE_CHECKING:
    from collections.abc import Iterator

LONGEST_DESCRIPTION = 1_048_576
"""OpenAI's own; some compatible servers take 1024."""
_ROLES = ("system", "developer", "user", "assistant", "tool")


def read(body: dict[str, Any], longest_description: int = LONGEST_DESCRIPTION) -> Seen:
    """What the model sees; raises Refused as the API would."""
    model = a_text(body.get("model"), "model", empty=False)
    tools = _tools(body, longest_description)
    system, prompts, called, results = [], [], [], []
    open_calls: dict[str, str] = {}
    for number, message in enumerate(a_list(body.get("messages"), "messages", empty=False)):
        where = f"messages[{number}]"
        role = a_table(message, where).get("role")
        needs(role in _ROLES, f"{where}.role: {role!r} is not one of {', '.join(_ROLES)}")
        if role != "tool":
            needs(
                not open_calls,
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
                f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(open_calls)}",
            )
        match role:
            case "system" | "developer":
                system.append(text_of(message.get("content"), f"{where}.content"))
            case "user":
                prompts.append(text_of(message.get("content"), f"{where}.content", media=_MEDIA))
            case "assistant":
                made = _calls(message, where)
                needs(made or message.get("content") is not None, f"{where}: expected content or tool_calls")
                open_calls = {call.id: call.name for call in made}
                called += made
            case "tool":
                key = a_text(message.get("tool_call_id"), f"{where}.tool_call_id", empty=False)
                needs(
                    key in open_calls,
                    "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'",
                )
                text = text_of(message.get("content"), f"{where}.content")
                results.append(Result(key, open_calls.pop(key), text))
    needs(not open_calls, f"tool_call_ids did not have response messages: {', '.join(open_calls)}")
    return Seen(
        model,
        "\n".join(system),
        tuple(prompts),
        tuple(called),
        tuple(results),
        tools,
        bool(body.get("stream")),
        body,
        body["messages"][-1]["role"] == "tool",
    )


_MEDIA = {"image_url": ("image_url", "url"), "input_audio": ("input_audio", "data"), "file": ("file", "file_data")}


def write(turn: Turn, model: str, number: int) -> dict[str, Any]:
    """The whole answer."""
    message: dict[str, Any] = {"role": "assistant", "content": turn.text or None, "refusal": None, "annotations": []}
    if turn.uses:
        message["tool_calls"] = [_call(use, number, index) for index, use in enumerate(turn.uses)]
    return {
        **_head(model, number, "chat.completion"),
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": _reason(turn)}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
    }


def stream(turn: Turn, model: str, number: int) -> Iterator[str]:
    """The same in pieces, as server-sent events."""

    def event(delta: dict[str, Any], reason: str | None = None) -> str:
        choices = [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}]
        return f"data: {json.dumps({**_head(model, number, 'chat.completion.chunk'), 'choices': choices})}\n\n"

    yield event({"role": "assistant", "content": "" if turn.text else None, "refusal": None})
    for piece in pieces(turn.text):
        yield event({"content": piece})
    for index, use in enumerate(turn.uses):
        call = _call(use, number, index)
        text = call[call["type"]].pop("arguments" if call["type"] == "function" else "input")
        key = "arguments" if call["type"] == "function" else "input"
        yield event({"tool_calls": [{"index": index, **call, call["type"]: {**call[call["type"]], key: ""}}]})
        for piece in pieces(text):
            yield event({"tool_calls": [{"index": index, call["type"]: {key: piece}}]})
    yield event({}, _reason(turn))
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    yield f"data: {json.dumps({**_head(model, number, 'chat.completion.chunk'), 'choices': [], 'usage': usage})}\n\n"
    yield "data: [DONE]\n\n"


def error(refused: Refused) -> dict[str, Any]:
    return {"error": {"message": refused.message, "type": "invalid_request_error", "param": None, "code": None}}


def pieces(text: str, size: int = 7) -> list[str]:
    """The text in small parts, cut anywhere."""
    return [text[start : start + size] for start in range(0, len(text), size)]


def _tools(body: dict[str, Any], longest: int) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    needs(body.get("tools") != [], "[] is too short - 'tools'")
    for number, item in enumerate(a_list(body.get("tools", []), "tools")):
        where = f"tools[{number}]"
        kind = a_table(item, where).get("type")
        if kind == "custom":
            custom = a_table(item.get("custom"), f"{where}.custom")
            name = tool_name(custom.get("name"), f"{where}.custom.name", found)
            found[name] = {"description": custom.get("description", ""), "parameters": None}
            continue
        needs(kind == "function", f"{where}.type: {kind!r} is not 'function' or 'custom'")
        function = a_table(item.get("function"), f"{where}.function")
        name = tool_name(function.get("name"), f"{where}.function.name", found)
        description = a_text(function.get("description", ""), f"{where}.function.description")
        needs(
            len(description) <= longest,
            f"Invalid '{where}.function.description': string too long. Expected a string with maximum length "
            f"{longest}, but got a string with length {len(description)} instead.",
        )
        parameters = schema(function.get("parameters", {"type": "object"}), f"{where}.function.parameters")
        found[name] = {"description": description, "parameters": parameters}
    return found


def _calls(message: dict[str, Any], where: str) -> list[Called]:
    made = []
    for number, call in enumerate(a_list(message.get("tool_calls") or [], f"{where}.tool_calls")):
        place = f"{where}.tool_calls[{number}]"
        key = a_text(a_table(call, place).get("id"), f"{place}.id", empty=False)
        if call.get("type") == "custom":
            custom = a_table(call.get("custom"), f"{place}.custom")
            made.append(Called(key, a_text(custom.get("name"), f"{place}.custom.name"), custom.get("input")))
            continue
        needs(call.get("type") == "function", f"{place}.type: expected 'function'")
        function = a_table(call.get("function"), f"{place}.function")
        arguments = a_text(function.get("arguments"), f"{place}.function.arguments")
        try:  # compatible servers put these into their templates as data
            arguments = json.loads(arguments)
        except ValueError:
            raise Refused(f"{place}.function.arguments: not valid JSON") from None
        made.append(Called(key, a_text(function.get("name"), f"{place}.function.name", empty=False), arguments))
    return made


def _call(use: Any, number: int, index: int) -> dict[str, Any]:
    key = f"call_{number}_{index}"
    if use.freeform:
        return {"id": key, "type": "custom", "custom": {"name": use.name, "input": use.arguments}}
    return {
        "id": key,
        "type": "function",
        "function": {"name": use.name, "arguments": json_text(use.arguments)},
    }


def _head(model: str, number: int, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{number}", "object": kind, "created": 1_750_000_000, "model": model}


def _reason(turn: Turn) -> str:
    if turn.cut:
        return "length"
    return "tool_calls" if turn.uses else "stop"
