"""Sampling: a question of a script to the model of the client for which it runs."""

from __future__ import annotations

import asyncio

from mcp_types import (
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    ErrorData,
    SamplingMessage,
    TextContent,
)

from moonbox.errors import ToolError
from moonbox.mcp.caller import CALLER


def sample(prompt: str, system: str, max_tokens: int) -> str:
    """What the client's model answers; ToolError where it cannot be asked. For the thread of a tool."""
    caller = CALLER.get()
    if caller is None:
        raise ToolError("there is no client whose model could be asked", code="unavailable")
    message = SamplingMessage(role="user", content=TextContent(text=prompt))
    params = CreateMessageRequestParams(messages=[message], system_prompt=system or None, max_tokens=max_tokens)
    answer = asyncio.run(caller.forward(CreateMessageRequest(params=params)))
    if isinstance(answer, ErrorData):
        raise ToolError(f"the client's model did not answer: {answer.message}", code="unavailable")
    if not isinstance(answer, CreateMessageResult) or not isinstance(answer.content, TextContent):
        raise ToolError("the client's model did not answer with text", code="unavailable")
    return answer.content.text
