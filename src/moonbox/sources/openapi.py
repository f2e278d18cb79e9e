"""Tools of an OpenAPI specification: one for each operation, with the names, types and policies that follow from it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from moonbox.config.file import resolve_path
from moonbox.config.reader import read
from moonbox.config.sources import OpenApiSettings
from moonbox.errors import ToolDefinitionError, UsageError
from moonbox.net.addresses import NetError, parse_target
from moonbox.net.client import Request
from moonbox.sources.arguments import Arguments
from moonbox.sources.service import Origin, WebService, client
from moonbox.sources.specification import MAX_BYTES, HttpOperation, Schemas, Specification, fields, items, parse
from moonbox.tools.function import CallPlan, Context, injections
from moonbox.tools.hints import Hints
from moonbox.tools.naming import LONGEST_NAME
from moonbox.tools.paging import paging_form
from moonbox.tools.tool import ASKS_IN_SCRIPTS, Policy, Tool
from moonbox.tools.toolbox import Toolbox
from moonbox.wording import one_line

_LONGEST_DESCRIPTION = 4_000


def from_openapi(
    spec: Mapping[str, Any] | str | Path, *, namespace: str | None = None, folder: Path = Path(), **options: Any
) -> Toolbox:
    """The tools of a specification; `toolbox.problems` says what of it cannot be used. Paths start from `folder`."""
    place = "" if isinstance(spec, Mapping) else str(spec)
    settings = read(OpenApiSettings, {"spec": place, **options}, "")
    address = place if place.startswith(("https://", "http://")) else ""
    if isinstance(spec, Mapping):
        data = spec
    else:
        data = _fetched(address, settings) if address else _read(resolve_path(folder, place))
    specification = Specification(data)
    service = WebService(settings, _server(settings, address, specification), address)
    problems: list[str] = []
    tools = _tools(specification, settings, service, problems)
    box = Toolbox().merge(tools, namespace=namespace)
    box.problems = tuple(problems)
    return box


def _read(path: Path) -> Mapping[str, Any]:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as problem:
        raise UsageError(f"the specification '{path}' cannot be read: {problem.strerror}") from None
    if len(data) > MAX_BYTES:
        raise UsageError(f"the specification '{path}' is larger than {MAX_BYTES:,} bytes")
    return parse(data, f"the specification '{path}'")


def _fetched(address: str, settings: OpenApiSettings) -> Mapping[str, Any]:
    """From its address, with nothing that is secret."""
    try:
        target = parse_target(address)
        with client(Origin(target, [target], allow_private=settings.allow_private)) as connections:
            response = connections.send(Request(target), timeout=settings.timeout, max_bytes=MAX_BYTES)
    except NetError as problem:
        raise UsageError(f"the specification cannot be fetched: {problem.message}") from None
    if response.status != 200:
        raise UsageError(f"the specification cannot be fetched: {target.host} answered with HTTP {response.status}")
    return parse(response.body, f"the specification at {target.host}")


def _server(settings: OpenApiSettings, address: str, specification: Specification) -> str:
    """The one server that requests go to."""
    if settings.base_url is not None:
        return settings.base_url
    first = fields(next(iter(items(specification.data.get("servers"))), None)).get("url", "/")
    url = urljoin(address, str(first))
    try:
        return parse_target(url).url
    except NetError:
        raise UsageError(f"the specification names no server ({one_line(str(first), 80)!r}); give base_url") from None


def _tools(
    specification: Specification, settings: OpenApiSettings, service: WebService, problems: list[str]
) -> list[Tool]:
    requests, responses = Schemas(specification, "readOnly"), Schemas(specification, "writeOnly")
    operations = list(specification.operations(problems))
    grouped = len({tag for operation in operations for tag in operation.tags[:1]}) > 1
    tools: dict[str, Tool] = {}
    for operation in operations:
        name, space = _name(operation), _identifier(operation.tags[0]) if grouped and operation.tags else None
        included = not settings.include or any(_matches(pattern, operation, name) for pattern in settings.include)
        if not included or any(_matches(pattern, operation, name) for pattern in settings.exclude):
            continue
        try:
            if settings.base_url is None and ("servers" in operation.data or "servers" in operation.shared):
                raise ToolDefinitionError("it has a server of its own, which is not supported; give base_url")
            arguments = Arguments(operation, specification, requests)
            returns = _returns(operation, specification, responses)
            tool = _tool(operation, name, arguments, returns, service, settings).with_(namespace=space)
            if tool.path in tools:
                tool = tool.with_(name=_name(operation, by_path=True))
                problems.append(f"{operation.where}: the name '{name}' is taken; it is offered as '{tool.name}'")
            if tool.path in tools:
                raise ToolDefinitionError(f"the name '{tool.path}' is taken too")
            tools[tool.path] = tool
        except (ToolDefinitionError, RecursionError) as problem:
            problems.append(f"{operation.where}: {one_line(str(problem), 300)}")
    named = [(operation, _name(operation)) for operation in operations]
    for key, patterns in (("include", settings.include), ("exclude", settings.exclude)):
        idle = [one for one in patterns if not any(_matches(one, operation, name) for operation, name in named)]
        problems += [f"{key}: {pattern!r} names no operation" for pattern in idle]
    return list(tools.values())


def _tool(
    operation: HttpOperation,
    name: str,
    arguments: Arguments,
    returns: dict[str, Any] | None,
    service: WebService,
    settings: OpenApiSettings,
) -> Tool:
    linked = False

    def call(given: dict[str, Any], context: Context) -> Any:
        return service.call(operation.method, arguments.write(given), context.cancelled, with_next=linked)

    reads = operation.method in ("GET", "HEAD")
    policy: Policy = "auto" if reads else "approve"
    for pattern, said in settings.policy.items():
        policy = said if _matches(pattern, operation, name) else policy
    hints = Hints(
        read_only=reads,
        destructive=True if operation.method == "DELETE" and policy != "auto" else None,
        idempotent=operation.method in ("PUT", "DELETE") or None,
        open_world=True,
    )
    tool = Tool(
        name=name,
        call=call,
        description=_description(operation),
        parameters=arguments.schema,
        returns=returns,
        policy=policy,
        hints=hints,
        retry=settings.retry if hints.repeatable else None,
        tags=operation.tags,
        meta={"openapi": operation.where, ASKS_IN_SCRIPTS: True},
        plan=CallPlan(None, injections(call)),
    )
    tool.binder.check()
    # A bare list has no place for the cursor of the next page: it comes in the header Link.
    form = paging_form(tool) or {}
    linked = form.keys() in ({"cursor"}, {"cursor", "limit"}) and fields(returns).get("type") == "array"
    if not linked:
        return tool
    page = {key: value for key, value in fields(returns).items() if key != "$defs"}
    shape = {"type": "object", "properties": {"items": page, "next": {"type": "string"}}, "required": ["items"]}
    return tool.with_(returns={**shape, "$defs": fields(returns).get("$defs", {})})


def _returns(operation: HttpOperation, specification: Specification, schemas: Schemas) -> dict[str, Any] | None:
    """The schema of the first answer of success that is JSON."""
    for status, answer in sorted(fields(operation.data.get("responses")).items()):
        if status.startswith("2"):
            for kind, media in fields(specification.resolve(answer).get("content")).items():
                if "json" in kind and isinstance(fields(media).get("schema"), dict):
                    return fields(schemas.closed(media["schema"]))
    return None


def _matches(pattern: str, operation: HttpOperation, name: str) -> bool:
    """`tag:issues`, `/repos/*`, `GET /repos/*`, or a name."""
    if pattern.startswith("tag:"):
        return any(fnmatchcase(tag, pattern[4:]) for tag in operation.tags)
    method, _, path = pattern.rpartition(" ")
    if path.startswith("/") or method:
        return method.upper() in ("", operation.method) and fnmatchcase(operation.path, path)
    return fnmatchcase(name, pattern)


def _name(operation: HttpOperation, *, by_path: bool = False) -> str:
    """From the operation id, without what repeats the tag, or the path and method as FastAPI appends them."""
    said = str(operation.data.get("operationId", ""))
    suffix = re.sub(r"\W", "_", operation.path) + "_" + operation.method.lower()
    said = said.removesuffix(suffix) or said
    name = _identifier(said.removeprefix("".join(operation.tags[:1]) + "/"))
    path = re.sub(r"\{([^{}]*)\}", r"by_\1", operation.path.strip("/"))
    return _identifier(f"{operation.method.lower()}/{path}") if by_path or not name else name


def _identifier(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]+", "_", text).strip("_")[:LONGEST_NAME]


def _description(operation: HttpOperation) -> str:
    said = [str(operation.data.get(key) or "").strip() for key in ("summary", "description")]
    said = [f"{text}." if text and text[-1].isalnum() else text for text in said if text]
    return "\n".join([*said, *["Deprecated."] * bool(operation.data.get("deprecated"))])[:_LONGEST_DESCRIPTION]
