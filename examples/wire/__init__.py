"""Model providers on loopback: they speak the real wire formats, refuse what is refused there, play scripted turns.

    with serve(Scripted(Use("lua_repl", {"source_code": "return 1"}), Say("one"))) as wire:
        client = OpenAI(base_url=wire.url + "/v1", api_key="loopback")

One server speaks every format, each at its provider's paths:

    /v1/chat/completions       OpenAI chat completions, and every server compatible with it
    /v1/responses              OpenAI responses
    /v1/messages               Anthropic messages
    /v1beta/models/…           Google GenAI

Only the standard library is needed, so that it runs in every environment.
"""

from __future__ import annotations

from wire.model import Called, Result, Say, Scripted, Seen, Turn, Use
from wire.server import Wire, serve

__all__ = ["Called", "Result", "Say", "Scripted", "Seen", "Turn", "Use", "Wire", "serve"]
