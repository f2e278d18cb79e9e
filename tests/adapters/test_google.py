"""Google GenAI: its own client against the wire format of generateContent."""

from __future__ import annotations

from typing import Any

from google import genai
from google.genai import types

from adapters.conformance import Conformance, Provider
from moonbox.adapters.google import GoogleGenAI


def client(wire: Any) -> genai.Client:
    plain = {"verify": False}  # reading certificates would be most of a test's time
    options = types.HttpOptions(base_url=wire.url, client_args=plain, async_client_args=plain)
    return genai.Client(api_key="loopback", http_options=options)


class TestGenerateContent(Conformance):
    provider = Provider(GoogleGenAI, client, client, says_errors=True, has_clients=False)
