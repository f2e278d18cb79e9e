"""The OpenAPI document of the HTTP API, generated from the tools that are served."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from moonbox._version import __version__
from moonbox.audit.records import RUN_STATES
from moonbox.tools.closing import close

if TYPE_CHECKING:
    from collections.abc import Sequence

_ERROR: dict[str, Any] = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {"code": {"type": "string"}, "message": {"type": "string"}},
            "required": ["code", "message"],
        }
    },
    "required": ["error"],
}
_STRING: dict[str, Any] = {"type": "string"}
_OBJECT: dict[str, Any] = {"type": "object"}
_OBJECTS: dict[str, Any] = {"type": "array", "items": {"type": "object"}}
_ERROR_STATUSES = ("400", "401", "403", "404", "405", "409", "413", "415", "421", "422", "500", "502", "503", "504")
_LITERAL = frozenset({"enum", "const", "default", "examples", "required"})
_ID = {"name": "id", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}


def document(tools: list[dict[str, Any]], *, workbench: bool = False, servers: bool = False) -> dict[str, Any]:
    """An OpenAPI 3.1 document with one path for each tool; with those of the workbench and of MCP servers, if any."""
    paths = {**_api(), **(_workbench() if workbench else {}), **(_servers() if servers else {})}
    schemas: dict[str, Any] = {"Error": _ERROR}
    for tool in tools:
        key = _key(tool["name"])
        text = json.dumps(close(tool["parameters"])).replace('"#/$defs/', f'"#/components/schemas/{key}.')
        schema = _optional_may_be_null(json.loads(text))
        schemas.update({f"{key}.{name}": part for name, part in schema.pop("$defs", {}).items()})
        fields = {"result": {}, "run": {"type": "string"}}
        paths[f"/tools/{tool['name']}"] = _post(f"call.{key}", tool["description"] or tool["name"], schema, fields)
    return {
        "openapi": "3.1.0",
        "info": {"title": "moonbox", "version": __version__},
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{}, {"token": []}],
    }


def _api() -> dict[str, Any]:
    filters = [_text(name) for name in ("kind", "tool", "repl", "language", "q", "before")]
    label = {"type": "string", "pattern": "^[A-Za-z0-9_./-]{1,64}=", "examples": ["user=ann"]}
    age = {"type": "string", "pattern": "^([0-9]{1,4}[smhdw])?$", "examples": ["45m", "7d"]}  # or a date in ISO 8601
    filters += [_query("label", label), _query("since", age), _query("until", age)]
    flags = [_query(name, {"type": "boolean"}) for name in ("ok", "details")]
    states = _query("state", {"enum": list(RUN_STATES)})
    index = {"name": "index", "in": "path", "required": True, "schema": {"type": "integer", "minimum": 0}}
    script = {**_object({"source_code": _STRING}, "source_code"), "additionalProperties": False}
    report = {"timeline": _OBJECT, "model": _OBJECT, "economy": _OBJECT}
    sides = {"figures": {}, "diff": {"type": "array"}, "calls": _OBJECTS, "same_values": {"type": "boolean"}}
    return {
        "/health": _get("health", "Whether the server is up", {"status": {"const": "ok"}}),
        "/metrics": {"get": _operation("metrics", "Metrics as Prometheus reads them", (), {"text/plain": {}})},
        "/openapi.json": _get("openapi", "This document", {"openapi": _STRING}),
        "/tools/list": _get("listTools", "All tools", {"tools": _OBJECTS}),
        "/tools/search": _get(
            "searchTools", "Tools as scripts find them", {"tools": _OBJECTS}, [_text("q", True), _number("limit", 50)]
        ),
        "/run": _post("run", "Run a script", script, {"result": {}, "run": _STRING}),
        "/runs": _get(
            "listRuns",
            "The latest runs",
            {"runs": _OBJECTS},
            [_number("limit", 500), _number("offset", 10**9), *flags, states, *filters],
        ),
        "/runs/{id}": _get("getRun", "The complete record of a run", {"id": _STRING}, [_ID]),
        "/runs/{id}/report": _get("getReport", "What a page shows of a run", report, [_ID]),
        "/runs/{id}/calls/{index}": _get("getCall", "One call of a run", {"tool": _STRING}, [_ID, index]),
        "/compare": _get("compare", "Two runs side by side", sides, [_text("a", True), _text("b", True)]),
    }


def _workbench() -> dict[str, Any]:
    """The operations of sessions, approvals, events and views that `serve --console` adds."""
    source = {"source_code": _STRING}
    session = {"id": _STRING, "language": _STRING, "state": _STRING, "source": _STRING, "limits": _OBJECT}
    decision = {
        "decision": {"enum": ["allow", "always", "edit", "deny"]},
        "reason": {"type": "string", "maxLength": 500},
        "arguments": _OBJECT,
    }
    step = {**source, "step": {"type": "boolean"}, "limits": _OBJECT}
    search = [_text("q", True), _text("mode"), _number("limit", 50), _text("source")]
    look = {**source, "language": _STRING, "session": _STRING}
    after = [_text("session"), _number("after", 10**9)]
    return {
        "/events": {"get": _operation("events", "Server-sent events", after, {"text/event-stream": {}})},
        "/sessions": _post(
            "openSession", "Open a session: one Repl", _object({"language": _STRING}), session, status="201"
        ),
        "/sessions/{id}": {
            **_get("getSession", "The state of a session", session, [_ID]),
            "delete": _operation("closeSession", "End a session", [_ID], None, status="204"),
        },
        "/sessions/{id}/run": _post(
            "runInSession", "Run a script in a session", _object(step, "source_code"), session, [_ID], "202"
        ),
        "/sessions/{id}/resume": _post(
            "resume", "Go on from a pause", _object({"answers": _OBJECTS}), session, [_ID], "202"
        ),
        "/sessions/{id}/stop": _post("stop", "Stop the script", _object({}), session, [_ID]),
        "/sessions/{id}/globals": _get("globals", "What scripts have set", {"globals": _OBJECT}, [_ID]),
        "/check": _post(
            "check", "Look at a script without running it", _object(look, "source_code"), {"findings": _OBJECTS}
        ),
        "/approvals": _get("listApprovals", "What waits for a person", {"pending": _OBJECTS, "answered": _OBJECTS}),
        "/approvals/{id}": _post(
            "answerApproval", "Answer a question", _object(decision, "decision"), {"ok": {"const": True}}, [_ID]
        ),
        "/knowledge/search": _get("searchKnowledge", "Documents", {"hits": _OBJECTS, "mode": _STRING}, search),
        "/knowledge/sources": _get("listSources", "Where documents come from", {"sources": _OBJECTS}),
        "/media/{id}": {
            "get": _operation("getMedium", "An image, sound or file that a tool returned", [_ID], {"*/*": {}})
        },
        "/doctor": _get("doctor", "What protects this machine", {"ok": {"type": "boolean"}}),
    }


def _servers() -> dict[str, Any]:
    """The operations of MCP servers that `serve --console` adds."""
    name, done = [{**_ID, "name": "name"}], {"ok": {"const": True}}
    return {
        "/servers": _get("listServers", "The MCP servers and their state", {"servers": _OBJECTS}),
        "/servers/{name}/retry": _post(
            "retryServer", "Start an MCP server again now", _object({}), done, name, status="202"
        ),
        "/servers/{name}/login": _post(
            "logIn", "Begin a login at an MCP server", _object({}), {"address": {}}, name, status="202"
        ),
    }


def _optional_may_be_null(schema: Any) -> Any:
    """A schema in which optional properties may be null, at any depth: null means that they are left out."""
    if isinstance(schema, list):
        return [_optional_may_be_null(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    changed = {key: _optional_may_be_null(part) for key, part in schema.items() if key not in _LITERAL}
    changed.update({key: part for key, part in schema.items() if key in _LITERAL})
    properties = changed.get("properties")
    if isinstance(properties, dict):
        required = schema.get("required", ())
        changed["properties"] = {
            name: part if name in required else {"anyOf": [part, {"type": "null"}]} for name, part in properties.items()
        }
    return changed


def _get(name: str, summary: str, fields: dict[str, Any], parameters: Sequence[Any] = ()) -> dict[str, Any]:
    return {"get": _operation(name, summary, parameters, _json(_object(fields, *fields)))}


def _post(
    name: str,
    summary: str,
    body: dict[str, Any],
    fields: dict[str, Any],
    parameters: Sequence[Any] = (),
    status: str = "200",
) -> dict[str, Any]:
    operation = _operation(name, summary, parameters, _json(_object(fields, *fields)), status)
    return {"post": {**operation, "requestBody": {"required": True, "content": _json(body)}}}


def _operation(
    name: str, summary: str, parameters: Sequence[Any], content: dict[str, Any] | None, status: str = "200"
) -> dict[str, Any]:
    answer = {"description": "success", **({} if content is None else {"content": content})}
    failed = {"description": "error", "content": _json({"$ref": "#/components/schemas/Error"})}
    return {
        "operationId": name,
        "summary": summary.splitlines()[0],
        **({"parameters": list(parameters)} if parameters else {}),
        "responses": {status: answer, **dict.fromkeys(_ERROR_STATUSES, failed)},
    }


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _object(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


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
