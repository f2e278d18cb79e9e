"""OpenAI responses, as the API checks and writes them. It keeps what it has answered, for `previous_response_id`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from wire.checks import a_list, a_table, a_text, json_text, needs, schema, text_of, tool_name
from wire.model import Called, Refused, Result, Seen, Turn
from wire.openai_chat import pieces

if TYPE_CHECKING:
    from collections.abc import Iterator

Kept = dict[str, list[Any]]
"""Input and output items of each response that was stored."""


def read(body: dict[str, Any], kept: Kept) -> Seen:
    model = a_text(body.get("model"), "model", empty=False)
    tools = _tools(body)
    system, prompts, called, results = [], [], [], []
    if body.get("instructions") is not None:
        system.append(a_text(body["instructions"], "instructions"))
    open_calls: dict[str, str] = {}
    for number, item in enumerate(_items(body, kept)):
        where = f"input[{number}]"
        kind = a_table(item, where).get("type", "message")
        match kind:
            case "message":
                role = item.get("role")
                kinds = ("input_text", "output_text", "refusal")
                text = text_of(item.get("content"), f"{where}.content", kinds)
                needs(role in ("user", "assistant", "system", "developer"), f"{where}.role: {role!r} is unknown")
                if role in ("system", "developer"):
                    system.append(text)
                elif role == "user":
                    prompts.append(text)
            case "function_call" | "custom_tool_call":
                key = a_text(item.get("call_id"), f"{where}.call_id", empty=False)
                name = a_text(item.get("name"), f"{where}.name", empty=False)
                given = item.get("arguments") if kind == "function_call" else item.get("input")
                called.append(Called(key, name, a_text(given, f"{where}.arguments")))
                open_calls[key] = name
            case "function_call_output" | "custom_tool_call_output":
                key = a_text(item.get("call_id"), f"{where}.call_id", empty=False)
                needs(key in open_calls, f"No tool call found for function call output with call_id {key}.")
                text = text_of(item.get("output"), f"{where}.output", ("input_text",), _MEDIA)
                results.append(Result(key, open_calls.pop(key), text))
            case "reasoning":
                a_text(item.get("id"), f"{where}.id", empty=False)
            case _:
                raise Refused(f"{where}.type: {kind!r} is unknown")
    needs(not open_calls, f"No tool output found for function call {', '.join(open_calls)}.")
    return Seen(
        model,
        "\n".join(system),
        tuple(prompts),
        tuple(called),
        tuple(results),
        tools,
        bool(body.get("stream")),
        body,
        str(_items(body, kept)[-1].get("type", "")).endswith("_output"),
    )


def write(turn: Turn, seen: Seen, number: int, kept: Kept) -> dict[str, Any]:
    output: list[dict[str, Any]] = [
        {"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": None, "status": None}
    ]
    if turn.text:
        content = [{"type": "output_text", "text": turn.text, "annotations": [], "logprobs": []}]
        status = "incomplete" if turn.cut and not turn.uses else "completed"
        output.append(
            {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": status, "content": content}
        )
    for index, use in enumerate(turn.uses):
        last = index == len(turn.uses) - 1
        key = f"{number}_{index}"
        if use.freeform:
            output.append(
                {
                    "type": "custom_tool_call",
                    "id": f"ctc_{key}",
                    "call_id": f"call_{key}",
                    "name": use.name,
                    "input": use.arguments,
                }
            )
            continue
        output.append(
            {
                "type": "function_call",
                "id": f"fc_{key}",
                "call_id": f"call_{key}",
                "name": use.name,
                "arguments": json_text(use.arguments),
                "status": "incomplete" if turn.cut and last else "completed",
            }
        )
    answer = _response(turn, seen, number, output)
    if seen.body.get("store", True):
        kept[answer["id"]] = [*_items(seen.body, kept), *output]
    return answer


def stream(turn: Turn, seen: Seen, number: int, kept: Kept) -> Iterator[str]:
    whole = write(turn, seen, number, kept)
    count = 0

    def event(kind: str, **data: Any) -> str:
        nonlocal count
        count += 1
        return f"event: {kind}\ndata: {json.dumps({'type': kind, 'sequence_number': count - 1, **data})}\n\n"

    started = {**whole, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
    yield event("response.created", response=started)
    yield event("response.in_progress", response=started)
    for index, item in enumerate(whole["output"]):
        place = {"output_index": index, "item_id": item["id"]}
        match item["type"]:
            case "function_call":
                begun = {**item, "arguments": "", "status": "in_progress"}
                yield event("response.output_item.added", output_index=index, item=begun)
                for piece in pieces(item["arguments"]):
                    yield event("response.function_call_arguments.delta", **place, delta=piece)
                done = {"arguments": item["arguments"], "name": item["name"]}
                yield event("response.function_call_arguments.done", **place, **done)
            case "custom_tool_call":
                yield event("response.output_item.added", output_index=index, item={**item, "input": ""})
                for piece in pieces(item["input"]):
                    yield event("response.custom_tool_call_input.delta", **place, delta=piece)
                yield event("response.custom_tool_call_input.done", **place, input=item["input"])
            case "message":
                part = item["content"][0]
                begun = {**item, "content": [], "status": "in_progress"}
                yield event("response.output_item.added", output_index=index, item=begun)
                inside = {**place, "content_index": 0}
                yield event("response.content_part.added", **inside, part={**part, "text": ""})
                for piece in pieces(part["text"]):
                    yield event("response.output_text.delta", **inside, delta=piece, logprobs=[])
                yield event("response.output_text.done", **inside, text=part["text"], logprobs=[])
                yield event("response.content_part.done", **inside, part=part)
            case _:
                yield event("response.output_item.added", output_index=index, item=item)
        yield event("response.output_item.done", output_index=index, item=item)
    yield event("response.incomplete" if turn.cut else "response.completed", response=whole)


def _items(body: dict[str, Any], kept: Kept) -> list[Any]:
    given = body.get("input")
    items = [{"role": "user", "content": given}] if isinstance(given, str) else a_list(given, "input", empty=False)
    previous = body.get("previous_response_id")
    if previous is None:
        return items
    needs(previous in kept, f"Previous response with id '{previous}' not found.")
    return [*kept[previous], *items]


def _tools(body: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for number, item in enumerate(a_list(body.get("tools", []), "tools")):
        where = f"tools[{number}]"
        kind = a_table(item, where).get("type")
        needs(kind in ("function", "custom"), f"{where}.type: {kind!r} is not 'function' or 'custom'")
        name = tool_name(item.get("name"), f"{where}.name", found)
        description = a_text(item.get("description", ""), f"{where}.description")
        if kind == "custom":
            found[name] = {"description": description, "parameters": None}
            continue
        needs("strict" in item, f"Missing required parameter: '{where}.strict'.")
        found[name] = {"description": description, "parameters": schema(item.get("parameters"), f"{where}.parameters")}
    return found


_MEDIA = {"input_image": ("image_url",), "input_file": ("file_data",)}


def _response(turn: Turn, seen: Seen, number: int, output: list[dict[str, Any]]) -> dict[str, Any]:
    usage = {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 10,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 110,
    }
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 1_750_000_000,
        "status": "incomplete" if turn.cut else "completed",
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if turn.cut else None,
        "instructions": seen.body.get("instructions"),
        "model": seen.model,
        "output": output,
        "parallel_tool_calls": True,
        "previous_response_id": seen.body.get("previous_response_id"),
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": seen.body.get("tools", []),
        "top_p": 1.0,
        "usage": usage,
        "metadata": {},
    }
