"""The OpenAPI document of the HTTP API, generated from the tools that are served."""

from __future__ import annotations

import json
import re
from typing import Any

from moonbox._version import __version__
from moonbox.audit.records import RUN_STATES
from moonbox.tools.closing import close

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


def document(tools: list[dict[str, Any]], *, workbench: bool = False) -> dict[str, Any]:
    """An OpenAPI 3.1 document with one path for each tool; with those of the workbench where there is one."""
    paths = {**_api(), **(_workbench() if workbench else {})}
    schemas: dict[str, Any] = {"Error": _ERROR}
    for tool in tools:
        key = _key(tool["name"])
        text = json.dumps(close(tool["parameters"])).replace('"#/$defs/', f'"#/components/schemas/{key}.')
        schema = _optional_may_be_null(json.loads(text))
        schemas.update({f"{key}.{name}": part for name, part in schema.pop("$defs", {}).items()})
        fields = {"result": {}, "run": {"type": "string"}}
        paths[f"/tools/{tool['name']}"] = {
            "post": _post(f"call.{key}", tool["description"] or tool["name"], schema, fields)
        }
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
    filters.append({"name": "label", "in": "query", "required": False, "schema": label})
    age = {"type": "string", "pattern": "^([0-9]{1,4}[smhdw])?$", "examples": ["45m", "7d"]}  # or a date in ISO 8601
    filters += [{"name": name, "in": "query", "required": False, "schema": age} for name in ("since", "until")]
    states = {"name": "state", "in": "query", "required": False, "schema": {"enum": list(RUN_STATES)}}
    flags = [
        {"name": name, "in": "query", "required": False, "schema": {"type": "boolean"}} for name in ("ok", "details")
    ]
    index = {"name": "index", "in": "path", "required": True, "schema": {"type": "integer", "minimum": 0}}
    report = {"timeline": _OBJECT, "model": _OBJECT, "economy": _OBJECT}
    sides = {"figures": {}, "diff": {"type": "array"}, "calls": _OBJECTS, "same_values": {"type": "boolean"}}
    return {
        "/health": _get("health", "Whether the server is up", {"status": {"const": "ok"}}),
        "/metrics": _stream("metrics", "Metrics as Prometheus reads them", "text/plain", []),
        "/openapi.json": _get("openapi", "This document", {"openapi": _STRING}),
        "/tools/list": _get("listTools", "All tools", {"tools": _OBJECTS}),
        "/tools/search": _get(
            "searchTools", "Tools as scripts find them", {"tools": _OBJECTS}, [_text("q", True), _query("limit", 50)]
        ),
        "/run": {"post": _post("run", "Run a script", _script(), {"result": {}, "run": _STRING})},
        "/runs": _get(
            "listRuns",
            "The latest runs",
            {"runs": _OBJECTS},
            [_query("limit", 500), _query("offset", 10**9), *flags, states, *filters],
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
    search = [_text("q", True), _text("mode"), _query("limit", 50), _text("source")]
    delete = {
        "operationId": "closeSession",
        "summary": "End a session",
        "parameters": [_ID],
        "responses": _no_content(),
    }
    return {
        "/events": _stream(
            "events", "Server-sent events", "text/event-stream", [_text("session"), _query("after", 10**9)]
        ),
        "/sessions": {
            "post": _post("openSession", "Open a session: one Repl", _body({"language": _STRING}), session, "201")
        },
        "/sessions/{id}": {**_get("getSession", "The state of a session", session, [_ID]), "delete": delete},
        "/sessions/{id}/run": _on(
            _post("runInSession", "Run a script in a session", _body(step, "source_code"), session, "202")
        ),
        "/sessions/{id}/resume": _on(
            _post("resume", "Go on from a pause", _body({"answers": _OBJECTS}), session, "202")
        ),
        "/sessions/{id}/stop": _on(_post("stop", "Stop the script", _body({}), session)),
        "/sessions/{id}/globals": _get("globals", "What scripts have set", {"globals": _OBJECT}, [_ID]),
        "/check": {
            "post": _post(
                "check",
                "Look at a script without running it",
                _body({**source, "language": _STRING, "session": _STRING}, "source_code"),
                {"findings": _OBJECTS},
            )
        },
        "/approvals": _get("listApprovals", "What waits for a person", {"pending": _OBJECTS, "answered": _OBJECTS}),
        "/approvals/{id}": _on(
            _post("answerApproval", "Answer a question", _body(decision, "decision"), {"ok": {"const": True}})
        ),
        "/knowledge/search": _get("searchKnowledge", "Documents", {"hits": _OBJECTS, "mode": _STRING}, search),
        "/knowledge/sources": _get("listSources", "Where documents come from", {"sources": _OBJECTS}),
        "/media/{id}": _stream("getMedium", "An image, sound or file that a tool returned", "*/*", [_ID]),
        "/doctor": _get("doctor", "What protects this machine", {"ok": {"type": "boolean"}}),
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


def _get(name: str, summary: str, fields: dict[str, Any], parameters: list[dict[str, Any]] | None = None) -> Any:
    operation = {"operationId": name, "summary": summary, "responses": _responses(fields)}
    return {"get": {**operation, "parameters": parameters} if parameters else operation}


def _on(operation: dict[str, Any]) -> dict[str, Any]:
    """A path for one thing, named by its id."""
    return {"post": {**operation, "parameters": [_ID]}}


def _stream(name: str, summary: str, kind: str, parameters: list[dict[str, Any]]) -> dict[str, Any]:
    """A path whose answer is not JSON."""
    answer = {"200": {"description": "success", "content": {kind: {}}}}
    return {
        "get": {
            "operationId": name,
            "summary": summary,
            "parameters": parameters,
            "responses": {**answer, **_failures()},
        }
    }


def _post(name: str, summary: str, body: dict[str, Any], fields: dict[str, Any], status: str = "200") -> dict[str, Any]:
    return {
        "operationId": name,
        "summary": summary.splitlines()[0],
        "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
        "responses": _responses(fields, status),
    }


def _responses(fields: dict[str, Any], status: str = "200") -> dict[str, Any]:
    schema = {"type": "object", "properties": fields, "required": list(fields)}
    return {status: {"description": "success", "content": _json(schema)}, **_failures()}


def _no_content() -> dict[str, Any]:
    return {"204": {"description": "success"}, **_failures()}


def _failures() -> dict[str, Any]:
    failed = {"description": "error", "content": _json({"$ref": "#/components/schemas/Error"})}
    return dict.fromkeys(_ERROR_STATUSES, failed)


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _body(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


def _script() -> dict[str, Any]:
    return {**_body({"source_code": _STRING}, "source_code"), "additionalProperties": False}


def _text(name: str, required: bool = False) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string", "maxLength": 1000}
    if required:
        schema["minLength"] = 1
    return {"name": name, "in": "query", "required": required, "schema": schema}


def _query(name: str, maximum: int) -> dict[str, Any]:
    schema = {"type": "integer", "minimum": 0, "maximum": maximum}
    return {"name": name, "in": "query", "required": False, "schema": schema}


def _key(name: str) -> str:
    """A tool's path as a component name."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", name)
