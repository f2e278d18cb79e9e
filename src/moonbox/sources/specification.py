"""An OpenAPI specification: how it is read, its operations, and its schemas as JSON Schemas of tools.

Only references within the document are followed. What is wrong with one operation is a ToolDefinitionError.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Any, NamedTuple

from moonbox.errors import MissingExtra, ToolDefinitionError, UsageError
from moonbox.schema.tree import pointed, with_parts, without_properties
from moonbox.wording import one_line
from moonbox.worker.chores import ChoreFailed, Chores

MAX_BYTES = 64 * 1024 * 1024
_METHODS = ("get", "head", "post", "put", "patch", "delete")
_MOST_OPERATIONS = 5_000
_DEEPEST = 60
_YAML_SECONDS, _YAML_MEMORY = 60.0, 2048 * 1024 * 1024
_DROPPED = frozenset({
    "example", "examples", "xml", "externalDocs", "discriminator", "nullable", "deprecated", "readOnly", "writeOnly",
    "$id", "$schema", "$anchor", "$dynamicAnchor", "$dynamicRef", "$comment",
})  # fmt: skip


def parse(data: bytes, name: str) -> Mapping[str, Any]:
    """A specification in JSON or YAML."""
    try:
        value = json.loads(data if data.lstrip()[:1] == b"{" else _yaml_as_json(data))
    except (ValueError, RecursionError) as problem:
        raise UsageError(f"{name} is neither JSON nor YAML: {one_line(str(problem), 200)}") from None
    if not isinstance(value, dict):
        raise UsageError(f"{name} is not an OpenAPI specification: it is not an object")
    return value


def _yaml_as_json(data: bytes) -> str:
    """By a process that may be killed."""
    if find_spec("yaml") is None:
        raise MissingExtra("pyyaml", "openapi", "a specification in YAML")
    try:
        with Chores("moonbox.sources.yaml_reading", packages=("yaml",), memory=_YAML_MEMORY) as chores:
            return str(chores.run("as_json", data, seconds=_YAML_SECONDS, answer=10 * len(data) + 200_000))
    except ChoreFailed as problem:
        raise ValueError(f"reading it {problem.reason}") from None


class HttpOperation(NamedTuple):
    """One operation, as the specification has it."""

    method: str
    path: str
    data: Mapping[str, Any]
    shared: Mapping[str, Any]
    """What its path says for all of its operations."""

    @property
    def where(self) -> str:
        return f"{self.method} {one_line(self.path, 200)}"

    @property
    def tags(self) -> tuple[str, ...]:
        return tuple(tag for tag in items(self.data.get("tags")) if isinstance(tag, str))


class Specification:
    """A document whose references can be followed."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        version = str(data.get("openapi", "no version" if "swagger" not in data else "swagger 2.0"))
        if not re.match(r"3\.[01]\b", version):
            raise UsageError(f"only OpenAPI 3.0 and 3.1 are supported; the specification has {one_line(version, 60)}")
        self.data, self.is_30 = data, version.startswith("3.0")

    def operations(self, problems: list[str]) -> Iterator[HttpOperation]:
        """The operations in their order; what is none is added to the problems."""
        count = 0
        for path, shared in fields(self.data.get("paths")).items():
            try:
                shared = self.resolve(shared)
            except ToolDefinitionError as problem:
                problems.append(f"{one_line(path, 200)}: {problem}")
                continue
            for method in (*_METHODS, "options", "trace"):
                operation = HttpOperation(method.upper(), path, fields(shared.get(method)), shared)
                count += method in shared
                if method in shared and (method not in _METHODS or not operation.data or count > _MOST_OPERATIONS):
                    problems.append(f"{operation.where}: it is not a valid operation, or one too many")
                elif method in shared:
                    yield operation

    def resolve(self, node: Any) -> Mapping[str, Any]:
        """The object itself, or the one that its references lead to."""
        for _ in range(_DEEPEST):
            if not isinstance(node, dict):
                break
            if "$ref" not in node:
                return node
            node = self.target(node["$ref"])
        raise ToolDefinitionError("it has something that is not an object, or a chain of references without an end")

    def target(self, reference: Any) -> Any:
        """What a reference within the document leads to."""
        if not isinstance(reference, str) or not reference.startswith("#/"):
            raise ToolDefinitionError(f"the reference '{one_line(str(reference), 120)}' leads out of the document")
        if (node := pointed(self.data, reference, None)) is None:
            raise ToolDefinitionError(f"the reference '{one_line(reference, 120)}' leads nowhere")
        return node


class Schemas:
    """The schemas of a specification as JSON Schemas, for requests or for responses; they are read as written, to be
    written anew.

    Each schema that is referred to is converted once and shared by all tools, under its name in `$defs`. Properties
    that are `left_out` (`readOnly`, `writeOnly`) are only for the other direction.
    """

    def __init__(self, specification: Specification, left_out: str) -> None:
        self._specification, self._left_out = specification, left_out
        self._names: dict[str, str] = {}
        self._definitions: dict[str, tuple[Any, dict[str, None]]] = {}

    def closed(self, schema: Any) -> Any:
        """The schema, with the definitions of everything that it refers to."""
        references: dict[str, None] = {}
        converted = self._convert(schema, references, 0)
        definitions: dict[str, Any] = {}
        queue = list(references)
        for reference in queue:  # the loop adds to it
            if reference not in self._definitions:
                within: dict[str, None] = {}
                self._definitions[reference] = self._convert(self._specification.target(reference), within, 0), within
            definitions[self._names[reference]], inner = self._definitions[reference]
            queue += [name for name in inner if name not in references]
            references |= inner
        return {**converted, "$defs": definitions} if definitions else converted

    def _convert(self, schema: Any, references: dict[str, None], depth: int) -> Any:
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, dict) or depth > _DEEPEST:
            raise ToolDefinitionError("it has a schema that is not an object, or is nested too deeply")
        said = {key: value for key, value in schema.items() if key not in _DROPPED and not key.startswith("x-")}
        if "$ref" in said:
            said["$ref"] = f"#/$defs/{self._name(said['$ref'], references)}"
        named = fields(said.get("properties"))
        dropped = {name for name, part in named.items() if fields(part).get(self._left_out)}
        said = without_properties(said, dropped)
        converted = with_parts(said, lambda part, _: self._convert(part, references, depth + 1))
        return _from_30(schema, converted) if self._specification.is_30 else converted

    def _name(self, reference: Any, references: dict[str, None]) -> str:
        """In `$defs`: the last part of the reference, or where that is taken all of it."""
        if not isinstance(reference, str):
            raise ToolDefinitionError("it has a reference that is not text")
        if reference not in self._names:
            last, whole = (re.sub(r"[^\w.-]", "_", part) for part in (reference.rpartition("/")[2], reference))
            self._names[reference] = whole if last in self._names.values() else last
        references[reference] = None
        return self._names[reference]


def _from_30(schema: Mapping[str, Any], converted: dict[str, Any]) -> dict[str, Any]:
    """What OpenAPI 3.0 writes differently from JSON Schema."""
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(converted.get(exclusive), bool) and converted.pop(exclusive) and bound in converted:
            converted[exclusive] = converted.pop(bound)
    if schema.get("nullable") is not True or converted.keys() <= {"description", "title"}:
        return converted
    return {"anyOf": [converted, {"type": "null"}]}


def fields(value: Any) -> dict[str, Any]:
    """An object of a document, or an empty one where it has something else."""
    return value if isinstance(value, dict) else {}


def items(value: Any) -> list[Any]:
    """The same for a list."""
    return value if isinstance(value, list) else []
