"""The OpenAPI document of the HTTP API, generated from the tools that are served."""

from __future__ import annotations

import json
import re
from typing import Any

from moonbox._version import __version__

__all__ = ["document"]

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
_ERROR_STATUSES = ("400", "401", "403", "404", "405", "413", "415", "421", "422", "500", "502", "503", "504")
_LITERAL = frozenset({"enum", "const", "default", "examples", "required"})
_ID = {"name": "id", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}


def document(tools: list[dict[str, Any]]) -> dict[str, Any]:
    """An OpenAPI 3.1 document with one path for each tool."""
    paths: dict[str, Any] = {
        "/health": _get("health", "Whether the server is up", {"status": {"const": "ok"}}),
        "/tools/list": _get("listTools", "All tools", {"tools": {"type": "array", "items": {"type": "object"}}}),
        "/run": {"post": _post("run", "Run a script", _script(), {"result": {}, "run": {"type": "string"}})},
        "/runs": _get(
            "listRuns", "The latest runs", {"runs": {"type": "array"}}, [_query("limit", 500), _query("offset", 10**9)]
        ),
        "/runs/{id}": _get("getRun", "The complete record of a run", {"id": {"type": "string"}}, [_ID]),
    }
    schemas: dict[str, Any] = {"Error": _ERROR}
    for tool in tools:
        key = _key(tool["name"])
        text = json.dumps(tool["parameters"]).replace('"#/$defs/', f'"#/components/schemas/{key}.')
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


def _post(name: str, summary: str, body: dict[str, Any], fields: dict[str, Any]) -> dict[str, Any]:
    required = bool(body.get("required"))
    return {
        "operationId": name,
        "summary": summary.splitlines()[0],
        "requestBody": {"required": required, "content": {"application/json": {"schema": body}}},
        "responses": _responses(fields),
    }


def _responses(fields: dict[str, Any]) -> dict[str, Any]:
    schema = {"type": "object", "properties": fields, "required": list(fields)}
    failed = {"description": "error", "content": _json({"$ref": "#/components/schemas/Error"})}
    return {"200": {"description": "success", "content": _json(schema)}, **dict.fromkeys(_ERROR_STATUSES, failed)}


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _script() -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"source_code": {"type": "string"}},
        "required": ["source_code"],
        "additionalProperties": False,
    }


def _query(name: str, maximum: int) -> dict[str, Any]:
    schema = {"type": "integer", "minimum": 0, "maximum": maximum}
    return {"name": name, "in": "query", "required": False, "schema": schema}


def _key(name: str) -> str:
    """A tool's path as a component name."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", name)
