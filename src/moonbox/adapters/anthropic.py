"""Anthropic: messages."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from moonbox.adapters.base import ModelCall, as_messages, cut_off, is_json_object, needed
from moonbox.adapters.chat import as_dict
from moonbox.adapters.loop import Collector, ModelAdapter
from moonbox.errors import MoonboxError

if TYPE_CHECKING:
    from anthropic import types

    from moonbox.codemode.mode import Reply
    from moonbox.media import Media

_MAX_TOKENS = 8192
_CUT = ("max_tokens", "model_context_window_exceeded")


class AnthropicMessages(
    ModelAdapter[
        "types.ToolUseBlock", "types.ToolResultBlockParam", "types.Message", "types.MessageParam", "types.ToolParam"
    ]
):
    """Code mode for `client.messages`.

    With `cache` the definitions end with a cache breakpoint: they do not change, so that later requests read them from
    Anthropic's prompt cache.
    """

    endpoint = "messages.create"

    def __init__(self, source: Any = (), *, cache: bool = False, **settings: Any) -> None:
        needed("anthropic", extra="anthropic", purpose=type(self).__name__)
        self._cache = cache
        super().__init__(source, **settings)

    @property
    def tools(self) -> list[types.ToolParam]:
        definitions = self.mode.definitions("anthropic")
        if self._cache and definitions:
            definitions[-1]["cache_control"] = {"type": "ephemeral"}
        return cast("list[types.ToolParam]", definitions)

    def read_call(self, call: Any) -> ModelCall:
        block = as_dict(call)
        return ModelCall(block.get("id") or "", block.get("name") or "", block.get("input"), origin=block)

    def read_calls(self, response: Any) -> list[ModelCall]:
        message = as_dict(response)
        blocks = message.get("content") or []
        calls = [self.read_call(block) if block.get("type") == "tool_use" else None for block in blocks]
        # The client makes an object of a call that was cut off all the same.
        return cut_off(calls, message.get("stop_reason") in _CUT)

    def to_result(self, call: ModelCall, reply: Reply) -> types.ToolResultBlockParam:
        result: types.ToolResultBlockParam = {"type": "tool_result", "tool_use_id": call.id, "content": reply.text}
        blocks = [block for block in map(_block, reply.media) if block is not None]
        if blocks:
            result["content"] = cast("Any", [{"type": "text", "text": reply.text}, *blocks])
        if reply.is_error:
            result["is_error"] = True
        return result

    def assistant_messages(self, response: Any) -> list[Any]:
        # Without what the client library added to them.
        blocks = [
            {key: value for key, value in block.items() if value is not None and key != "parsed_output"}
            for block in as_dict(response).get("content") or ()
        ]
        return [{"role": "assistant", "content": blocks}] if blocks else []

    def result_messages(self, results: list[Any]) -> list[Any]:
        return [{"role": "user", "content": results}]

    def text_of(self, response: Any) -> str:
        blocks = as_dict(response).get("content") or ()
        return "".join(block.get("text") or "" for block in blocks if block.get("type") == "text")

    def is_over(self, response: Any) -> bool:
        return not self.read_calls(response) and as_dict(response).get("stop_reason") != "pause_turn"

    def begin(self, messages: Any, system: Any, request: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        addition = self.system_prompt
        if system and not isinstance(system, str):  # blocks of text, perhaps with cache breakpoints
            prompt: Any = [*system, {"type": "text", "text": addition}] if addition else list(system)
        else:
            prompt = "\n\n".join(part for part in (system, addition) if part)
        return as_messages(messages), {"max_tokens": _MAX_TOKENS, **self._with_tools(request, system=prompt)}

    def default_client(self, *, awaited: bool) -> Any:
        import anthropic

        return anthropic.AsyncAnthropic() if awaited else anthropic.Anthropic()

    def collector(self) -> Collector:
        return _MessageCollector()


def _block(medium: Media) -> dict[str, Any] | None:
    """A medium as a block of a result; None where there is no such block."""
    source = {"type": "base64", "media_type": medium.type, "data": medium.base64}
    if medium.type in ("image/png", "image/jpeg", "image/gif", "image/webp"):
        return {"type": "image", "source": source}
    if medium.type == "application/pdf":
        return {"type": "document", "source": source, "title": medium.name}
    return None


class _MessageCollector:
    """Puts the events of a message together."""

    def __init__(self) -> None:
        self._message: dict[str, Any] | None = None
        self._blocks: dict[int, dict[str, Any]] = {}

    def add(self, chunk: Any) -> str:
        event = as_dict(chunk)
        match event.get("type"):
            case "message_start":
                self._message = dict(event["message"])
            case "content_block_start":
                self._blocks[event["index"]] = dict(event["content_block"])
            case "content_block_delta":
                return self._more(event["index"], event["delta"])
            case "message_delta" if self._message is not None:
                usage = {**(self._message.get("usage") or {}), **(event.get("usage") or {})}
                self._message.update(event["delta"], usage=usage)
        return ""

    def whole(self) -> Any:
        from anthropic.types import Message

        if self._message is None or self._message.get("stop_reason") is None:
            raise MoonboxError("the stream ended before the message was complete")
        content = [self._blocks[index] for index in sorted(self._blocks)]
        for block in content:
            if text := block.pop("partial_json", ""):  # what is not a JSON object is kept: the model gets an error
                block["input"] = json.loads(text) if is_json_object(text) else {"malformed": text}
        return Message.construct(**{**self._message, "content": content})

    def _more(self, index: int, delta: dict[str, Any]) -> str:
        block, kind = self._blocks[index], delta.get("type")
        if kind == "citations_delta":
            block["citations"] = [*(block.get("citations") or ()), delta["citation"]]
        elif key := _PIECES.get(kind):
            before = "" if key == "signature" else block.get(key) or ""  # a signature comes whole
            block[key] = before + delta[key]
        return str(delta["text"]) if kind == "text_delta" else ""


_PIECES: dict[Any, str] = {
    "text_delta": "text",
    "input_json_delta": "partial_json",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
}
"""What each kind of delta adds text to."""
