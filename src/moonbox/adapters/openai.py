"""OpenAI: chat completions and responses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from moonbox.adapters.base import Adapter, ModelCall, as_messages, cut_off, needed
from moonbox.adapters.chat import ChatCompletions, as_dict
from moonbox.adapters.loop import Collector, ModelAdapter
from moonbox.errors import MoonboxError

if TYPE_CHECKING:
    from openai.types import chat, responses
    from openai.types.responses.response_input_item_param import FunctionCallOutput

    from moonbox.codemode.mode import Reply


class _Client(Adapter):
    """What both have in common: the client, and the code tool as a custom tool."""

    def __init__(self, source: Any = (), *, freeform: bool = False, **settings: Any) -> None:
        needed("openai", extra="openai", purpose=type(self).__name__)
        self._freeform = freeform
        super().__init__(source, **settings)

    def default_client(self, *, awaited: bool) -> Any:
        import openai

        return openai.AsyncOpenAI() if awaited else openai.OpenAI()


class OpenAIChat(
    _Client,
    ChatCompletions[
        "chat.ChatCompletionMessageToolCallUnion",
        "chat.ChatCompletionToolMessageParam",
        "chat.ChatCompletion",
        "chat.ChatCompletionMessageParam",
        "chat.ChatCompletionToolUnionParam",
    ],
):
    """Code mode for `client.chat.completions`, also of servers compatible with OpenAI's.

    With `freeform` the code tool is a custom tool: the model writes the script as it is, not inside JSON.
    """

    endpoint = "chat.completions.create"

    @property
    def tools(self) -> list[chat.ChatCompletionToolUnionParam]:
        definitions = self.mode.definitions("openai")
        if self._freeform and self.mode.choice.code:
            definitions[0] = {"type": "custom", "custom": _custom(definitions[0]["function"])}
        return cast("list[chat.ChatCompletionToolUnionParam]", definitions)

    def _whole(self, answer: dict[str, Any]) -> chat.ChatCompletion:
        from openai.types.chat import ChatCompletion

        return ChatCompletion.construct(**answer)


class OpenAIResponses(
    _Client,
    ModelAdapter[
        "responses.ResponseFunctionToolCall",
        "FunctionCallOutput",
        "responses.Response",
        "responses.ResponseInputItemParam",
        "responses.ToolParam",
    ],
):
    """Code mode for `client.responses`. `freeform` is as with OpenAIChat."""

    endpoint, messages_key = "responses.create", "input"

    @property
    def tools(self) -> list[responses.ToolParam]:
        definitions = self.mode.definitions("openai-responses")
        if self._freeform and self.mode.choice.code:
            definitions[0] = {"type": "custom", **_custom(definitions[0])}
        return cast("list[responses.ToolParam]", definitions)

    def read_call(self, call: Any) -> ModelCall:
        item = as_dict(call)
        freeform = item.get("type") == "custom_tool_call"
        arguments = {self.mode.parameter: item.get("input")} if freeform else item.get("arguments")
        cut = item.get("status") == "incomplete"
        return ModelCall(item.get("call_id") or "", item.get("name") or "", arguments, cut, item)

    def read_calls(self, response: Any) -> list[ModelCall]:
        body = as_dict(response)
        items = body.get("output") or ()
        calls = [self.read_call(item) if item.get("type") in _CALLS else None for item in items]
        return cut_off(calls, body.get("status") == "incomplete")

    def to_result(self, call: ModelCall, reply: Reply) -> FunctionCallOutput:
        kind = f"{(call.origin or {}).get('type', 'function_call')}_output"
        parts = [
            {"type": "input_image", "image_url": medium.data_uri, "detail": "auto"}
            if medium.kind == "image"
            else {"type": "input_file", "filename": medium.name, "file_data": medium.data_uri}
            for medium in reply.media
            if medium.kind != "audio"
        ]
        output = [{"type": "input_text", "text": reply.text}, *parts] if parts else reply.text
        return cast("FunctionCallOutput", {"type": kind, "call_id": call.id, "output": output})

    def assistant_messages(self, response: Any) -> list[Any]:
        return [_sendable(item) for item in as_dict(response).get("output") or ()]

    def text_of(self, response: Any) -> str:
        items = [item for item in as_dict(response).get("output") or () if item.get("type") == "message"]
        parts = [part for item in items for part in item.get("content") or ()]
        return "".join(part.get("text") or part.get("refusal") or "" for part in parts)

    def begin(self, messages: Any, system: Any, request: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        prompt = "\n\n".join(part for part in (request.get("instructions"), system, self.system_prompt) if part)
        return as_messages(messages), self._with_tools(request, instructions=prompt)

    def collector(self) -> Collector:
        return _ResponseCollector()


_CALLS = ("function_call", "custom_tool_call")
_ENDS = ("response.completed", "response.incomplete", "response.failed")
_PIECES = {"response.function_call_arguments.delta": "arguments", "response.custom_tool_call_input.delta": "input"}
"""The part of a call that each kind of event adds text to."""


class _ResponseCollector:
    """Puts the events of a response together; the last of them repeats the whole."""

    def __init__(self) -> None:
        self._items: dict[int, dict[str, Any]] = {}
        self._last: Any = None

    def add(self, chunk: Any) -> str:
        event = as_dict(chunk)
        kind, place = event.get("type", ""), event.get("output_index", 0)
        if kind in ("response.output_item.added", "response.output_item.done"):
            self._items[place] = event["item"]
        elif key := _PIECES.get(kind):
            item = self._items.setdefault(place, {})
            item[key] = (item.get(key) or "") + event["delta"]
        elif kind in _ENDS:
            self._last = dict(event["response"])
        return event["delta"] if kind == "response.output_text.delta" else ""

    def whole(self) -> Any:
        from openai.types.responses import Response

        if self._last is None:
            raise MoonboxError("the stream ended before the response was complete")
        if not self._last.get("output"):  # some compatible servers leave it out at the end
            self._last["output"] = [self._items[place] for place in sorted(self._items)]
        return Response.construct(**self._last)


def _custom(definition: dict[str, Any]) -> dict[str, Any]:
    return {"name": definition["name"], "description": definition["description"], "format": {"type": "text"}}


def _sendable(item: dict[str, Any]) -> dict[str, Any]:
    """An item of an answer as an item of the next request: without what the client library added to it."""
    sent = {key: value for key, value in item.items() if value is not None and key != "parsed_arguments"}
    if item.get("type") == "message":
        content = item.get("content") or ()
        sent["content"] = [{key: part[key] for key in part if key != "parsed"} for part in content]
    return sent
