"""Results of calls as MCP sends them: text, structured content and media."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp import MCPError
from mcp.shared.message import ServerMessageMetadata
from pydantic import ValidationError

from moonbox.errors import Denied
from moonbox.mcp.server.sessions import META_KEY, STATE, ClientConversation, McpClient
from moonbox.runs.decisions import Answer, Decision, ToolCall, about_script
from moonbox.tools.signature import first_sentence
from moonbox.values import to_jsonable
from moonbox.wording import visible

if TYPE_CHECKING:
    from moonbox.audit.records import Run
    from moonbox.codemode.mode import Reply
    from moonbox.durable.recorded import PendingCall
    from moonbox.mcp.caller import Response
    from moonbox.mcp.server.call import OpenCall
    from moonbox.media import Media


_CODE_RESULT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "value": {
            "type": ["object", "array", "string", "number", "boolean", "null"],
            "description": "What the script returned.",
        },
        "output": {"type": "string", "description": "What it printed."},
        "run": {"type": "string", "description": "The run's id: moonbox://runs/{run} is its record."},
        "calls": {"type": "integer"},
        "cut": {"type": "boolean", "description": "The value is too long to be here; the text shows its ends."},
        STATE: {"type": "string", "description": "Pass it as `state` to continue with this script's globals."},
    },
    "required": ["run", "calls"],
}
_IN_BACKGROUND: dict[str, Any] = {
    "running": {"type": "boolean", "description": "The script has not ended: there is no value yet."},
    "progress": {
        "type": "object",
        "properties": {"done": {"type": "number"}, "total": {"type": "number"}, "text": {"type": "string"}},
    },
}
RUN_KEY = "moonbox/run"
RELATED_KEY = "io.modelcontextprotocol/related-task"
_MAX_MEDIA = 8
_LONGEST_ID = 64
_LONGEST_ARGUMENTS = 500


def code_result(*, waits: bool) -> dict[str, Any]:
    """The schema of what scripts return; `waits`: they may continue in the background."""
    properties = {**_CODE_RESULT["properties"], **(_IN_BACKGROUND if waits else {})}
    return {**_CODE_RESULT, "properties": properties}


def script_result(
    reply: Reply, conversation: ClientConversation, *, structured: bool, max_chars: int
) -> types.CallToolResult:
    text = reply.text
    meta: dict[str, Any] = {}
    if conversation.note:
        text += f"\n[{conversation.note}]"
    if conversation.handle is not None:
        text += f'\n[to continue with these globals, pass {STATE} = "{conversation.handle}"]'
        meta[META_KEY] = conversation.handle
    run = reply.run
    data = _run_data(run, conversation, max_chars) if structured and run is not None and not reply.is_error else None
    return _result(text, reply, meta, data)


def direct_result(
    reply: Reply, *, structured: bool, upstream: types.CallToolResult | None = None
) -> types.CallToolResult:
    """The result of a tool that the client called itself; an `upstream` server's is passed on as it came."""
    run = reply.run
    if upstream is not None and run is not None and upstream.is_error != run.ok:
        meta = {**(upstream.meta or {}), RUN_KEY: run.id}
        return upstream.model_copy(update={"meta": meta})
    data = to_jsonable(run.value) if structured and run is not None and not reply.is_error else None
    return _result(reply.text, reply, {}, data)


def error_result(message: str) -> types.CallToolResult:
    """The result of a call that was not run."""
    return types.CallToolResult(content=[types.TextContent(text=f"error: {message}")], is_error=True)


def _result(text: str, reply: Reply, meta: dict[str, Any], data: Any) -> types.CallToolResult:
    """With what the script returned or showed of images, audio and files."""
    if reply.run is not None:
        meta = {**meta, RUN_KEY: reply.run.id}
    structured = {} if data is None else {"structured_content": data}
    content = [types.TextContent(text=text), *map(media_block, reply.media[:_MAX_MEDIA])]
    return types.CallToolResult(content=content, is_error=reply.is_error, _meta=meta or None, **structured)


def _run_data(run: Run, conversation: ClientConversation, max_chars: int) -> dict[str, Any]:
    data: dict[str, Any] = {"run": run.id, "calls": len(run.calls)}
    if run.values:
        value = to_jsonable(run.value if len(run.values) == 1 else list(run.values))
        if len(json.dumps(value, ensure_ascii=False)) <= max_chars:
            data["value"] = value
        else:
            data["cut"] = True
    if run.output:
        data["output"] = run.output[:max_chars]
    if conversation.handle is not None:
        data[STATE] = conversation.handle
    return data


def media_block(medium: Media) -> types.ContentBlock:
    match medium.kind:
        case "image":
            return types.ImageContent(data=medium.base64, mime_type=medium.type)
        case "audio":
            return types.AudioContent(data=medium.base64, mime_type=medium.type)
    contents = types.BlobResourceContents(uri=medium.address, mime_type=medium.type, blob=medium.base64)
    return types.EmbeddedResource(resource=contents)


def wait_tool(
    name: str, code_tool: str, result: dict[str, Any] | None, seconds: float, *, journaled: bool = False
) -> types.Tool:
    """The tool as clients see it; `result` is the schema of the code tool's result."""
    properties = {
        "run_id": {"type": "string", "description": f"The run's id, from the answer of {code_tool}."},
        "seconds": {"type": "number", "minimum": 0, "description": f"How long to wait; at most {seconds:g}."},
        "cancel": {"type": "boolean", "description": "Stop the script instead."},
    }
    if journaled:
        properties["in_flight"] = {
            "enum": ["retry", "fail"],
            "description": "After a restart of the server: make calls in doubt again, or let them fail.",
        }
    return types.Tool(
        name=name,
        title="Wait for a script",
        description=(
            f"Waits for a script that {code_tool} left running, and returns its result once it has ended. "
            "Until then it returns how far the script is."
        ),
        input_schema={"type": "object", "properties": properties, "required": ["run_id"]},
        output_schema=result,
        annotations=types.ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False),
    )


def still_running(call: OpenCall, client: McpClient, *, structured: bool) -> types.CallToolResult:
    """The answer in place of a result that is not there yet."""
    progress = call.reported.own
    data: dict[str, Any] = {"run": call.id, "calls": call.reported.begun, "running": True}
    if progress is not None:
        shown = {"done": progress.done, "total": progress.total, "text": progress.text or None}
        data["progress"] = {name: value for name, value in shown.items() if value is not None}
    text = (
        f"The script has not ended; it continues as run {call.id}.\n"
        f"Progress: {call.reported.words()}.\n"
        f'For its result, call {call.wait_tool} with run_id = "{call.id}"; with cancel = true it is stopped.'
    )
    meta: dict[str, Any] = {RUN_KEY: call.id}
    if not client.modern:
        meta[RELATED_KEY] = {"taskId": call.id}
    return types.CallToolResult(
        content=[types.TextContent(text=text)], structured_content=data if structured else None, _meta=meta
    )


def stopped(run_id: str, calls: int = 0, *, structured: bool) -> types.CallToolResult:
    """The answer where there will be no result."""
    text = types.TextContent(text=f"The run {run_id} was stopped.")
    data = {"run": run_id, "calls": calls} if structured else None
    return types.CallToolResult(content=[text], structured_content=data, _meta={RUN_KEY: run_id})


def in_doubt(call: OpenCall, pending: Iterable[PendingCall]) -> str:
    """What the model is told of calls that a restart of the server cut off, and what it can do."""
    lines = [f"  {each.tool} {json.dumps(each.arguments, default=str)[:_LONGEST_ARGUMENTS]}" for each in pending]
    said = "the server was restarted while this script made the calls below; whether they took effect is not known."
    choice = (
        f'The script waits. Find out what you can, then call {call.wait_tool} with run_id = "{call.id}" and '
        'in_flight = "retry" to make these calls again, or in_flight = "fail" to let them fail with code in_doubt.'
    )
    return "\n".join((said, *lines, choice))


def not_in_background(run_id: str) -> str:
    shown = run_id if len(run_id) <= _LONGEST_ID else run_id[:_LONGEST_ID] + "…"
    return (
        f"no run {shown!r} is in the background: its result was given before, or was not asked for in time. "
        "If it has ended, the resource moonbox://runs/ID is its record."
    )


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
        return _form("\n".join(visible(line, keep="\n") for line in lines), {})
    changed = f"Its definition has changed since you allowed all its calls: {', '.join(call.changed)}."
    message = _described(call, "Allow a call of the tool '{}'?", [changed] if call.changed else [])
    properties: dict[str, Any] = {}
    if call.repl_id:  # a direct call is not part of a conversation
        properties["always"] = {
            "type": "boolean",
            "title": "Allow all further calls of this tool in this conversation",
            "default": False,
        }
    return _form(message, properties)


def decision(answer: types.ElicitResult, by: str) -> Decision:
    if answer.action == "accept":
        always = (answer.content or {}).get("always") is True
        return Decision("always" if always else "allow", by=by)
    return Decision("deny", "" if answer.action == "decline" else "the question was dismissed", by=by)


def approval_unavailable(call: ToolCall, direct: str | None) -> Denied:
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
    return _form(_described(call, "The tool '{}' is answered by you."), {"answer": field}, required=["answer"])


def _form(message: str, properties: dict[str, Any], **more: Any) -> types.ElicitRequest:
    schema = {"type": "object", "properties": properties, **more}
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


async def request_client(client: McpClient, request: types.InputRequest, seconds: float) -> Response:
    """Send a request to a client of the earlier protocol."""
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
