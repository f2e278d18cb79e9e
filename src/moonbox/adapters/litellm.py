"""LiteLLM: one interface to the models of many providers."""

from __future__ import annotations

from typing import Any

from moonbox.adapters.base import needed
from moonbox.adapters.chat import ChatCompletions


class LiteLLM(ChatCompletions[Any, dict[str, Any], Any, dict[str, Any], dict[str, Any]]):
    """Code mode for `litellm.completion` and `litellm.acompletion`; as `client`, a Router does as well.

    The package's own types: ChatCompletionMessageToolCall for calls, ModelResponse for answers, dicts for the rest.
    """

    def __init__(self, source: Any = (), **settings: Any) -> None:
        self._litellm: Any = needed("litellm", extra="litellm", purpose=type(self).__name__)
        super().__init__(source, **settings)

    def _whole(self, answer: dict[str, Any]) -> Any:
        return self._litellm.ModelResponse(**answer)

    def default_client(self, *, awaited: bool) -> Any:
        return self._litellm

    def send(self, client: Any, request: dict[str, Any], *, awaited: bool, stream: bool) -> Any:
        complete = client.acompletion if awaited else client.completion
        return complete(**request, **({"stream": True} if stream else {}))
