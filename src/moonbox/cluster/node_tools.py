"""Tools that run on a node: each call is a task of Ray, which imports the tool's function there."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Mapping
from contextlib import ExitStack
from importlib import import_module
from typing import TYPE_CHECKING, Any

from msgspec import msgpack

from moonbox.cluster.ray_messages import CallFunction, MediumOnNode, ToolFailure, ToolOutcome
from moonbox.cluster.ray_process import RayLost, RequestFailed
from moonbox.errors import ConversionError, ToolError, WorkerError
from moonbox.media import Media, MediaStore
from moonbox.tools.function import Context
from moonbox.tools.results import collect_rows, to_tool_error
from moonbox.tools.tool import Tool
from moonbox.values import ValueLimits, from_jsonable, pack, to_jsonable
from moonbox.worker.encoding import Decoder

if TYPE_CHECKING:
    from moonbox.cluster.membership import Membership

_RETRIES = 3
"""Of calls whose tools are `read_only` or `idempotent`, where a node fails."""
_FOR_NODES = ("run_id", "repl_id", "tool", "index", "idempotency_key")
"""What a tool on a node finds in its Context; `extra` belongs to the caller's process."""
_MOST_ROWS = 1_000_000


def call_on_node(
    tool: Tool, arguments: Mapping[str, Any], context: Context | None, cluster: Membership, limits: ValueLimits
) -> Any:
    """Call a tool on the node that Ray chooses. Large arguments and results go through Ray's object store once."""
    repeatable = tool.is_repeatable
    about = {} if context is None else {name: getattr(context, name) for name in _FOR_NODES}
    call = CallFunction(
        number=0,
        tool=tool.path,
        function=f"{tool.call.__module__}:{tool.call.__qualname__}",
        arguments=dict(arguments),
        about=about,
        retries=_RETRIES if repeatable else 0,
    )
    try:
        outcome: ToolOutcome = cluster.ray.request(call, ToolOutcome)
    except RayLost as problem:
        again = repeatable or not problem.sent
        raise ToolError(str(problem), code="unavailable" if again else "in_doubt", retryable=again) from None
    except RequestFailed as problem:
        code = "unavailable" if repeatable else "in_doubt"
        message = f"the node that ran {tool.path} is gone, or the tool cannot be imported there"
        raise ToolError(message, code=code, retryable=repeatable, detail=str(problem)) from None
    if (failure := outcome.failure) is not None:
        data = None if not failure.data else _decode(tool, failure.data.encode(), limits)
        raise ToolError(
            failure.message, code=failure.code, retryable=failure.retryable, data=data, detail=failure.detail
        )
    media = {each.address: Media(each.data, each.type, each.name) for each in outcome.media}
    return _with_media(_decode(tool, outcome.result, limits), media)


def _decode(tool: Tool, data: bytes, limits: ValueLimits) -> Any:
    """What a node sent; its elements are counted before it is decoded."""
    try:
        return from_jsonable(Decoder(2 * limits.max_elements, limits.max_depth).decode(data))
    except (WorkerError, ValueError, TypeError) as problem:
        reason = str(problem).removeprefix("the worker sent an invalid value: ")
        raise ToolError(f"the result of {tool.path} cannot be used: {reason}", code="result_too_large") from None


def _with_media(value: Any, media: Mapping[str, Media]) -> Any:
    """The value with the media themselves in place of their handles."""
    if not media:
        return value
    if isinstance(value, list):
        return [_with_media(item, media) for item in value]
    if isinstance(value, dict):
        address = value.get("media")
        if isinstance(address, str) and address in media:
            return media[address]
        return {key: _with_media(item, media) for key, item in value.items()}
    return value


# On the node


def call_here(path: str, function: str, arguments: dict[str, Any], about: dict[str, Any]) -> bytes:
    """What came of the call, as a packed ToolOutcome."""
    store = MediaStore()
    try:
        with ExitStack() as active:
            active.enter_context(store.active())
            result = _invoke(function, arguments, about)
            data = json.dumps(to_jsonable(_packed(path, result)), ensure_ascii=False).encode()
            media = [MediumOnNode(each.address, each.data, each.type, each.name) for each in store.kept.values()]
        outcome = ToolOutcome(data, media, None)
    except Exception as raised:  # noqa: BLE001 - the caller raises it
        error = to_tool_error(raised, path)
        told = "" if error.data is None else json.dumps(to_jsonable(pack(error.data).value))
        failure = ToolFailure(str(error.message), error.code, error.retryable, told, error.detail or "")
        outcome = ToolOutcome(b"", [], failure)
    return msgpack.encode(outcome)


def _invoke(function: str, arguments: dict[str, Any], about: dict[str, Any]) -> Any:
    module, _, names = function.partition(":")
    found: Any = import_module(module)
    for name in names.split("."):
        found = getattr(found, name)
    result = Tool.from_function(found).invoke(arguments, Context(**about) if about else None)
    return collect_rows(asyncio.run(_awaited(result)) if inspect.isawaitable(result) else result, _MOST_ROWS)


def _packed(path: str, result: Any) -> Any:
    """The result as plain data; raises ToolError where it cannot be sent."""
    try:
        return pack(result, ValueLimits(), "result").value
    except ConversionError as problem:
        code = "result_too_large" if problem.limit else "bad_result"
        raise ToolError(f"the result of {path} cannot be used: {problem}", code=code) from None


async def _awaited(value: Any) -> Any:
    return await value
