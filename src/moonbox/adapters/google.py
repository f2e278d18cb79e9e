"""Google GenAI: generate_content, for the Gemini API and for Vertex AI."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from moonbox.adapters.base import ModelCall, cut_off, media_title, needed
from moonbox.adapters.loop import Collector, ModelAdapter
from moonbox.errors import MoonboxError

if TYPE_CHECKING:
    from google.genai import types

    from moonbox.codemode.mode import Reply

_MALFORMED = "Your last function call was malformed and was not run. Write it again as a plain call of one function."
_LONGEST_LIST = 100_000
_STEP = re.compile(r"\.([A-Za-z_][A-Za-z0-9_]*)|\[(\d+)\]|\['([^']*)'\]|\[\"([^\"]*)\"\]")


class GoogleGenAI(
    ModelAdapter["types.FunctionCall", "types.Part", "types.GenerateContentResponse", "types.Content", "types.Tool"]
):
    """Code mode for `client.models.generate_content`. Its results are Parts, as a chat's `send_message` takes."""

    messages_key = "contents"

    def __init__(self, source: Any = (), **settings: Any) -> None:
        self._types: Any = needed(
            "google.genai.types", package="google-genai", extra="google", purpose=type(self).__name__
        )
        super().__init__(source, **settings)

    @property
    def tools(self) -> list[types.Tool]:
        return [self._types.Tool.model_validate(item) for item in self.mode.definitions("gemini")]

    def read_call(self, call: Any) -> ModelCall:
        return ModelCall(call.id or "", call.name or "", call.args or {}, origin=call)

    def read_calls(self, response: Any) -> list[ModelCall]:
        parts = [part for part in _parts(response) if part.text != ""]
        calls = [self.read_call(part.function_call) if part.function_call is not None else None for part in parts]
        return cut_off(calls, _reason(response) == "MAX_TOKENS")

    def to_result(self, call: ModelCall, reply: Reply) -> types.Part:
        answer = {"error" if reply.is_error else "output": reply.text}
        response = self._types.FunctionResponse(id=call.id or None, name=call.name, response=answer)
        return self._types.Part(function_response=response)  # type: ignore[no-any-return]  # the package's own Part

    def assistant_messages(self, response: Any) -> list[types.Content]:
        parts = [part for part in _parts(response) if part.text != "" or part.thought_signature is not None]
        return [self._types.Content(role="model", parts=parts)] if parts else []

    def result_messages(self, results: list[types.Part]) -> list[types.Content]:
        return [self._types.Content(role="user", parts=results)]

    def media_messages(self, replies: Sequence[Reply]) -> list[types.Content]:
        types = self._types
        media = [medium for reply in replies for medium in reply.media]
        if not media:
            return []
        parts = [types.Part.from_bytes(data=medium.data, mime_type=medium.type) for medium in media]
        return [types.Content(role="user", parts=[types.Part(text=media_title(media)), *parts])]

    def text_of(self, response: Any) -> str:
        return "".join(part.text for part in _parts(response) if part.text and not part.thought)

    def is_over(self, response: Any) -> bool:
        return not self.read_calls(response) and not self.nudge(response)

    def nudge(self, response: Any) -> list[types.Content]:
        if _reason(response) != "MALFORMED_FUNCTION_CALL":
            return []
        return [self._types.Content(role="user", parts=[self._types.Part(text=_MALFORMED)])]

    def begin(self, messages: Any, system: Any, request: dict[str, Any]) -> tuple[list[types.Content], dict[str, Any]]:
        types = self._types
        history = [messages] if isinstance(messages, str) else list(messages)
        contents = [
            types.Content(role="user", parts=[types.Part(text=item)])
            if isinstance(item, str)
            else types.Content.model_validate(item)
            for item in history
        ]
        config = types.GenerateContentConfig.model_validate(request.get("config") or {}).model_copy()
        prompts = [config.system_instruction, system, self.system_prompt]
        parts: list[Any] = [part for part in prompts if part]
        if not all(isinstance(part, str) for part in parts):  # a list where it holds more than text
            parts = [item for part in parts for item in (part if isinstance(part, list) else [part])]
            config.system_instruction = parts
        else:
            config.system_instruction = "\n\n".join(parts) or None
        config.tools = [*self.tools, *(config.tools or ())] or None
        config.automatic_function_calling = types.AutomaticFunctionCallingConfig(disable=True)
        return contents, {**request, "config": config}

    def default_client(self, *, awaited: bool) -> Any:
        from google import genai

        return genai.Client().aio if awaited else genai.Client()

    def send(self, client: Any, request: dict[str, Any], *, awaited: bool, stream: bool) -> Any:
        models = (getattr(client, "aio", client) if awaited else client).models
        return models.generate_content_stream(**request) if stream else models.generate_content(**request)

    def collector(self) -> Collector:
        return _ContentCollector(self._types)


class _ContentCollector:
    """Puts the chunks of an answer together."""

    def __init__(self, types: Any) -> None:
        self._types = types
        self._parts: list[Any] = []
        self._last: Any = None
        self._reason = ""
        self._open: Any = None

    def add(self, chunk: Any) -> str:
        self._last = chunk
        self._reason = _reason(chunk) or self._reason
        text = ""
        for part in _parts(chunk):
            if part.function_call is not None:
                self._add_call(part)
            elif part.text is not None and self._continues(part):
                self._parts[-1].text += part.text
            else:
                self._parts.append(part.model_copy())
            text += part.text if part.text and not part.thought else ""
        return text

    def whole(self) -> Any:
        if not self._reason:
            raise MoonboxError("the stream ended before the answer was complete")
        types = self._types
        candidate = types.Candidate(
            content=types.Content(role="model", parts=self._parts), finish_reason=self._reason, index=0
        )
        return self._last.model_copy(update={"candidates": [candidate]})

    def _continues(self, part: Any) -> bool:
        """Whether the text belongs to the part before it; a signature stays on the part where it came."""
        before = self._parts[-1] if self._parts else None
        if before is None or before.text is None or bool(before.thought) != bool(part.thought):
            return False
        return before.thought_signature is None and part.thought_signature is None

    def _add_call(self, part: Any) -> None:
        call = part.function_call
        if self._open is None:
            self._open = part.model_copy(deep=True)
            self._open.function_call.partial_args = None
            self._open.function_call.will_continue = None
            self._parts.append(self._open)
        elif call.args:
            self._open.function_call.args = {**(self._open.function_call.args or {}), **call.args}
        for piece in call.partial_args or ():
            arguments = self._open.function_call.args = self._open.function_call.args or {}
            _put(arguments, piece)
        if not call.will_continue:
            self._open = None


def _put(arguments: dict[str, Any], piece: Any) -> None:
    """Put one streamed piece of an argument where its path says."""
    steps: list[Any] = [
        key or quoted or other or int(index) for key, index, quoted, other in _STEP.findall(piece.json_path or "")
    ]
    if not steps or any(isinstance(step, int) and step > _LONGEST_LIST for step in steps):
        return  # nothing to be put anywhere, or by someone who wants us to run out of memory
    values = (piece.string_value, piece.number_value, piece.bool_value)
    value = next((item for item in values if item is not None), None)
    place: Any = arguments
    for step, following in zip_longest(steps, steps[1:]):
        if isinstance(place, list):
            place.extend([None] * (step + 1 - len(place)))
        before = place[step] if isinstance(place, list) else place.get(step)
        if following is None:
            place[step] = before + value if isinstance(before, str) and isinstance(value, str) else value
        elif before is None:
            place[step] = [] if isinstance(following, int) else {}
        place = place[step]


def _parts(response: Any) -> list[Any]:
    candidate = response.candidates[0] if response.candidates else None
    return list(candidate.content.parts or ()) if candidate is not None and candidate.content is not None else []


def _reason(response: Any) -> str:
    """Why the answer ended."""
    reason = response.candidates[0].finish_reason if response.candidates else None
    return str(getattr(reason, "value", reason) or "")
