"""Local models: servers that speak OpenAI's chat completions, and llama-cpp-python in this process."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import AsyncIterator, Callable, Collection, Generator, Iterator
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from moonbox.adapters.base import ModelCall, as_messages, needed
from moonbox.adapters.chat import ChatCollector, ChatCompletions, with_system
from moonbox.errors import UsageError
from moonbox.suggest import unknown
from moonbox.threads import in_thread, own_thread, unbroken

if TYPE_CHECKING:
    from moonbox.adapters.loop import Collector
    from moonbox.codemode.definitions import Definition
    from moonbox.codemode.mode import Reply

SERVERS = {
    "ollama": "http://localhost:11434/v1",
    "vllm": "http://localhost:8000/v1",
    "llama.cpp": "http://localhost:8080/v1",
    "lmstudio": "http://localhost:1234/v1",
}
"""Where each listens by default."""

_PROTOCOL = """Answer with one JSON object and nothing else. To call a tool:
{"tool": "<name>", "arguments": {...}}
To answer the user:
{"answer": "<text>"}
The result of a call comes in the next message. The tools:"""


class ServerOptions(TypedDict):
    """Options of an OpenAI client."""

    base_url: str
    api_key: str


def server(name: str, *, api_key: str = "local") -> ServerOptions:
    """What an OpenAI client needs for a local server: `OpenAI(**server("ollama"))`. `name` may be an address."""
    if "://" not in name and name not in SERVERS:
        raise UsageError(unknown("server", name, SERVERS))
    return {"base_url": SERVERS.get(name, name), "api_key": api_key}


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

    def _choice(self, response: Any) -> tuple[dict[str, Any], str | None]:
        message, reason = super()._choice(response)
        text = message.get("content")
        if message.get("tool_calls") or not isinstance(text, str):
            return message, reason
        if self._style == "json":
            return self._from_json(text), reason
        before, calls = read_calls(text, [item.name for item in self.mode.neutral_definitions()])
        return _with_calls({**message, "content": before}, calls), reason

    def _from_json(self, text: str) -> dict[str, Any]:
        answer = _json(text)
        if isinstance(answer, dict) and "answer" in answer:
            return {"role": "assistant", "content": str(answer["answer"])}
        if isinstance(answer, dict) and "tool" in answer:
            return _with_calls({"role": "assistant"}, [(str(answer["tool"]), answer.get("arguments"))])
        return {"role": "assistant", "content": text}

    def assistant_messages(self, response: Any) -> list[dict[str, Any]]:
        if self._style == "json":
            return [{"role": "assistant", "content": super()._choice(response)[0].get("content") or ""}]
        messages = super().assistant_messages(response)
        for call in messages[0].get("tool_calls", ()):  # templates write arguments themselves, and want data
            call["function"] = {**call["function"], "arguments": json.loads(call["function"]["arguments"])}
        return [{**messages[0], "content": messages[0]["content"] or ""}]

    def to_result(self, call: ModelCall, reply: Reply) -> dict[str, Any]:
        if self._style == "json":
            return {"role": "user", "content": f"Result of {call.name}:\n{reply.text}"}
        return {**super().to_result(call, reply), "name": call.name}

    def begin(self, messages: Any, system: Any, request: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        if self._style == "template":
            return super().begin(messages, system, request)
        definitions, protocol = self.mode.neutral_definitions(), _PROTOCOL
        for tool in definitions:
            parameters = json.dumps(tool.parameters, separators=(",", ":"), ensure_ascii=False)
            protocol += f"\n- {tool.name}: {tool.description}\n  arguments: {parameters}"
        history = with_system(as_messages(messages), system, self.system_prompt, protocol)
        return history, {**request, "response_format": {"type": "json_object", "schema": _either(definitions)}}

    def _whole(self, answer: dict[str, Any]) -> dict[str, Any]:
        return answer

    def collector(self) -> Collector:
        return _TextCollector(self._whole, text_in_json if self._style == "json" else text_before_calls)

    def default_client(self, *, awaited: bool) -> Any:
        raise UsageError("LlamaCpp needs a model: run(…, client=Llama(model_path=…))")

    def send(self, client: Any, request: dict[str, Any], *, awaited: bool, stream: bool) -> Any:
        self._check_template(client)
        if stream and awaited:
            return _later(_in_threads(self._stream(client, request)))
        if stream:
            return self._stream(client, request)
        if awaited:
            return in_thread(self._complete, client, request, start=own_thread)
        return self._complete(client, request)

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

    def _stream(self, client: Any, request: dict[str, Any]) -> Generator[Any]:
        with self._lock:
            yield from client.create_chat_completion(**request, stream=True)


class _TextCollector(ChatCollector):
    """Hands out what the model says to the user, and not what it writes to call tools."""

    def __init__(self, whole: Any, spoken: Callable[[str], str]) -> None:
        super().__init__(whole)
        self._spoken = spoken
        self._written = ""
        self._shown = 0

    def add(self, chunk: Any) -> str:
        self._written += super().add(chunk)
        text = self._spoken(self._written)[self._shown :]
        self._shown += len(text)
        return text


def _with_calls(message: dict[str, Any], calls: list[tuple[str, Any]]) -> dict[str, Any]:
    if not calls:
        return message
    written = [
        {
            "type": "function",
            "function": {"name": name, "arguments": text if isinstance(text, str) else json.dumps(text)},
        }
        for name, text in calls
    ]
    return {**message, "tool_calls": written}


def _either(tools: list[Definition]) -> dict[str, Any]:
    """The schema of an answer: a call of one of the tools, or a text."""

    def table(**properties: Any) -> dict[str, Any]:
        return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}

    calls = [table(tool={"const": tool.name}, arguments=dict(tool.parameters)) for tool in tools]
    return {"oneOf": [*calls, table(answer={"type": "string"})]}


async def _later(value: Any) -> Any:
    return value


async def _in_threads(iterator: Generator[Any]) -> AsyncIterator[Any]:
    """Each step of a blocking generator in another thread, so that the event loop goes on."""
    end = object()
    try:
        while (item := await unbroken(next, iterator, end)) is not end:  # a step under way cannot be closed
            yield item
    finally:
        await unbroken(iterator.close)


# Calls that a model writes as text, in the ways in which models were trained to write them

TextCall = tuple[str, Any]
"""A tool's name and its arguments: a dict, or text that should have been one."""

_STARTS = (
    r"<tool_call>",  # Hermes, Qwen
    r"<function=(?P<tagged>[\w.-]+)>",  # Qwen Coder, Llama 3.1
    r"\[TOOL_CALLS\]|(?P<named>[\w.-]+)(?:\[CALL_ID\][\w-]*)?\[ARGS\]",  # Mistral
    re.escape("<|python_tag|>"),
    r";(?=\s*\{)",  # Llama 3 writes one object after another
)
_START = re.compile("|".join(_STARTS))
_END = re.compile(r"</tool_call>|</function>")
_PARAMETER = re.compile(r"<parameter=([\w.-]+)>\n?(.*?)\n?(?:</parameter>|\Z)", re.DOTALL)
_MARKS = ("<tool_call>", "<function=", "[TOOL_CALLS]", "<|python_tag|>")
_MARK = re.compile("|".join(map(re.escape, _MARKS)))
_BEGUN = re.compile("|".join(rf"{re.escape(mark[:size])}\Z" for mark in _MARKS for size in range(1, len(mark))))
_ANSWER = re.compile(r'\s*\{\s*"answer"\s*:\s*"((?:[^"\\]|\\.)*\\?)', re.DOTALL)
_UNFINISHED = re.compile(
    r"(?:\\u[dD][89abAB][0-9a-fA-F]{2})?\\(?:u[0-9a-fA-F]{0,3})?\Z|\\u[dD][89abAB][0-9a-fA-F]{2}\Z"
)
_DECODER = json.JSONDecoder(strict=False)  # models, and llama.cpp's grammars, leave line breaks in strings as they are


def read_calls(text: str, names: Collection[str]) -> tuple[str, list[TextCall]]:
    """The text before the calls, and the calls; `names` are the tools that the model may mean without saying so."""
    if mark := _MARK.search(text):
        return text[: mark.start()].strip(), list(_marked(text[mark.start() :]))
    bare = _named(_json(text.strip().removeprefix("```json").removesuffix("```")))
    if bare is not None and bare[0] in names:
        return "", [bare]
    return text, []


def text_before_calls(text: str) -> str:
    """What can be shown of a text that is still being written: nothing of a call, nor what may become one."""
    stripped = text.lstrip()
    if stripped.startswith(("{", "```json")):
        return ""
    if mark := _MARK.search(text):
        return text[: mark.start()].rstrip()
    return _BEGUN.sub("", text)


def text_in_json(text: str) -> str:
    """The same of `{"answer": "…"}`."""
    match = _ANSWER.match(text)
    if match is None:
        return ""
    body = _UNFINISHED.sub("", match[1])
    try:
        return str(json.loads(f'"{body}"', strict=False))
    except ValueError:
        return ""


def _marked(text: str) -> Iterator[TextCall]:
    while start := _START.search(text):
        name, text = start["tagged"] or start["named"], text[start.end() :].lstrip()
        if name is None and _START.match(text):  # such as <tool_call><function=…>
            continue
        body = _END.split(text, maxsplit=1)[0].strip()
        # Qwen Coder writes each parameter as it is, between tags; the others write JSON.
        parameters = dict(_PARAMETER.findall(body)) if start["tagged"] else {}
        try:
            value, end = (parameters, len(body)) if parameters else _DECODER.raw_decode(text)
        except (ValueError, RecursionError):
            value, end = body, len(body)
        text = text[end:]
        if name is not None:
            yield name, value
            continue
        for item in value if isinstance(value, list) else [value]:
            yield _named(item) or ("", body)


def _named(item: Any) -> TextCall | None:
    """`{"name": …, "arguments": …}`, or `parameters` instead."""
    if not isinstance(item, dict) or not isinstance(item.get("name"), str):
        return None
    arguments = item.get("arguments", item.get("parameters", {}))
    return item["name"], _json(arguments) if isinstance(arguments, str) else arguments


def _json(text: str) -> Any:
    """The JSON value at the beginning of the text, or the text."""
    try:
        return _DECODER.raw_decode(text.lstrip())[0]
    except (ValueError, RecursionError):
        return text
