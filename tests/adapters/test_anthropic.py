"""Anthropic: its own client against the wire format of messages."""

from __future__ import annotations

from typing import Any

import anthropic

from adapters.conformance import Conformance, Provider
from moonbox.adapters.anthropic import AnthropicMessages


def client(wire: Any) -> anthropic.Anthropic:
    http = anthropic.DefaultHttpxClient(verify=False)  # reading certificates would be most of a test's time
    return anthropic.Anthropic(base_url=wire.url, api_key="loopback", max_retries=0, http_client=http)


def aclient(wire: Any) -> anthropic.AsyncAnthropic:
    http = anthropic.DefaultAsyncHttpxClient(verify=False)
    return anthropic.AsyncAnthropic(base_url=wire.url, api_key="loopback", max_retries=0, http_client=http)


class TestMessages(Conformance):
    provider = Provider(AnthropicMessages, client, aclient, says_errors=True)
