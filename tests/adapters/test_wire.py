"""The servers on loopback: they refuse what the providers refuse, or the adapters' tests would prove little."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

import pytest
from wire import Say, Turn, Use, serve

TOOL = {"name": "x", "description": "d", "parameters": {"type": "object", "properties": {}}}
CALL = {"id": "1", "type": "function", "function": {"name": "x", "arguments": "{}"}}
USER = {"role": "user", "content": "hi"}
USE = {"type": "tool_use", "id": "1", "name": "x", "input": {}}


def chat(**changes: Any) -> tuple[str, dict[str, Any]]:
    return "/v1/chat/completions", {"model": "m", "messages": [USER], **changes}


def function(**changes: Any) -> dict[str, Any]:
    return {"type": "function", "function": {**TOOL, **changes}}


def responses(**changes: Any) -> tuple[str, dict[str, Any]]:
    return "/v1/responses", {"model": "m", "input": "hi", **changes}


def messages(**changes: Any) -> tuple[str, dict[str, Any]]:
    return "/v1/messages", {"model": "m", "max_tokens": 9, "messages": [USER], **changes}


def gemini(*contents: Any, **changes: Any) -> tuple[str, dict[str, Any]]:
    given = contents or ({"parts": [{"text": "hi"}]},)
    return "/v1beta/models/m:generateContent", {"contents": list(given), **changes}


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (chat(model=""), "model: expected a string that is not empty"),
        (chat(messages=[]), "messages: expected an array that is not empty"),
        (chat(tools=[]), "[] is too short - 'tools'"),
        (chat(tools=[function(name="a b")]), "does not match"),
        (chat(tools=[function(), function()]), "tool names must be unique"),
        (chat(tools=[function(parameters={"type": "array"})]), "schema must have type 'object'"),
        (chat(tools=[function(parameters={"type": "object", "anyOf": []})]), "must not have 'anyOf' at the top level"),
        (
            chat(tools=[function(parameters={"type": "object", "properties": {"a": {"type": "array"}}})]),
            "array schema missing items",
        ),
        (
            chat(tools=[function(parameters={"type": "object", "properties": {}, "required": ["a"]})]),
            "there is no property 'a'",
        ),
        (chat(messages=[USER, {"role": "assistant", "tool_calls": [CALL]}]), "did not have response messages: 1"),
        (chat(messages=[USER, {"role": "assistant", "tool_calls": [CALL]}, USER]), "did not have response messages: 1"),
        (chat(messages=[{"role": "tool", "tool_call_id": "1", "content": "x"}]), "must be a response to a preceeding"),
        (
            chat(
                messages=[{"role": "assistant", "tool_calls": [{**CALL, "function": {"name": "x", "arguments": "{"}}]}]
            ),
            "not valid JSON",
        ),
        (responses(tools=[{"type": "function", **TOOL}]), "Missing required parameter: 'tools[0].strict'"),
        (responses(previous_response_id="resp_9"), "Previous response with id 'resp_9' not found."),
        (
            responses(input=[{"type": "function_call", "call_id": "1", "name": "x", "arguments": "{}"}]),
            "No tool output found for function call 1.",
        ),
        (
            responses(input=[{"type": "function_call_output", "call_id": "1", "output": "x"}]),
            "No tool call found for function call output with call_id 1.",
        ),
        (messages(max_tokens=None), "max_tokens: Field required"),
        (messages(messages=[{"role": "system", "content": "x"}]), 'role must be "user" or "assistant"'),
        (messages(messages=[USER, {"role": "assistant", "content": []}]), "expected an array that is not empty"),
        (messages(messages=[USER, {"role": "assistant", "content": [USE]}]), "without `tool_result` blocks"),
        (messages(messages=[USER, {"role": "assistant", "content": [USE]}, USER]), "without `tool_result` blocks"),
        (
            messages(messages=[{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1"}]}]),
            "unexpected `tool_use_id` found",
        ),
        (
            messages(
                messages=[
                    USER,
                    {"role": "assistant", "content": [{"type": "thinking", "thinking": "x", "signature": ""}]},
                ]
            ),
            "Invalid `signature` in `thinking` block",
        ),
        (messages(tools=[{**TOOL, "input_schema": TOOL["parameters"]}]), "Extra inputs are not permitted"),
        (gemini({"parts": []}), "expected an array that is not empty"),
        (gemini({"role": "tool", "parts": [{"text": "x"}]}), "Please use a valid role"),
        (
            gemini({"role": "model", "parts": [{"functionCall": {"name": "x", "args": {}}}]}),
            "function call turn is followed by a function response turn",
        ),
        (
            gemini(
                {"role": "model", "parts": [{"functionCall": {"name": "x", "args": {}}}]},
                {"parts": [{"functionResponse": {"name": "y", "response": {"output": "1"}}}]},
            ),
            "'y' answers 'x'",
        ),
        (
            gemini(
                {"role": "model", "parts": [{"functionCall": {"id": "fn_1_0", "name": "x"}}]},
                {"parts": [{"functionResponse": {"name": "x", "response": {}}}]},
            ),
            "missing a thought_signature",
        ),
        (
            gemini(tools=[{"functionDeclarations": [{"name": "2x", "description": "d"}]}]),
            "must start with a letter or _",
        ),
        (("/v1/other", {}), "Unknown request URL"),
    ],
)
def test_what_is_refused(request_: tuple[str, dict[str, Any]], message: str) -> None:
    path, body = request_
    with serve(lambda seen: Say("hi")) as wire:
        status, text = post(wire.url + path, body)
        assert wire.refused and not wire.seen
    assert 400 <= status < 500
    assert message in json.loads(text)["error"]["message"]


def test_a_key_is_needed() -> None:
    with serve(lambda seen: Say("hi")) as wire:
        for path, body in (chat(), responses(), messages(), gemini()):
            assert post(wire.url + path, body, key=False)[0] == 401


def test_turns() -> None:
    assert Turn.of(Say("a")) == Turn("a")
    assert Turn.of([Use("x"), Use("y")]) == Turn(uses=(Use("x"), Use("y")))
    with pytest.raises(TypeError):
        Turn.of("text")


def post(url: str, body: dict[str, Any], *, key: bool = True) -> tuple[int, str]:
    names = ("authorization", "x-goog-api-key") if key else ()
    headers = {"content-type": "application/json", "anthropic-version": "1", **dict.fromkeys(names, "key")}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()
