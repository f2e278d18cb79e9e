"""LiteLLM: one interface to the models of many providers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moonbox.adapters.base import needed
from moonbox.adapters.chat import ChatCompletions

if TYPE_CHECKING:
    from litellm import ModelResponse
    from litellm.types.utils import ChatCompletionMessageToolCall

    _Chat = ChatCompletions[
        ChatCompletionMessageToolCall, dict[str, Any], ModelResponse, dict[str, Any], dict[str, Any]
    ]
else:
    _Chat = ChatCompletions

__all__ = ["LiteLLM"]


class LiteLLM(_Chat):
    """Code mode for `litellm.completion` and `litellm.acompletion`; as `client`, a Router does as well."""

    def __init__(self, source: Any = (), **settings: Any) -> None:
        self._litellm: Any = needed("litellm", extra="litellm", purpose=type(self).__name__)
        super().__init__(source, **settings)

    def _whole(self, answer: dict[str, Any]) -> ModelResponse:
        return self._litellm.ModelResponse(**answer)  # type: ignore[no-any-return]  # the package's own

    def _default_client(self, *, awaited: bool) -> Any:
        return self._litellm

    def _create(self, client: Any, request: dict[str, Any], *, awaited: bool, stream: bool) -> Any:
        complete = client.acompletion if awaited else client.completion
        return complete(**request, **({"stream": True} if stream else {}))
