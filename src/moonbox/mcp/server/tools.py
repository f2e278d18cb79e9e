"""The tools of the server: the code tool and the direct tools as clients see them, their calls and results."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.shared.inbound import x_mcp_header_map

from moonbox.codemode.definitions import Definition, from_tool, provider_names
from moonbox.codemode.mode import CodeMode, Reply
from moonbox.errors import InDoubt, MoonboxError, UsageError
from moonbox.mcp.server.limits import ClusterQuotas, Quotas, Shares, TooMany
from moonbox.mcp.server.results import code_result, direct_result, error_result, in_doubt, script_result, wait_tool
from moonbox.mcp.server.sessions import META_KEY, STATE, ClientConversation, McpClient, conversation_of, owner_of
from moonbox.mcp.upstreams.catalog import portable_copy
from moonbox.mcp.upstreams.tools import annotations_of, definition_of
from moonbox.runs.options import CONVERSATION

if TYPE_CHECKING:
    from moonbox.audit.records import Run
    from moonbox.config.sections import ServeSettings
    from moonbox.mcp.server.call import OpenCall
    from moonbox.mcp.server.calls import OpenCalls
    from moonbox.sandbox.repl import Repl
    from moonbox.tools.tool import Tool

    CallParams = types.CallToolRequestParams
    Result = types.CallToolResult

log = logging.getLogger("moonbox.mcp")

_LIVE_SECONDS = 300.0
"""How long the state of a conversation is safe from new conversations of the same client."""
_GIVEN_UP = (
    "the state of this conversation was given up: it was not used for long, or others needed its place; "
    "this script started with new globals"
)
_AS_TASK = types.ToolExecution(task_support="optional")
_STATE_PARAMETER = {
    "type": "string",
    "description": "Optional: the state that an earlier call returned, to continue with its globals.",
}


@dataclass(frozen=True, slots=True)
class ShownTools:
    """The tools for one kind of client, in a fixed order."""

    tools: tuple[types.Tool, ...]
    code_tool: str | None
    """The name of the code tool, if there is one."""
    wait_tool: str | None = None
    """The name of the tool that gives the results of scripts in the background, if there is one."""
    approved_by_client: Mapping[str, Tool] = field(default_factory=dict)
    """Tools that need approval, offered directly because this client cannot be asked for it; by name."""
    names: Mapping[str, str] = field(default_factory=dict)
    """The name of each direct tool, by its path."""
    header_schemas: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    """The input schemas that bind arguments to HTTP headers, by the tool's name."""

    def find(self, name: str) -> types.Tool | None:
        return next((tool for tool in self.tools if tool.name == name), None)


class ToolViews:
    """Makes views, and keeps them until the tools change."""

    def __init__(self, mode: CodeMode, settings: ServeSettings) -> None:
        self._mode = mode
        self._structured = settings.structured
        self._waits = settings.answer_within
        self._made = lru_cache(maxsize=8)(self._new_view)

    def of(self, client: McpClient) -> ShownTools:
        return self.view(elicits=client.elicits, stateless=client.session is None, modern=client.modern)

    def view(self, *, elicits: bool = False, stateless: bool = True, modern: bool = True) -> ShownTools:
        """`elicits`: the client can be asked for approval; `stateless`: it has no session; `modern`: its protocol."""
        toolbox = self._mode.sandbox.toolbox
        while True:
            revision = toolbox.revision
            try:
                return self._made(revision, elicits=elicits, stateless=stateless, modern=modern)
            except ValueError:
                if toolbox.revision == revision:
                    raise
                # Another thread changed the tools in between: make the view of the new ones.

    def direct_name(self, path: str) -> str | None:
        """The name under which clients that cannot be asked call a tool directly."""
        return self.view().names.get(path)

    def header_schema(self, name: str) -> dict[str, Any] | None:
        """The input schema of a tool, if it binds arguments to HTTP headers: others need no comparison with them."""
        return self.view().header_schemas.get(name)

    def supports_tasks(self, client: McpClient, name: str) -> bool:
        """Whether a tool may be called as a task."""
        tool = self.of(client).find(name)
        return tool is not None and tool.execution is not None

    def _new_view(self, _revision: int, *, elicits: bool, stateless: bool, modern: bool) -> ShownTools:
        mode = self._mode
        definitions = mode.neutral_definitions()
        code = definitions.pop(0) if mode.choice.code else None
        direct = dict(zip((item.name for item in definitions), mode.direct_tools, strict=True))
        approved_by_client: dict[str, Tool] = {}
        if not elicits:
            shown = {tool.path for tool in mode.direct_tools}
            hidden = [tool for tool in mode.hidden_tools if tool.policy == "approve" and tool.path not in shown]
            hidden.sort(key=lambda tool: tool.path)
            approved_by_client = provider_names(hidden, [*direct, mode.tool_name])
            definitions += [from_tool(tool, name) for name, tool in approved_by_client.items()]
        by_name = {**direct, **approved_by_client}
        tools = [_mcp_tool(item, by_name[item.name], modern) for item in definitions]
        tools.sort(key=lambda tool: tool.name)  # independent of which server was up first
        wait_name = None
        if code is not None:
            tools.insert(0, self._code_tool(code, stateless=stateless, modern=modern))
            if self._waits is not None:
                wait_name = f"{code.name}_wait"
                while wait_name in by_name:
                    wait_name += "_"
                schema, durable = tools[0].output_schema, mode.sandbox.has_journal
                tools.insert(1, wait_tool(wait_name, code.name, schema, self._waits, journaled=durable))
        names = {tool.path: name for name, tool in by_name.items()}
        headers = {tool.name: tool.input_schema for tool in tools if x_mcp_header_map(tool.input_schema)}
        code_name = None if code is None else code.name
        return ShownTools(tuple(tools), code_name, wait_name, approved_by_client, names, headers)

    def _code_tool(self, definition: Definition, *, stateless: bool, modern: bool) -> types.Tool:
        schema = dict(definition.parameters)
        if stateless:
            schema["properties"] = {**schema["properties"], STATE: _STATE_PARAMETER}
        return types.Tool(
            name=definition.name,
            title="Run a script",
            description=definition.description,
            input_schema=schema,
            output_schema=code_result(waits=self._waits is not None) if self._structured else None,
            annotations=_code_annotations(self._mode.hidden_tools),
            execution=None if modern else _AS_TASK,
        )


def _mcp_tool(item: Definition, tool: Tool, modern: bool) -> types.Tool:
    """A tool of ours, or a server's as the server defines it; one that must be called as a task need not be."""
    made = definition_of(tool)
    if made is None:
        annotations = annotations_of(tool).to_mcp()
        made = types.Tool(
            name=item.name,
            description=item.description,
            input_schema={"type": "object", **item.parameters},
            output_schema=None if item.returns is None else dict(item.returns),
            annotations=types.ToolAnnotations.model_validate(annotations) if annotations else None,
        )
    returns = made.output_schema
    if returns is not None and not modern and returns.get("type") != "object":
        returns = None  # the earlier protocol allows only objects
    supports_tasks = made.execution is not None and made.execution.task_support in ("optional", "required")
    execution = _AS_TASK if supports_tasks and not modern else None
    return portable_copy(made, name=item.name, execution=execution, output_schema=returns)


def _code_annotations(hidden: Iterable[Tool]) -> types.ToolAnnotations:
    """A script can do whatever its tools can: what one of them does not rule out is possible."""
    hints = [annotations_of(tool) for tool in hidden]
    changing = [item for item in hints if item.read_only is not True]
    return types.ToolAnnotations(
        read_only_hint=not changing,
        destructive_hint=any(item.destructive is not False for item in changing),
        idempotent_hint=all(item.idempotent is True for item in changing),
        open_world_hint=any(item.open_world is not False for item in hints),
    )


class ToolRunner:
    """Runs the calls of clients; `on_run` is called with the owner and the record of each run."""

    def __init__(
        self, mode: CodeMode, settings: ServeSettings, calls: OpenCalls, on_run: Callable[[str, Run], object]
    ) -> None:
        self._mode = mode
        self._settings = settings
        self._calls = calls
        self._on_run = on_run
        self._quotas = (
            ClusterQuotas(settings, cluster)  # counts for all servers of the cluster together
            if (cluster := mode.sandbox.cluster) is not None
            else Quotas(settings.calls_per_minute, settings.seconds_per_minute)
        )
        self._shares = Shares(settings.max_calls, settings.max_waiting, settings.wait_seconds)
        sessions = mode.sessions
        sessions.idle_seconds, sessions.most, sessions.strict = settings.idle_seconds, settings.max_conversations, True
        sessions.owner_of, sessions.live_seconds = owner_of, _LIVE_SECONDS

    async def run(self, call: OpenCall, client: McpClient, params: CallParams, view: ShownTools) -> Result:
        """Run a call as soon as it is the client's turn."""
        try:
            async with self.turn(client.share, call.waiting):
                if params.name != view.code_tool:
                    return await self._run_direct(call, client, params, view)
                conversation = self._conversation(client, params)
                await self._calls.wait_for_conversation(conversation.key)
                call.conversation = conversation.key
                return await self._run_script(call, client, params, conversation)
        except TooMany as problem:
            return error_result(str(problem))
        except MoonboxError as problem:
            log.exception("a call of %s failed", params.name)
            return error_result(str(problem))

    @asynccontextmanager
    async def turn(self, share: str, on_wait: Callable[[int], None] = lambda _: None) -> AsyncIterator[None]:
        """Wait until it is the turn of a call; TooMany says why it may not begin."""
        async with self._shares.slot(share, on_wait), self._quotas.acall(share):
            yield

    def _conversation(self, client: McpClient, params: types.CallToolRequestParams) -> ClientConversation:
        meta: Any = params.meta or {}
        state = (params.arguments or {}).get(STATE) if client.session is None else None
        conversation = conversation_of(client, meta.get(META_KEY), state, self._mode.sessions)
        return replace(conversation, note=_GIVEN_UP) if self._mode.sessions.gave_up(conversation.key) else conversation

    async def _run_script(
        self, call: OpenCall, client: McpClient, params: CallParams, conversation: ClientConversation
    ) -> Result:
        arguments = dict(params.arguments or {})
        given = arguments.pop(STATE, None) if client.session is None else None
        kept = conversation.handle in (None, given)  # a client that gives up now does not learn a new handle
        try:
            reply = await self._mode.areply(
                params.name,
                arguments,
                conversation=conversation.key,
                labels={**client.labels, CONVERSATION: conversation.label},
                run_id=call.id,
                on_progress=call.reported.advance,
            )
            kept = conversation.handle is None or await _has_globals(self._mode.sessions.get(conversation.key))
        finally:
            if not kept:
                self._mode.sessions.end(conversation.key, unless_used=True)
        if not kept:
            conversation = replace(conversation, handle=None)
        self._record(client, reply)
        return self._script_result(reply, conversation)

    async def recover(self, call: OpenCall, client: McpClient, in_flight: str | None) -> types.CallToolResult:
        """Continue a script that was cut off; the result of one that has ended, or does so on another front end."""
        try:
            reply = await self._resume(call, client, in_flight)
        except (TooMany, MoonboxError) as problem:
            call.cut_off = True
            return error_result(in_doubt(call, problem.pending) if isinstance(problem, InDoubt) else str(problem))
        self._record(client, reply)
        return self._script_result(reply, ClientConversation(""))

    async def _resume(self, call: OpenCall, client: McpClient, in_flight: str | None) -> Reply:
        while True:
            await self._calls.until_free(call.id)
            async with self.turn(client.share, call.waiting):
                try:
                    return await self._mode.aresume(call.id, in_flight, options={"on_progress": call.reported.advance})
                except UsageError:
                    if not await self._calls.runs_elsewhere(call.id):
                        raise
                    # Another front end was faster.

    def _script_result(self, reply: Reply, conversation: ClientConversation) -> types.CallToolResult:
        max_chars = self._mode.settings.max_chars
        return script_result(reply, conversation, structured=self._settings.structured, max_chars=max_chars)

    async def _run_direct(self, call: OpenCall, client: McpClient, params: CallParams, view: ShownTools) -> Result:
        tool = view.approved_by_client.get(params.name)
        if tool is not None:
            run = await self._mode.sandbox.acall(tool.path, params.arguments or {}, labels=client.labels)
            reply = Reply(run.for_model(self._mode.settings.max_chars), not run.ok, run)
        else:
            reply = await self._mode.areply(params.name, params.arguments or {}, pause=True, labels=client.labels)
            if reply.paused is not None:  # a client-side tool
                reply = await reply.paused.areply([await call.answer(waiting) for waiting in reply.paused.calls])
        self._record(client, reply)
        listed = view.find(params.name)
        structured = listed is not None and listed.output_schema is not None
        return direct_result(reply, structured=structured, upstream=call.upstream_result)

    def _record(self, client: McpClient, reply: Reply) -> None:
        if reply.run is not None:
            self._on_run(client.owner, reply.run)


async def _has_globals(repl: Repl | None) -> bool:
    """Whether there is anything that a later script could continue with."""
    try:
        return repl is not None and repl.may_have_globals and bool(await repl.aglobals())
    except MoonboxError:
        return False
