"""The messages of chat completions, which OpenAI, LiteLLM, llama-cpp-python and many servers share."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from moonbox.adapters.base import ModelCall, as_messages, cut_off, is_json_object, media_title
from moonbox.adapters.loop import CallT, Collector, MessageT, ModelAdapter, ResponseT, ResultT, ToolT
from moonbox.codemode.definitions import parse_arguments, portable_value

if TYPE_CHECKING:
    from moonbox.codemode.mode import Reply
    from moonbox.media import Media

_ONLY_IN_ANSWERS = ("annotations", "audio", "function_call", "parsed")


class ChatCompletions(ModelAdapter[CallT, ResultT, ResponseT, MessageT, ToolT]):
    """An adapter whose messages have `role`, `content`, `tool_calls` and `tool_call_id`."""

    @property
    def tools(self) -> list[ToolT]:
        return cast("list[ToolT]", self.mode.definitions("openai"))

    @abstractmethod
    def _whole(self, answer: dict[str, Any]) -> ResponseT:
        """An answer in the package's own type."""

    def read_call(self, call: Any) -> ModelCall:
        message = as_dict(call)
        function = message.get("custom") or message.get("function") or {}
        arguments = function.get("arguments")
        if message.get("custom"):  # a tool that takes text instead of JSON: the script itself
            arguments = {self.mode.parameter: function.get("input")}
        return ModelCall(message.get("id") or "", function.get("name") or "", arguments, origin=message)

    def _choice(self, response: Any) -> tuple[dict[str, Any], str | None]:
        """The message of the first choice, and why it ended."""
        choices = as_dict(response).get("choices") or ()
        if not choices:
            return {}, None
        return choices[0].get("message") or {}, choices[0].get("finish_reason")

    def read_calls(self, response: Any) -> list[ModelCall]:
        message, reason = self._choice(response)
        return cut_off([self.read_call(call) for call in _tool_calls(message)], reason == "length")

    def to_result(self, call: ModelCall, reply: Reply) -> ResultT:
        return cast("ResultT", {"role": "tool", "tool_call_id": call.id, "content": reply.text})

    def assistant_messages(self, response: Any) -> list[Any]:
        message, _ = self._choice(response)
        kept = {key: value for key, value in message.items() if key not in _ONLY_IN_ANSWERS and value is not None}
        calls = [_readable(call) for call in _tool_calls(message)]
        if calls:
            kept["tool_calls"] = calls
        return [{"role": "assistant", "content": None if calls else "", **kept}]

    def media_messages(self, replies: Sequence[Reply]) -> list[MessageT]:
        """A message of the user's: results of tools are text alone in chat completions."""
        media = [medium for reply in replies for medium in reply.media if _chat_part(medium) is not None]
        if not media:
            return []
        parts = [{"type": "text", "text": media_title(media)}, *map(_chat_part, media)]
        return cast("list[MessageT]", [{"role": "user", "content": parts}])

    def text_of(self, response: Any) -> str:
        message, _ = self._choice(response)
        return message.get("content") or message.get("refusal") or ""

    def begin(self, messages: Any, system: Any, request: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        return with_system(as_messages(messages), system, self.system_prompt), self._with_tools(request)

    def collector(self) -> Collector:
        return ChatCollector(self._whole)


class ChatCollector:
    """Puts the deltas of a chat completion together."""

    def __init__(self, whole: Any) -> None:
        self._to_object = whole
        self._head: dict[str, Any] = {}
        self._message: dict[str, Any] = {"role": "assistant", "content": None}
        self._calls: list[dict[str, Any]] = []
        self._places: dict[int, int] = {}
        self._reason: str | None = None

    def add(self, chunk: Any) -> str:
        data = as_dict(chunk)
        self._head.update({key: value for key, value in data.items() if key != "choices" and value is not None})
        choice = next((item for item in data.get("choices") or () if item.get("index", 0) == 0), None)
        if choice is None:
            return ""
        self._reason = choice.get("finish_reason") or self._reason
        delta = choice.get("delta") or {}
        _add(self._message, {key: value for key, value in delta.items() if key not in ("tool_calls", "role")})
        for part in delta.get("tool_calls") or ():
            self._add_call(part)
        return delta.get("content") or ""

    def whole(self) -> Any:
        for number, call in enumerate(self._calls):
            call.setdefault("type", "function")
            call["id"] = call.get("id") or f"call_{number}"
        message = {**self._message, **({"tool_calls": self._calls} if self._calls else {})}
        choice = {"index": 0, "message": message, "finish_reason": self._reason or "stop", "logprobs": None}
        return self._to_object({**self._head, "object": "chat.completion", "choices": [choice]})

    def _add_call(self, part: dict[str, Any]) -> None:
        index = part.get("index")
        index = len(self._calls) if index is None else index
        place = self._places.get(index)
        if place is None or (part.get("id") and self._calls[place].get("id") not in (None, part["id"])):
            place = self._places[index] = len(self._calls)  # some servers give every call the same index
            self._calls.append({})
        call = self._calls[place]
        for key, value in part.items():
            if key in ("function", "custom") and isinstance(value, dict):
                _add(call.setdefault(key, {}), value)
            elif key != "index" and value is not None:
                call[key] = value


def _add(whole: dict[str, Any], delta: dict[str, Any]) -> None:
    """Add a delta to what there is, text to text; a name comes whole, perhaps again and again."""
    for key, value in delta.items():
        before = whole.get(key)
        if value is None or (key == "name" and not value):
            continue
        if key != "name" and isinstance(before, str) and isinstance(value, str):
            value = before + value
        whole[key] = value


def _chat_part(medium: Media) -> dict[str, Any] | None:
    """A medium as a part of a message; None where there is no such part."""
    match medium.kind, medium.type:
        case "image", _:
            return {"type": "image_url", "image_url": {"url": medium.data_uri}}
        case "audio", "audio/wav" | "audio/x-wav" | "audio/mpeg" | "audio/mp3":
            form = "wav" if medium.type.endswith("wav") else "mp3"
            return {"type": "input_audio", "input_audio": {"data": medium.base64, "format": form}}
        case "file", _:
            return {"type": "file", "file": {"filename": medium.name, "file_data": medium.data_uri}}
    return None


def with_system(messages: list[Any], *prompts: str | None) -> list[Any]:
    """The messages with the prompts in their system message, which is made if there is none."""
    prompt = "\n\n".join(part for part in prompts if part)
    if not prompt:
        return messages
    first = as_dict(messages[0]) if messages else {}
    content = first.get("content")
    if first.get("role") not in ("system", "developer") or not isinstance(content, str):
        return [{"role": "system", "content": prompt}, *messages]
    if content.endswith(prompt):  # a conversation that goes on has it already
        return messages
    return [{**first, "content": f"{content}\n\n{prompt}"}, *messages[1:]]


def as_dict(item: Any) -> dict[str, Any]:
    """A package's object, or a dict, as a dict without what it leaves open."""
    if isinstance(item, dict):
        return item
    # All of them are pydantic models, built without validation from whatever the server sent.
    return cast("dict[str, Any]", item.model_dump(by_alias=True, exclude_none=True, warnings=False))


def _tool_calls(message: dict[str, Any]) -> list[dict[str, Any]]:
    """The calls, each with an id: some servers give none."""
    calls = message.get("tool_calls") or ()
    return [{**call, "id": call.get("id") or f"call_{number}"} for number, call in enumerate(calls)]


def _readable(call: dict[str, Any]) -> dict[str, Any]:
    """The call as it may stand in the messages: servers that read the arguments of earlier calls refuse bad JSON."""
    function = call.get("function")
    if not isinstance(function, dict):
        return call
    function = {key: value for key, value in function.items() if key != "parsed_arguments"}
    try:
        function["arguments"] = _rewritten(function.get("arguments"))
    except RecursionError:
        function["arguments"] = json.dumps({"malformed": "nested too deeply"})
    return {**call, "function": function}


def _rewritten(text: Any) -> str:
    given = parse_arguments(text) if text else None
    if given is None:
        return json.dumps({"malformed": text} if text else {})
    if isinstance(text, str) and is_json_object(text) and portable_value(given) == given:
        return text
    return json.dumps(portable_value(given))  # read kindly here, but others may not
