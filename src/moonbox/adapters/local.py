"""Local models: servers that speak OpenAI's chat completions, and llama-cpp-python in this process."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import TYPE_CHECKING, Any, Literal

from moonbox.adapters.base import needed
from moonbox.adapters.chat import ChatCollector, ChatCompletions, with_system
from moonbox.adapters.text_calls import read_calls, said_before_calls, said_in_json
from moonbox.errors import UsageError
from moonbox.suggest import suggestion

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from moonbox.adapters.answering import ModelCall
    from moonbox.adapters.dialect import Collector
    from moonbox.codemode.definitions import Definition
    from moonbox.codemode.mode import Reply

__all__ = ["SERVERS", "LlamaCpp", "server"]

SERVERS = {
    "ollama": "http://localhost:11434/v1",
    "vllm": "http://localhost:8000/v1",
    "llama.cpp": "http://localhost:8080/v1",
    "lmstudio": "http://localhost:1234/v1",
}
"""Where each listens when nobody tells it otherwise."""

_PROTOCOL = """Answer with one JSON object and nothing else. To call a tool:
{"tool": "<name>", "arguments": {...}}
To answer the user:
{"answer": "<text>"}
The result of a call comes in the next message. The tools:"""


def server(name: str, *, api_key: str = "local") -> dict[str, str]:
    """What an OpenAI client needs for a local server: `OpenAI(**server("ollama"))`. `name` may be an address."""
    if "://" in name:
        return {"base_url": name, "api_key": api_key}
    if name not in SERVERS:
        near = suggestion(name, SERVERS)
        raise UsageError(f"unknown server {name!r}{near}; give its address, or one of: {', '.join(SERVERS)}")
    return {"base_url": SERVERS[name], "api_key": api_key}


class LlamaCpp(ChatCompletions[dict[str, Any], dict[str, Any], dict[str, Any], dict[str, Any], dict[str, Any]]):
    """Code mode for a model in this process: `run(…, client=Llama(model_path=…))`.

    style="template"   the model's chat template shows the tools, and its way of writing calls is understood
    style="json"       for models that were not trained on tools: a grammar makes every answer a call or a text
    """

    def __init__(self, source: Any = (), *, style: Literal["template", "json"] = "template", **settings: Any) -> None:
        if style not in ("template", "json"):
            raise UsageError(f'style must be "template" or "json", not {style!r}')
        needed("llama_cpp", package="llama-cpp-python", extra="llama-cpp", purpose=type(self).__name__)
        self._style = style
        self._lock = threading.Lock()  # a Llama computes one answer at a time
        super().__init__(source, **settings)

    # Reading what the model wrote

    def _choice(self, response: Any) -> tuple[dict[str, Any], str | None]:
        message, reason = super()._choice(response)
        text = message.get("content")
        if message.get("tool_calls") or not isinstance(text, str):
            return message, reason
        if self._style == "json":
            return self._from_json(text), reason
        said, calls = read_calls(text, self._names())
        return _with_calls({**message, "content": said}, calls), reason

    def _from_json(self, text: str) -> dict[str, Any]:
        try:
            answer = json.loads(text, strict=False)  # the grammar allows line breaks in strings
        except (ValueError, RecursionError):
            answer = None
        if isinstance(answer, dict) and "answer" in answer:
            return {"role": "assistant", "content": str(answer["answer"])}
        if isinstance(answer, dict) and "tool" in answer:
            return _with_calls({"role": "assistant"}, [(str(answer["tool"]), answer.get("arguments"))])
        return {"role": "assistant", "content": text}

    def _names(self) -> list[str]:
        return [item.name for item in self.mode.neutral_definitions()]

    # What the model reads next

    def _said(self, response: Any) -> list[dict[str, Any]]:
        if self._style == "json":
            return [{"role": "assistant", "content": super()._choice(response)[0].get("content") or ""}]
        said = super()._said(response)
        for call in said[0].get("tool_calls", ()):  # templates write arguments themselves, and want data
            call["function"] = {**call["function"], "arguments": json.loads(call["function"]["arguments"])}
        return [{**said[0], "content": said[0]["content"] or ""}]

    def _result(self, call: ModelCall, reply: Reply) -> dict[str, Any]:
        if self._style == "json":
            return {"role": "user", "content": f"Result of {call.name}:\n{reply.text}"}
        return {**super()._result(call, reply), "name": call.name}

    def _start(self, messages: Any, system: Any, request: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        if self._style == "template":
            return super()._start(messages, system, request)
        history = [{"role": "user", "content": messages}] if isinstance(messages, str) else list(messages)
        definitions = self.mode.neutral_definitions()
        shown = "".join(f"\n- {item.name}: {item.description}\n  {_schema_text(item)}" for item in definitions)
        history = with_system(history, system, self.system_prompt, _PROTOCOL + shown)
        form = {"type": "json_object", "schema": _either([(item.name, item.parameters) for item in definitions])}
        return history, {**request, "response_format": form}

    # Asking it

    def _whole(self, answer: dict[str, Any]) -> dict[str, Any]:
        return answer

    def _collector(self) -> Collector:
        return _TextCollector(self._whole, said_in_json if self._style == "json" else said_before_calls)

    def _default_client(self, *, awaited: bool) -> Any:
        raise UsageError("LlamaCpp needs the model: run(…, client=Llama(model_path=…))")

    def _create(self, client: Any, request: dict[str, Any], *, awaited: bool, stream: bool) -> Any:
        self._check_template(client)
        if stream and awaited:
            return _later(_in_threads(self._stream(client, request)))
        if stream:
            return self._stream(client, request)
        return asyncio.to_thread(self._complete, client, request) if awaited else self._complete(client, request)

    def _check_template(self, client: Any) -> None:
        """Refuse a model that would never see the tools, or never their results."""
        if self._style == "json" or client.chat_handler is not None:
            return
        form = client.chat_format or ""
        template = (client.metadata or {}).get("tokenizer.chat_template", "")
        if form.startswith("functionary") or (form.startswith("chat_template") and "tools" in template):
            return
        raise UsageError(
            f'the chat format of this model ({form}) does not show it tools; use LlamaCpp(…, style="json")'
        )

    def _complete(self, client: Any, request: dict[str, Any]) -> Any:
        with self._lock:
            return client.create_chat_completion(**request)

    def _stream(self, client: Any, request: dict[str, Any]) -> Iterator[Any]:
        with self._lock:
            yield from client.create_chat_completion(**request, stream=True)


class _TextCollector(ChatCollector):
    """Hands out what the model says to the user, and not what it writes to call tools."""

    def __init__(self, whole: Any, said: Callable[[str], str]) -> None:
        super().__init__(whole)
        self._said = said
        self._written = ""
        self._shown = 0

    def add(self, chunk: Any) -> str:
        self._written += super().add(chunk)
        text = self._said(self._written)[self._shown :]
        self._shown += len(text)
        return text


def _with_calls(message: dict[str, Any], calls: list[tuple[str, Any]]) -> dict[str, Any]:
    if not calls:
        return message
    made = [
        {
            "id": f"call_{number}",
            "type": "function",
            "function": {"name": name, "arguments": text if isinstance(text, str) else json.dumps(text)},
        }
        for number, (name, text) in enumerate(calls)
    ]
    return {**message, "tool_calls": made}


def _either(tools: list[tuple[str, Any]]) -> dict[str, Any]:
    """The schema of an answer: a call of one of the tools, or a text."""

    def table(**properties: Any) -> dict[str, Any]:
        return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}

    calls = [table(tool={"const": name}, arguments=dict(parameters)) for name, parameters in tools]
    return {"oneOf": [*calls, table(answer={"type": "string"})]}


def _schema_text(definition: Definition) -> str:
    return f"arguments: {json.dumps(definition.parameters, separators=(',', ':'), ensure_ascii=False)}"


async def _later(value: Any) -> Any:
    return value


async def _in_threads(iterator: Iterator[Any]) -> AsyncIterator[Any]:
    """Each step of a blocking iterator in a thread of its own, so that the event loop goes on."""
    end = object()
    try:
        while (item := await asyncio.to_thread(next, iterator, end)) is not end:
            yield item
    finally:
        await asyncio.to_thread(iterator.close)  # type: ignore[attr-defined]  # it is a generator
