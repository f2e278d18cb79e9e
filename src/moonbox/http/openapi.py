"""The operations of the HTTP API: its routes, and its OpenAPI document, which also has one for each tool."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from starlette.routing import BaseRoute, Route

from moonbox._version import __version__
from moonbox.audit.records import RUN_STATES
from moonbox.schema.closing import close
from moonbox.schema.tree import with_parts

_STRING: dict[str, Any] = {"type": "string"}
_BOOLEAN: dict[str, Any] = {"type": "boolean"}
_OBJECT: dict[str, Any] = {"type": "object"}
_OBJECTS: dict[str, Any] = {"type": "array", "items": {"type": "object"}}
_ERROR_STATUSES = [str(code) for code in (400, 401, 403, 404, 405, 409, 413, 415, 421, 422, 429, 500, 502, 503, 504)]
_DONE: dict[str, Any] = {"ok": {"const": True}}
_PATH_PARAMETER = re.compile(r"\{(\w+)(:int)?\}")


def document(tools: list[dict[str, Any]], *, workbench: bool = False, servers: bool = False) -> dict[str, Any]:
    """An OpenAPI 3.1 document with one path for each tool; with those of the workbench and of MCP servers, if any."""
    operations = api_operations() | (workbench_operations() if workbench else {})
    operations |= server_operations() if servers else {}
    error = _object({"code": _STRING, "message": _STRING}, "code", "message")
    schemas: dict[str, Any] = {"Error": _object({"error": error}, "error")}
    for tool in tools:
        key = _key(tool["name"])
        text = json.dumps(close(tool["parameters"])).replace('"#/$defs/', f'"#/components/schemas/{key}.')
        schema = _optional_may_be_null(json.loads(text))
        schemas.update({f"{key}.{name}": part for name, part in schema.pop("$defs", {}).items()})
        fields, summary = {"result": {}, "run": _STRING}, tool["description"] or tool["name"]
        operations[f"POST /tools/{quote(tool['name'])}"] = _operation(
            f"call.{key}", summary, fields, [_query("background", _BOOLEAN)], body=schema
        )
    paths: dict[str, Any] = {}
    for place, operation in operations.items():
        method, path = place.split(" ")
        named = [_in_path(name, number=bool(kind)) for name, kind in _PATH_PARAMETER.findall(path)]
        named += operation.pop("parameters")
        paths.setdefault(path.replace(":int", ""), {})[method.lower()] = operation | (
            {"parameters": named} if named else {}
        )
    return {
        "openapi": "3.1.0",
        "info": {"title": "moonbox", "version": __version__},
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{}, {"token": []}],
    }


def routes_of(api: object, operations: Mapping[str, Any]) -> list[BaseRoute]:
    """A route for each operation: `getRun` is handled by the method `get_run`."""
    found: list[BaseRoute] = []
    for place, operation in operations.items():
        method, path = place.split(" ")
        name = re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", operation["operationId"])
        found.append(Route(path, getattr(api, name), methods=[method]))
    return found


def api_operations() -> dict[str, Any]:
    """The operations that every server has, by method and path."""
    filters = [_text(name) for name in ("kind", "tool", "repl", "language", "q", "before")]
    label = {"type": "string", "pattern": "^[A-Za-z0-9_./-]{1,64}=", "examples": ["user=ann"]}
    age = {"type": "string", "pattern": "^([0-9]{1,4}[smhdw])?$", "examples": ["45m", "7d"]}  # or a date in ISO 8601
    filters += [_query("label", label), _query("since", age), _query("until", age)]
    filters += [_query("ok", _BOOLEAN), _query("details", _BOOLEAN), _query("state", {"enum": list(RUN_STATES)})]
    filters += [_number("limit", 500), _number("offset", 10**9)]
    search, pair = [_text("q", True), _number("limit", 50)], [_text("a", True), _text("b", True)]
    script = _object({"source_code": _STRING, "background": _BOOLEAN}, "source_code") | {"additionalProperties": False}
    report = {"timeline": _OBJECT, "model": _OBJECT, "economy": _OBJECT}
    sides = {"figures": {}, "diff": {"type": "array"}, "calls": _OBJECTS, "same_values": _BOOLEAN}
    result = {"result": {}, "run": _STRING}
    return {
        "POST /run": _operation("run", "Run a script", result, body=script),  # the first to be compared
        "GET /health": _operation("health", "Whether the server is up", {"status": {"const": "ok"}}),
        "GET /metrics": _operation("metrics", "Metrics as Prometheus reads them", media="text/plain"),
        "GET /openapi.json": _operation("openapi", "This document", {"openapi": _STRING}),
        "GET /tools/list": _operation("listTools", "All tools", {"tools": _OBJECTS}),
        "GET /tools/search": _operation("searchTools", "Tools as scripts find them", {"tools": _OBJECTS}, search),
        "GET /runs": _operation("listRuns", "The latest runs", {"runs": _OBJECTS}, filters),
        "GET /runs/{id}": _operation("getRun", "The complete record of a run", {"id": _STRING}),
        "GET /runs/{id}/report": _operation("getReport", "What a page shows of a run", report),
        "GET /runs/{id}/calls/{index:int}": _operation("getCall", "One call of a run", {"tool": _STRING}),
        "GET /compare": _operation("compare", "Two runs side by side", sides, pair),
    }


def workbench_operations() -> dict[str, Any]:
    """The operations of sessions, approvals, events, views and time travel that `serve --console` adds."""
    session = {"id": _STRING, "language": _STRING, "state": _STRING, "source": _STRING, "limits": _OBJECT}
    decisions, reason = {"enum": ["allow", "always", "edit", "deny"]}, {"type": "string", "maxLength": 500}
    rule = {"when": _OBJECT, "scope": {"enum": ["repl", "run"]}}
    decision = _object({"decision": decisions, "reason": reason, "arguments": _OBJECT, **rule}, "decision")
    script = _object({"source_code": _STRING, "step": _BOOLEAN, "limits": _OBJECT}, "source_code")
    search = [_text("q", True), _text("mode"), _number("limit", 50), _text("source")]
    look = _object({"source_code": _STRING, "language": _STRING, "session": _STRING}, "source_code")
    after, answers = [_text("session"), _text("after")], _object({"answers": _OBJECTS})
    language, waiting = _object({"language": _STRING}), {"pending": _OBJECTS, "answered": _OBJECTS}
    hits = {"hits": _OBJECTS, "mode": _STRING}
    fork = _object({"at": {"type": "integer"}, "answers": _OBJECTS, "dry": _BOOLEAN}, "at")
    moment = {"at": {}, "total": {}, "line": {}, "frames": _OBJECTS, "globals": _OBJECT, "call": _OBJECT}
    came_to = {"run": {}, "output": _STRING, "stopped": {}}
    recorded = [*map(_text, ("state", "label", "tool", "since", "text"))]
    recorded += [_number("limit", 1_000), _number("page", 1_000_000)]
    runs = {"runs": _OBJECTS, "more": _BOOLEAN}
    return {
        "GET /events": _operation("events", "Server-sent events", query=after, media="text/event-stream"),
        "POST /sessions": _operation("openSession", "Open a session: one Repl", session, body=language, status="201"),
        "GET /sessions/{id}": _operation("getSession", "The state of a session", session),
        "DELETE /sessions/{id}": _operation("closeSession", "End a session", status="204"),
        "POST /sessions/{id}/run": _operation("runInSession", "Run a script in a session", session, **_later(script)),
        "POST /sessions/{id}/resume": _operation("resume", "Go on from a pause", session, **_later(answers)),
        "POST /sessions/{id}/stop": _operation("stop", "Stop the script", session, body=_object({})),
        "GET /sessions/{id}/globals": _operation("globals", "What scripts have set", {"globals": _OBJECT}),
        "POST /check": _operation("check", "Look at a script without running it", {"findings": _OBJECTS}, body=look),
        "GET /approvals": _operation("listApprovals", "What waits for a person", waiting),
        "POST /approvals/{id}": _operation("answerApproval", "Answer a question", _DONE, body=decision),
        "GET /knowledge/search": _operation("searchKnowledge", "Documents", hits, search),
        "GET /knowledge/sources": _operation("listSources", "Where documents come from", {"sources": _OBJECTS}),
        "GET /media/{id}": _operation("getMedium", "An image, sound or file that a tool returned", media="*/*"),
        "GET /doctor": _operation("doctor", "What protects this machine", {"ok": _BOOLEAN}),
        "GET /journal": _operation("listJournal", "Runs of the journal", runs, recorded),
        "GET /runs/{id}/moments/{index:int}": _operation("getMoment", "A recorded run at one of its calls", moment),
        "POST /runs/{id}/forks": _operation("forkRun", "Go on from there with other answers", came_to, body=fork),
    }


def server_operations() -> dict[str, Any]:
    """The operations of MCP servers that `serve --console` adds."""
    accepted = _later(_object({}))
    return {
        "GET /servers": _operation("listServers", "The MCP servers and their state", {"servers": _OBJECTS}),
        "POST /servers/{name}/retry": _operation("retryServer", "Start an MCP server again now", _DONE, **accepted),
        "POST /servers/{name}/login": _operation(
            "logIn", "Begin a login at an MCP server", {"address": {}}, **accepted
        ),
    }


def _optional_may_be_null(schema: Any) -> Any:
    """A schema in which optional properties may be null, at any depth: null means that they are left out."""
    if not isinstance(schema, dict):
        return schema
    changed = with_parts(schema, lambda part, _: _optional_may_be_null(part))
    if isinstance(properties := changed.get("properties"), dict):
        required = schema.get("required", ())
        changed["properties"] = {
            name: part if name in required else {"anyOf": [part, {"type": "null"}]} for name, part in properties.items()
        }
    return changed


def _operation(
    name: str,
    summary: str,
    fields: dict[str, Any] | None = None,
    query: Sequence[Any] = (),
    *,
    body: dict[str, Any] | None = None,
    status: str = "200",
    media: str = "",
) -> dict[str, Any]:
    """An operation that answers with these fields, with another media type, or without a body."""
    content = {media: {}} if media else None if fields is None else _json(_object(fields, *fields))
    answer = {"description": "success", **({} if content is None else {"content": content})}
    failed = {"description": "error", "content": _json({"$ref": "#/components/schemas/Error"})}
    return {
        "operationId": name,
        "summary": summary.splitlines()[0],
        "parameters": query,
        **({} if body is None else {"requestBody": {"required": True, "content": _json(body)}}),
        "responses": {status: answer, **dict.fromkeys(_ERROR_STATUSES, failed)},
    }


def _later(body: dict[str, Any]) -> dict[str, Any]:
    """Of an operation that goes on after its answer."""
    return {"body": body, "status": "202"}


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _object(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


def _in_path(name: str, *, number: bool) -> dict[str, Any]:
    schema = {"type": "integer", "minimum": 0} if number else {"type": "string", "minLength": 1}
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _query(name: str, schema: dict[str, Any], required: bool = False) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": required, "schema": schema}


def _text(name: str, required: bool = False) -> dict[str, Any]:
    least = {"minLength": 1} if required else {}
    return _query(name, {"type": "string", "maxLength": 1000, **least}, required)


def _number(name: str, maximum: int) -> dict[str, Any]:
    return _query(name, {"type": "integer", "minimum": 0, "maximum": maximum})


def _key(name: str) -> str:
    """A tool's path as a component name."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", name)
