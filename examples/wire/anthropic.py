"""Anthropic messages, as the API checks and writes them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from wire.checks import a_list, a_table, a_text, needs, schema, text_of, tool_name
from wire.model import Called, Refused, Result, Seen, Turn
from wire.openai_chat import pieces

if TYPE_CHECKING:
    from collections.abc import Iterator


def read(body: dict[str, Any]) -> Seen:
    model = a_text(body.get("model"), "model", empty=False)
    limit = body.get("max_tokens")
    needs(isinstance(limit, int) and limit > 0, "max_tokens: Field required")
    tools = _tools(body)
    prompts: list[str] = []
    called: list[Called] = []
    results: list[Result] = []
    open_calls: dict[str, str] = {}
    for number, message in enumerate(a_list(body.get("messages"), "messages", empty=False)):
        where = f"messages.{number}"
        role = a_table(message, where).get("role")
        needs(role in ("user", "assistant"), f'{where}: role must be "user" or "assistant", got {role!r}')
        blocks = _blocks(message.get("content"), f"{where}.content")
        if role == "assistant":
            needs(not open_calls, _UNANSWERED.format(where, ", ".join(open_calls)))
            made = [_called(block, f"{where}.content") for block in blocks if block["type"] == "tool_use"]
            called += made
            open_calls = {call.id: call.name for call in made}
            continue
        answered = [block for block in blocks if block["type"] == "tool_result"]
        needs(
            blocks[: len(answered)] == answered,
            f"{where}: tool_result blocks must come first in the content of the message",
        )
        for block in answered:
            key = a_text(block.get("tool_use_id"), f"{where}.tool_use_id", empty=False)
            needs(
                key in open_calls,
                f"{where}: unexpected `tool_use_id` found in `tool_result` blocks: {key}. Each `tool_result` block "
                "must have a corresponding `tool_use` block in the previous message.",
            )
            text = text_of(block.get("content", ""), f"{where}.content", media=_MEDIA)
            results.append(Result(key, open_calls.pop(key), text, bool(block.get("is_error"))))
        needs(not open_calls, _UNANSWERED.format(where, ", ".join(open_calls)))
        if said := "".join(block["text"] for block in blocks if block["type"] == "text"):
            prompts.append(said)
    needs(not open_calls, _UNANSWERED.format("messages", ", ".join(open_calls)))
    system = text_of(body.get("system", ""), "system")
    last = body["messages"][-1]["content"]
    ends_with_result = isinstance(last, list) and last[-1].get("type") == "tool_result"
    streaming = bool(body.get("stream"))
    return Seen(model, system, tuple(prompts), tuple(called), tuple(results), tools, streaming, body, ends_with_result)


def write(turn: Turn, seen: Seen, number: int) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    if turn.uses:
        content.append({"type": "thinking", "thinking": "A script does it.", "signature": f"signed-{number}"})
    if turn.text:
        content.append({"type": "text", "text": turn.text, "citations": None})
    for index, use in enumerate(turn.uses):
        content.append({"type": "tool_use", "id": f"toolu_{number}_{index}", "name": use.name, "input": use.arguments})
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": seen.model,
        "content": content,
        "stop_reason": _reason(turn),
        "stop_sequence": None,
        "usage": {"input_tokens": 100, "output_tokens": 10},
    }


def stream(turn: Turn, seen: Seen, number: int) -> Iterator[str]:
    def event(kind: str, **data: Any) -> str:
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n"

    whole = write(turn, seen, number)
    yield event("message_start", message={**whole, "content": [], "stop_reason": None})
    yield event("ping")
    for index, block in enumerate(whole["content"]):
        match block["type"]:
            case "tool_use":
                begun, deltas = {**block, "input": {}}, _input_deltas(turn, block)
            case "thinking":
                begun = {**block, "thinking": "", "signature": ""}
                deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"])]
                deltas.append({"type": "signature_delta", "signature": block["signature"]})
            case _:
                begun = {**block, "text": ""}
                deltas = [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
        yield event("content_block_start", index=index, content_block=begun)
        for delta in deltas:
            yield event("content_block_delta", index=index, delta=delta)
        yield event("content_block_stop", index=index)
    yield event(
        "message_delta",
        delta={"stop_reason": whole["stop_reason"], "stop_sequence": None},
        usage={"output_tokens": 10},
    )
    yield event("message_stop")


def error(refused: Refused) -> dict[str, Any]:
    return {
        "type": "error",
        "error": {"type": "invalid_request_error", "message": refused.message},
        "request_id": "req_loopback",
    }


_UNANSWERED = "{}: `tool_use` ids were found without `tool_result` blocks immediately after: {}"


def _input_deltas(turn: Turn, block: dict[str, Any]) -> list[dict[str, Any]]:
    text = json.dumps(block["input"])
    if turn.cut and turn.uses and block["id"].endswith(f"_{len(turn.uses) - 1}"):
        text = text[: len(text) - 2]  # without the end of the string and the object
    return [{"type": "input_json_delta", "partial_json": piece} for piece in ["", *pieces(text)]]


def _tools(body: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for number, item in enumerate(a_list(body.get("tools", []), "tools")):
        where = f"tools.{number}"
        needs(a_table(item, where).get("type") in (None, "custom"), f"{where}.type: {item.get('type')!r} is unknown")
        name = tool_name(item.get("name"), f"{where}.name", found)
        description = a_text(item.get("description", ""), f"{where}.description")
        for key in item:
            needs(key in _TOOL_KEYS, f"{where}.{key}: Extra inputs are not permitted")
        parameters = schema(item.get("input_schema"), f"{where}.input_schema")
        found[name] = {"description": description, "parameters": parameters}
    return found


_TOOL_KEYS = (
    "type",
    "name",
    "description",
    "input_schema",
    "cache_control",
    "strict",
    "defer_loading",
    "input_examples",
)


_MEDIA = {"image": ("source", "data"), "document": ("source", "data")}


def _blocks(content: Any, where: str) -> list[dict[str, Any]]:
    if isinstance(content, str):
        needs(content, f"{where}: text content blocks must be non-empty")
        return [{"type": "text", "text": content}]
    blocks = []
    for number, block in enumerate(a_list(content, where, empty=False)):
        place = f"{where}.{number}"
        kind = a_table(block, place).get("type")
        needs(kind in ("text", "tool_use", "tool_result", "thinking", *_MEDIA), f"{place}.type: {kind!r} is unknown")
        if kind in _MEDIA:
            source = a_table(block.get("source"), f"{place}.source")
            a_text(source.get("data"), f"{place}.source.data", empty=False)
        if kind == "text":
            a_text(block.get("text"), f"{place}.text", empty=False)
        if kind == "thinking":
            needs(
                str(block.get("signature", "")).startswith("signed-"),
                f"{place}: Invalid `signature` in `thinking` block",
            )
        blocks.append(block)
    return blocks


def _called(block: dict[str, Any], where: str) -> Called:
    key = a_text(block.get("id"), f"{where}.id", empty=False)
    given = a_table(block.get("input"), f"{where}.input")
    return Called(key, a_text(block.get("name"), f"{where}.name", empty=False), given)


def _reason(turn: Turn) -> str:
    if turn.cut:
        return "max_tokens"
    if turn.paused:
        return "pause_turn"
    return "tool_use" if turn.uses else "end_turn"
