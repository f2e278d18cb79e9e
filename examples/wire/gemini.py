"""Google GenAI's generateContent, as the API checks and writes it."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from wire.checks import a_list, a_table, a_text, needs, schema, tool_name
from wire.model import Called, Refused, Result, Seen, Turn
from wire.openai_chat import pieces

if TYPE_CHECKING:
    from collections.abc import Iterator


def read(body: dict[str, Any], model: str, *, streaming: bool) -> Seen:
    body = _spelled(body)
    tools = _tools(body)
    prompts: list[str] = []
    called: list[Called] = []
    results: list[Result] = []
    waiting: list[Called] = []
    for number, content in enumerate(a_list(body.get("contents"), "contents", empty=False)):
        where = f"contents[{number}]"
        role = a_table(content, where).get("role", "user")
        needs(role in ("user", "model"), "Please use a valid role: user, model.")
        parts = a_list(content.get("parts"), f"{where}.parts", empty=False)
        answers = [part["functionResponse"] for part in parts if "functionResponse" in a_table(part, f"{where}.parts")]
        if waiting:
            needs(
                len(answers) == len(waiting),
                "Please ensure that the number of function response parts is equal to the number of function call "
                "parts of the function call turn.",
            )
            results += [_result(answer, call, where) for answer, call in zip(answers, waiting, strict=True)]
            waiting = []
        else:
            needs(
                not answers, "Please ensure that function response turn comes immediately after a function call turn."
            )
        if role == "user":
            prompts += (
                ["".join(part["text"] for part in parts if "text" in part)] if any("text" in p for p in parts) else []
            )
            continue
        waiting = [_called(part, f"{where}.parts") for part in parts if "functionCall" in part]
        called += waiting
    needs(not waiting, "Please ensure that function call turn is followed by a function response turn.")
    system = "".join(
        part.get("text", "") for part in a_table(body.get("systemInstruction", {}), "system").get("parts", ())
    )
    answered = "functionResponse" in body["contents"][-1]["parts"][-1]
    return Seen(model, system, tuple(prompts), tuple(called), tuple(results), tools, streaming, body, answered)


def write(turn: Turn, seen: Seen, number: int) -> dict[str, Any]:
    return _answer(seen, number, _parts(turn, number), _reason(turn))


def stream(turn: Turn, seen: Seen, number: int) -> Iterator[str]:
    whole = _parts(turn, number)
    for part in whole:
        if "text" in part:
            for piece in pieces(part["text"]):
                yield f"data: {json.dumps(_answer(seen, number, [{'text': piece}], None))}\r\n\r\n"
        else:
            yield f"data: {json.dumps(_answer(seen, number, [part], None))}\r\n\r\n"
    yield f"data: {json.dumps(_answer(seen, number, [{'text': ''}], _reason(turn)))}\r\n\r\n"


def error(refused: Refused) -> dict[str, Any]:
    return {"error": {"code": refused.status, "message": refused.message, "status": "INVALID_ARGUMENT"}}


def _parts(turn: Turn, number: int) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = [{"text": turn.text}] if turn.text else []
    for index, use in enumerate(turn.uses):
        part: dict[str, Any] = {"functionCall": {"id": f"fn_{number}_{index}", "name": use.name, "args": use.arguments}}
        if index == 0:  # thinking models want this back, on the part where it came
            part["thoughtSignature"] = _signature(use.name)
        parts.append(part)
    return parts


def _signature(name: str) -> str:
    return base64.b64encode(f"thought about {name}".encode()).decode()


def _called(part: dict[str, Any], where: str) -> Called:
    call = a_table(part["functionCall"], f"{where}.functionCall")
    name = a_text(call.get("name"), f"{where}.functionCall.name", empty=False)
    key = call.get("id") or ""
    if key.endswith("_0"):
        needs(
            part.get("thoughtSignature") == _signature(name),
            f"Function call is missing a thought_signature in functionCall parts. Function call: {name}",
        )
    return Called(key, name, a_table(call.get("args", {}), f"{where}.functionCall.args"))


def _result(answer: Any, call: Called, where: str) -> Result:
    found = a_table(answer, f"{where}.functionResponse")
    name = a_text(found.get("name"), f"{where}.functionResponse.name", empty=False)
    needs(name == call.name, f"{where}.functionResponse.name: {name!r} answers {call.name!r}")
    needs(found.get("id", call.id) == call.id, f"{where}.functionResponse.id: {found.get('id')!r} is not {call.id!r}")
    response = a_table(found.get("response"), f"{where}.functionResponse.response")
    for key in ("error", "output"):
        if key in response:
            return Result(call.id, name, a_text(response[key], f"{where}.response"), key == "error")
    said = response.get("content")  # without those two keys the whole is the output
    return Result(call.id, name, said if isinstance(said, str) else json.dumps(response), False)


def _tools(body: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for number, item in enumerate(a_list(body.get("tools", []), "tools")):
        declarations = a_table(item, f"tools[{number}]").get("functionDeclarations", [])
        for index, declared in enumerate(a_list(declarations, f"tools[{number}].function_declarations")):
            where = f"tools[{number}].function_declarations[{index}]"
            name = tool_name(declared.get("name"), f"{where}.name", found, letter_first=True)
            schemas = [declared[key] for key in ("parameters", "parametersJsonSchema") if key in declared]
            needs(len(schemas) <= 1, f"{where}: parameters and parameters_json_schema exclude each other")
            given = schemas[0] if schemas else {"type": "object"}
            found[name] = {
                "description": a_text(declared.get("description"), f"{where}.description", empty=False),
                "parameters": schema(given, f"{where}.parameters_json_schema"),
            }
    return found


_DATA = ("args", "response", "parameters", "parametersJsonSchema", "properties")


def _spelled(value: Any) -> Any:
    """The request in one spelling: the API reads `functionCall` and `function_call`."""
    if isinstance(value, list):
        return [_spelled(item) for item in value]
    if not isinstance(value, dict):
        return value
    found = {}
    for key, item in value.items():
        first, *rest = key.split("_")
        name = first + "".join(part.capitalize() for part in rest)
        found[name] = item if name in _DATA else _spelled(item)
    return found


def _answer(seen: Seen, number: int, parts: list[dict[str, Any]], reason: str | None) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
    if reason is not None:
        candidate["finishReason"] = reason
    return {
        "candidates": [candidate],
        "modelVersion": seen.model,
        "responseId": f"response-{number}",
        "usageMetadata": {"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110},
    }


def _reason(turn: Turn) -> str:
    return "MAX_TOKENS" if turn.cut else "STOP"
