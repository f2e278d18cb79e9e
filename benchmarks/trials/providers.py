"""The providers that the trial can ask, each through its adapter and its own client library."""

from __future__ import annotations

import contextlib
import importlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wire import serve

from moonbox.adapters.loop import Tokens
from moonbox.errors import UsageError
from moonbox.suggest import unknown
from trials.recorded import RecordedModel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from moonbox.adapters.loop import Outcome

__all__ = ["PROVIDERS", "RECORDED", "Asked", "Model", "opened"]

RECORDED = "recorded"
MAX_TURNS = 40


def _openai(url: str, key: str) -> Any:
    import openai

    return openai.OpenAI(base_url=url, api_key=key)


def _anthropic(url: str, key: str) -> Any:
    import anthropic

    return anthropic.Anthropic(base_url=url, api_key=key)


def _google(url: str, key: str) -> Any:
    from google import genai

    return genai.Client(api_key=key, http_options=genai.types.HttpOptions(base_url=url))


@dataclass(frozen=True)
class Provider:
    """Where its adapter is, and how a client for another address is made."""

    module: str
    adapter: str
    client: Callable[[str, str], Any]
    key: str
    """The variable that has its key."""
    path: str = ""
    """What its client's address ends with."""


PROVIDERS = {
    "openai": Provider("openai", "OpenAIChat", _openai, "OPENAI_API_KEY", "/v1"),
    "openai-responses": Provider("openai", "OpenAIResponses", _openai, "OPENAI_API_KEY", "/v1"),
    "anthropic": Provider("anthropic", "AnthropicMessages", _anthropic, "ANTHROPIC_API_KEY"),
    "google": Provider("google", "GoogleGenAI", _google, "GEMINI_API_KEY"),
}


@dataclass(frozen=True)
class Asked:
    """One conversation: its outcome, what it cost, and how many answers the model gave."""

    outcome: Outcome[Any, Any]
    tokens: Tokens
    turns: int


class Model:
    """A model of a provider."""

    def __init__(self, provider: str, name: str, client: Any, recorded: RecordedModel | None) -> None:
        self.provider, self.name, self.recorded = provider, name, recorded
        self._client = client
        self._adapter = _counting(PROVIDERS[provider])
        self._answers = False

    def adapter(self, source: Any, **settings: Any) -> Any:
        """The provider's adapter over a Sandbox or tools."""
        return self._adapter(source, **settings)

    def ask(self, adapter: Any, prompt: str) -> Asked:
        """Have a conversation that begins with this prompt. Raises UsageError if the model has never answered."""
        before = self.recorded.spent if self.recorded else Tokens()
        adapter.requests = 0
        try:
            outcome = adapter.run(prompt, model=self.name, client=self._client, max_turns=MAX_TURNS)
        except Exception as problem:
            if self._answers:
                raise
            message = f"{self.provider} does not answer for the model {self.name}: {type(problem).__name__}: {problem}"
            raise UsageError(message) from problem
        self._answers = True
        tokens = outcome.tokens
        if self.recorded:  # the server on loopback counts nothing
            after = self.recorded.spent
            tokens = Tokens(after.input - before.input, after.output - before.output)
        return Asked(outcome, tokens, adapter.requests)


@contextlib.contextmanager
def opened(provider: str, name: str, base_url: str | None, recorded: RecordedModel | None = None) -> Iterator[Model]:
    """The model, with a server of its own if it is the recorded one. Raises UsageError for an unknown provider."""
    if provider not in PROVIDERS:
        raise UsageError(unknown("provider", provider, PROVIDERS))
    found = PROVIDERS[provider]
    if name != RECORDED:
        client = found.client(base_url, os.environ.get(found.key) or "none") if base_url else None
        yield Model(provider, name, client, None)
        return
    recorded = recorded or RecordedModel()
    with serve(recorded) as wire, contextlib.closing(found.client(wire.url + found.path, RECORDED)) as client:
        yield Model(provider, name, client, recorded)


def _counting(provider: Provider) -> Any:
    """The provider's adapter, which counts its requests."""
    base: Any = getattr(importlib.import_module(f"moonbox.adapters.{provider.module}"), provider.adapter)

    class Counting(base):  # type: ignore[misc]  # which class it is, the options decide
        requests = 0

        def send(self, *args: Any, **named: Any) -> Any:
            self.requests += 1
            return super().send(*args, **named)

    return Counting
