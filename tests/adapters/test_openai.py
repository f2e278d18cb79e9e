"""OpenAI: its own client against the wire formats of chat completions and responses."""

from __future__ import annotations

from typing import Any

import openai

from adapters.conformance import Conformance, Provider
from moonbox.adapters.openai import OpenAIChat, OpenAIResponses


def client(wire: Any) -> openai.OpenAI:
    http = openai.DefaultHttpxClient(verify=False)  # reading certificates would be most of a test's time
    return openai.OpenAI(base_url=f"{wire.url}/v1", api_key="loopback", max_retries=0, http_client=http)


def aclient(wire: Any) -> openai.AsyncOpenAI:
    http = openai.DefaultAsyncHttpxClient(verify=False)
    return openai.AsyncOpenAI(base_url=f"{wire.url}/v1", api_key="loopback", max_retries=0, http_client=http)


class TestChat(Conformance):
    provider = Provider(OpenAIChat, client, aclient)


class TestResponses(Conformance):
    provider = Provider(OpenAIResponses, client, aclient)
