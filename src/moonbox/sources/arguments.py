"""The arguments of an operation: the schema that a tool has for them, and how they are written into a request.

They are written here because HTTP clients know one style of OpenAPI's, and servers' libraries (openapi-core) only read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from secrets import token_hex
from typing import Any, NamedTuple
from urllib.parse import quote

from moonbox.errors import ArgumentError, ToolDefinitionError
from moonbox.net.client import HEADER_NAME, header_value
from moonbox.sources.specification import HttpOperation, Schemas, Specification, fields, items
from moonbox.wording import one_line

_STYLES = {
    "path": ("simple",),
    "query": ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
    "header": ("simple",),
    "cookie": ("form",),
}
_DELIMITERS = {"spaceDelimited": "%20", "pipeDelimited": "|"}
_FORM, _MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"
_IGNORED_HEADERS = frozenset({"accept", "content-type", "authorization"})  # as the standard says
_OWN_HEADERS = frozenset({"connection", "content-length", "cookie", "host", "te", "transfer-encoding", "upgrade"})
_NOT_PLAIN = frozenset({"anyOf", "oneOf", "allOf", "not", "if", "nullable", "patternProperties"})
_MOST_BODY = 16 * 1024 * 1024


class _Parameter(NamedTuple):
    """One parameter: its name in the tool and in the request, and how it is written there."""

    argument: str
    name: str
    place: str = "query"
    style: str = "form"
    explode: bool = True
    as_json: bool = False


class Written(NamedTuple):
    """The arguments of one call as parts of a request."""

    path: str
    """With the query."""
    headers: dict[str, bytes]
    body: bytes


class Arguments:
    """The arguments of one operation. Raises ToolDefinitionError where it has what is not supported."""

    def __init__(self, operation: HttpOperation, specification: Specification, schemas: Schemas) -> None:
        self._path = operation.path
        self._parameters: list[_Parameter] = []
        self._properties: dict[str, Any] = {}
        self._required: list[str] = []
        self._body_type = ""
        self._body_fields: tuple[str, ...] | None = None
        self._files: set[str] = set()
        self._body_name = "body"
        self._body_required = False
        listed = [*items(operation.shared.get("parameters")), *items(operation.data.get("parameters"))]
        found = [specification.resolve(item) for item in listed]
        for item in {(str(item.get("name")), str(item.get("in"))): item for item in found}.values():
            self._add(item)
        in_path = {item.name for item in self._parameters if item.place == "path"}
        if differing := in_path ^ set(re.findall(r"\{([^{}]*)\}", self._path)):
            raise ToolDefinitionError(f"the path and its parameters differ: {one_line(', '.join(differing), 120)}")
        if "requestBody" in operation.data:
            self._add_body(specification.resolve(operation.data["requestBody"]), specification)
        self.schema = schemas.closed({"type": "object", "properties": self._properties, "required": self._required})

    def write(self, given: Mapping[str, Any]) -> Written:
        """Raises ArgumentError for what cannot be written."""
        path, headers, is_empty = self._path, dict[str, bytes](), False
        query: list[str] = []
        cookies: list[str] = []
        for item in self._parameters:
            value = given.get(item.argument)
            if item.place == "path":
                text = "" if value is None else _simple(item, value, _quoted)
                is_empty = is_empty or not text  # the path would then name something else, such as all items
                path = path.replace("{" + item.name + "}", text)
            elif value is None:
                continue
            elif item.place in ("query", "cookie"):
                (query if item.place == "query" else cookies).extend(_pairs(item, value))
            else:
                headers[item.name.lower()] = header_value(item.name, _simple(item, value, str))
        if is_empty or {".", ".."} & set(path.split("/")) or "//" in path:
            raise ArgumentError("a parameter of the path must not be empty, '.' or '..'")
        if cookies:
            headers["cookie"] = "; ".join(cookies).encode()
        body = self._body(given, headers)
        if len(body) > _MOST_BODY:
            raise ArgumentError(f"the body has {len(body):,} bytes; at most {_MOST_BODY:,} can be sent")
        joint = "&" if "?" in self._path else "?"
        return Written(f"{path}{joint}{'&'.join(query)}" if query else path, headers, body)

    def _add(self, item: Mapping[str, Any]) -> None:
        name, place = item.get("name"), item.get("in")
        if not isinstance(name, str) or not name or place not in _STYLES:
            raise ToolDefinitionError(f"the parameter {one_line(repr(name), 80)} is invalid")
        if place == "header" and name.lower() in _IGNORED_HEADERS:
            return
        if place in ("header", "cookie") and (name.lower() in _OWN_HEADERS or not HEADER_NAME.fullmatch(name)):
            raise ToolDefinitionError(f"the {place} {one_line(repr(name), 80)} cannot be a parameter")
        style = item.get("style", _STYLES[place][0])
        content = fields(item.get("content"))
        if style not in _STYLES[place] or not all(map(_is_json, content)):
            raise ToolDefinitionError(f"the form of the parameter {one_line(repr(name), 80)} is not supported")
        argument = name if name not in self._properties else f"{name}_{place}"
        explode = item.get("explode", style == "form") is True
        self._parameters.append(_Parameter(argument, name, place, style, explode, bool(content)))
        schema = fields(next(iter(content.values()))).get("schema", {}) if content else item.get("schema", {})
        if isinstance(schema, dict) and isinstance(item.get("description"), str):
            schema = {"description": item["description"][:1000], **schema}
        self._properties[argument] = schema
        if place == "path" or item.get("required") is True:
            self._required.append(argument)

    def _add_body(self, body: Mapping[str, Any], specification: Specification) -> None:
        """Its fields are parameters beside the others where it is a plain object, else it is one parameter."""
        content = fields(body.get("content"))
        forms = (_FORM, _MULTIPART)
        order = {kind: 0 if _is_json(kind) else 1 + forms.index(kind) if kind in forms else 3 for kind in content}
        self._body_type = kind = min(content, key=order.__getitem__, default="")
        if order.get(kind, 3) == 3:
            raise ToolDefinitionError(f"its request body of type {one_line(kind, 80) or 'nothing'} is not supported")
        schema = fields(content[kind]).get("schema", {})
        plain = specification.resolve(schema) if isinstance(schema, dict) else {}
        parts = fields(plain.get("properties"))
        if kind == _MULTIPART:
            parts = {name: self._part(name, specification.resolve(part), specification) for name, part in parts.items()}
        is_open = bool(plain.get("additionalProperties")) or plain.keys() & _NOT_PLAIN
        self._body_required = body.get("required") is True
        if not parts or parts.keys() & self._properties.keys() or (is_open and kind not in forms):
            self._body_name = "body" if "body" not in self._properties else "request_body"
            self._properties[self._body_name] = schema
            self._required += [self._body_name] if self._body_required else []
        else:
            self._body_fields = tuple(parts)
            self._properties |= parts
            self._required += items(plain.get("required")) if self._body_required else []

    def _part(self, name: str, schema: Mapping[str, Any], specification: Specification) -> Mapping[str, Any]:
        """A part of a multipart body. A file is text or a medium, of which the service gets the bytes."""
        one = specification.resolve(fields(schema.get("items"))) if schema.get("type") == "array" else schema
        if one.get("format") != "binary" and "contentMediaType" not in one:
            return schema
        self._files.add(name)
        file = {**one, "type": "string", "format": "binary"}
        return file if one is schema else {**schema, "items": file}

    def _body(self, given: Mapping[str, Any], headers: dict[str, bytes]) -> bytes:
        value = given.get(self._body_name) if self._body_type else None
        if self._body_fields is not None:
            value = {name: given[name] for name in self._body_fields if name in given}
            value = value if value or self._body_required else None
        if value is None:
            return b""
        if self._body_type == _MULTIPART:
            return _multipart(fields(value), self._files, headers)
        headers["content-type"] = b"application/json" if "*" in self._body_type else self._body_type.encode()
        if self._body_type != _FORM:
            return _json(value).encode()
        return "&".join(
            pair for name, part in fields(value).items() for pair in _pairs(_Parameter(name, name), part)
        ).encode()


def _simple(item: _Parameter, value: Any, written: Callable[[str], str]) -> str:
    """For a path or a header: `a,b`, `k,v` or `k=v`."""
    if item.as_json or not isinstance(value, list | dict):
        return written(_json(value) if item.as_json else _text(value))
    between = "=" if item.explode else ","
    pairs = [f"{written(str(key))}{between}{written(_text(part))}" for key, part in fields(value).items()]
    return ",".join(pairs or [written(_text(part)) for part in items(value)])


def _pairs(item: _Parameter, value: Any) -> list[str]:
    """`name=value` for a query or a form."""
    parts: list[tuple[str, list[Any]]] = [(item.name, value if isinstance(value, list) else [value])]
    explode = item.explode
    if item.as_json:
        parts = [(item.name, [_json(value)])]
    elif isinstance(value, dict) and item.style == "deepObject":
        parts = [(f"{item.name}[{key}]", part if isinstance(part, list) else [part]) for key, part in value.items()]
        explode = True
    elif isinstance(value, dict):
        flat = [one for pair in value.items() for one in pair]
        parts = [(str(key), [part]) for key, part in value.items()] if explode else [(item.name, flat)]
    texts = [(_quoted(name, safe="[]"), [_quoted(_text(part)) for part in part_list]) for name, part_list in parts]
    if explode:
        return [f"{name}={text}" for name, part_texts in texts for text in part_texts]
    return [f"{name}={_DELIMITERS.get(item.style, ',').join(part_texts)}" for name, part_texts in texts]


def _multipart(value: Mapping[str, Any], files: Collection[str], headers: dict[str, bytes]) -> bytes:
    boundary = token_hex(16)
    headers["content-type"] = f"{_MULTIPART}; boundary={boundary}".encode()
    pieces = []
    for name, part in value.items():
        label = name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
        for item in part if isinstance(part, list) else [part]:
            more = f'; filename="{label}"\r\ncontent-type: application/octet-stream' if name in files else ""
            more = "\r\ncontent-type: application/json" if isinstance(item, list | dict) else more
            data = item if isinstance(item, bytes) else _text(item).encode("utf-8", "surrogatepass")
            head = f'--{boundary}\r\ncontent-disposition: form-data; name="{label}"{more}\r\n\r\n'
            pieces.append(head.encode("utf-8", "replace") + data + b"\r\n")
    return b"".join([*pieces, f"--{boundary}--\r\n".encode()])


def _quoted(text: str, safe: str = "") -> str:
    return quote(text, safe=safe, errors="surrogateescape")


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return value if isinstance(value, str) else "" if value is None else _json(value)


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError):
        raise ArgumentError("binary data, NaN and infinity cannot be sent as JSON") from None


def _is_json(kind: str) -> bool:
    plain = kind.partition(";")[0].strip().lower()
    return plain in ("application/json", "*/*") or plain.endswith("+json")
