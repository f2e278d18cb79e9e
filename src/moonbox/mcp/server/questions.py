"""Questions to the person behind a client: approvals, and the requests that upstream servers make."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp import MCPError
from mcp.shared.message import ServerMessageMetadata
from pydantic import ValidationError

from moonbox.errors import Denied
from moonbox.runs.decisions import Answer, Decision, about_script
from moonbox.tools.signature import first_sentence
from moonbox.wording import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moonbox.mcp.server.sessions import McpClient
    from moonbox.runs.decisions import ToolCall

NO_ANSWER = types.ErrorData(code=types.INVALID_REQUEST, message="no answer in time")
NO_CLIENT = Answer.error(
    "this tool is answered by the client, and this client cannot be asked: answer the call in your own program, or "
    "declare the capability elicitation",
    code="client_unavailable",
)
_MAX_ARGUMENT_CHARS = 1_500
_MAX_ARGUMENTS = 20
_MAX_SCRIPT_CHARS = 20_000
_FIELD_TYPES = ("string", "number", "integer", "boolean")
_FIELD_KEYS = ("type", "enum", "minimum", "maximum", "minLength", "maxLength", "description")
"""What a field of a form may have, of a tool's result schema."""


def approval_question(call: ToolCall) -> types.ElicitRequest:
    """A form: accepting it allows the call, declining or dismissing it does not."""
    if call.kind == "script":
        lines = ["Run this script?", call.source[:_MAX_SCRIPT_CHARS], *about_script(call)]
        hidden = len(call.source) - _MAX_SCRIPT_CHARS
        if hidden > 0:
            lines.insert(2, f"… {hidden:,} more characters are not shown")
        message = "\n".join(visible(line, keep="\n") for line in lines)
        schema: dict[str, Any] = {"type": "object", "properties": {}}
        return types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=schema))
    changed = f"Its definition has changed since you allowed all its calls: {', '.join(call.changed)}."
    message = _described(call, "Allow a call of the tool '{}'?", [changed] if call.changed else [])
    properties: dict[str, Any] = {}
    if call.repl_id:  # a direct call is not part of a conversation
        properties["always"] = {
            "type": "boolean",
            "title": "Allow all further calls of this tool in this conversation",
            "default": False,
        }
    schema = {"type": "object", "properties": properties}
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=schema))


def decision(answer: types.ElicitResult, by: str) -> Decision:
    """What the person behind this client decided."""
    if answer.action == "accept":
        always = (answer.content or {}).get("always") is True
        return Decision("always" if always else "allow", by=by)
    return Decision("deny", "" if answer.action == "decline" else "the question was dismissed", by=by)


def approval_unavailable(call: ToolCall, direct: str | None) -> Denied:
    """The error for a client that cannot ask a person."""
    hint = f"call the tool `{direct}` directly instead of from a script" if direct else "continue without it"
    what = "the script" if call.kind == "script" else f"the tool '{call.tool}'"
    return Denied(
        f"{what} needs approval, and this client cannot ask for it; {hint}",
        code="approval_unavailable",
    )


def answer_form(call: ToolCall) -> types.ElicitRequest:
    """A form in which a person answers the call of a client-side tool."""
    field = _field(call)
    if field is None:
        field = {"type": "string", "title": "The result as JSON", "description": json.dumps(_returns(call))[:500]}
    schema = {"type": "object", "properties": {"answer": field}, "required": ["answer"]}
    message = _described(call, "The tool '{}' is answered by you.")
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=schema))


def form_answer(call: ToolCall, response: Any) -> Answer:
    """The answer in a form that came back."""
    if isinstance(response, types.ErrorData):
        return Answer.error(f"the client did not answer: {response.message}", code="client_unavailable")
    if not isinstance(response, types.ElicitResult) or response.action != "accept":
        return Answer.error("a person declined to answer this call", code="denied")
    answer = (response.content or {}).get("answer")
    if answer is None:
        return Answer.error("the client sent an invalid answer", code="invalid")
    if _field(call) is not None:
        return Answer.value(answer)
    try:
        return Answer.value(json.loads(str(answer)))
    except ValueError:
        return Answer.error("the answer is not valid JSON", code="invalid")


def _returns(call: ToolCall) -> Any:
    return None if call.definition is None else call.definition.returns


def _field(call: ToolCall) -> dict[str, Any] | None:
    """The result as a field of a form, which can only be a single value; None if it is more than that."""
    returns = _returns(call)
    if not isinstance(returns, dict):
        return {"type": "string"}
    kind = returns.get("type")
    return {key: returns[key] for key in _FIELD_KEYS if key in returns} if kind in _FIELD_TYPES else None


def _described(call: ToolCall, question: str, more: Sequence[str] = ()) -> str:
    """The question with what a person needs to know of the call."""
    lines = [question.format(visible(call.tool, keep=""))]
    description = first_sentence(call.definition.description) if call.definition is not None else ""
    if description:
        lines.append(visible(description, keep=""))
    lines += more
    arguments = call.arguments if isinstance(call.arguments, dict) else {"arguments": call.arguments}
    order = call.definition.parameter_names if call.definition is not None else ()
    arguments = {name: arguments[name] for name in dict.fromkeys([*order, *arguments]) if name in arguments}
    for name, value in list(arguments.items())[:_MAX_ARGUMENTS]:
        lines.append(f"  {visible(str(name), keep='')} = {_argument(value)}")
    if len(arguments) > _MAX_ARGUMENTS:
        lines.append(f"  … and {len(arguments) - _MAX_ARGUMENTS} more arguments that are not shown")
    return "\n".join(lines)


def _argument(value: Any) -> str:
    text = visible(json.dumps(value, ensure_ascii=False, default=str), keep="")
    hidden = len(text) - _MAX_ARGUMENT_CHARS
    return text if hidden <= 0 else f"{text[:_MAX_ARGUMENT_CHARS]} … {hidden:,} more characters are not shown"


async def request_client(
    client: McpClient, request: types.InputRequest, seconds: float
) -> types.InputResponse | types.ErrorData:
    """Send a request to a client of the earlier protocol."""
    metadata = None
    if client.request_id is not None:
        metadata = ServerMessageMetadata(related_request_id=client.request_id)
    kind: Any = {types.ElicitRequest: types.ElicitResult, types.ListRootsRequest: types.ListRootsResult}.get(
        type(request)
    )
    if isinstance(request, types.CreateMessageRequest):
        kind = types.CreateMessageResultWithTools if request.params.tools else types.CreateMessageResult
    try:
        async with asyncio.timeout(seconds):
            answer: types.InputResponse = await client.channel.send_request(request, kind, metadata=metadata)
            return answer
    except TimeoutError:
        return NO_ANSWER
    except MCPError as problem:
        return problem.error
    except ValidationError:
        return types.ErrorData(code=types.INVALID_REQUEST, message="the client sent an invalid answer")


async def send_log(client: McpClient, params: types.LoggingMessageNotificationParams) -> None:
    """Send a log message to a client, on the stream of its request if it has one."""
    message = types.LoggingMessageNotification(params=params)
    await client.channel.send_notification(message, related_request_id=client.request_id)
