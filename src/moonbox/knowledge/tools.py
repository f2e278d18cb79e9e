"""The tools `search`, `get` and `sources`: a knowledge base for models and scripts."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from moonbox.errors import ArgumentError, ToolError, UsageError
from moonbox.knowledge.errors import DocumentNotFound, KnowledgeError
from moonbox.knowledge.search import MAX_LIMIT
from moonbox.tools.tool import Tool

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moonbox.knowledge.base import KnowledgeBase

__all__ = ["knowledge_tools"]


def knowledge_tools(base: KnowledgeBase) -> list[Tool]:
    """The three tools over one knowledge base; they only read."""

    def search(arguments: dict[str, Any]) -> list[dict[str, Any]]:
        with _as_tool_errors():
            return [hit.to_dict() for hit in base.search(**arguments)]

    def get(arguments: dict[str, Any]) -> dict[str, Any]:
        with _as_tool_errors():
            return base.get(arguments["id"]).to_dict()

    def sources(_: dict[str, Any]) -> list[dict[str, Any]]:
        with _as_tool_errors():
            return [source.to_dict() for source in base.sources()]

    return [
        Tool.from_schema(
            name="search",
            description=(
                "Search the user's own documents. Documents with more of the words, and with rarer ones, come first; "
                '"quotes" make a phrase, -word excludes, pre* is a prefix. `get` reads a whole document.'
            ),
            parameters=_SEARCH,
            returns={"type": "array", "items": _ROW},
            call=search,
            hints={"read_only": True, "idempotent": True},
        ),
        Tool.from_schema(
            name="get",
            description="One document by the id that search gave. The texts of its chunks, joined, are its body.",
            parameters={
                "type": "object",
                "properties": {"id": {"type": "string", "description": '"source:source_id", as search gives it.'}},
                "required": ["id"],
                "additionalProperties": False,
            },
            returns=_DOCUMENT,
            call=get,
            hints={"read_only": True, "idempotent": True},
        ),
        Tool.from_schema(
            name="sources",
            description="Where the documents come from, how many each source has, and when it was last synchronised.",
            parameters={"type": "object", "properties": {}, "additionalProperties": False},
            returns={"type": "array", "items": _SOURCE},
            call=sources,
            hints={"read_only": True, "idempotent": True},
        ),
    ]


@contextmanager
def _as_tool_errors() -> Iterator[None]:
    """Errors of the knowledge base as a script sees them."""
    try:
        yield
    except UsageError as error:
        raise ArgumentError(str(error)) from error
    except DocumentNotFound as error:
        raise ToolError(str(error), code="not_found") from error
    except KnowledgeError as error:
        raise ToolError(str(error), code="knowledge_error", retryable=True) from error


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


_TEXT = {"type": "string"}
_TEXT_OR_NULL = {"type": ["string", "null"]}
_SEARCH = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "What to look for."},
        "mode": {
            "type": "string",
            "enum": ["keyword", "semantic", "hybrid"],
            "default": "keyword",
            "description": "By words, by meaning (when embeddings are configured), or both.",
        },
        "limit": {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": 12},
        "source": {"type": ["string", "null"], "default": None, "description": "Only this source."},
    },
    "required": ["query"],
    "additionalProperties": False,
}
_ROW = _object(
    id=_TEXT,
    score={"type": "number"},
    source=_TEXT,
    source_id=_TEXT,
    title=_TEXT,
    snippet=_TEXT,
    source_url=_TEXT_OR_NULL,
    updated_at=_TEXT_OR_NULL,
)
_DOCUMENT = _object(
    id=_TEXT,
    source=_TEXT,
    source_id=_TEXT,
    title=_TEXT,
    source_url=_TEXT_OR_NULL,
    updated_at=_TEXT_OR_NULL,
    author=_TEXT_OR_NULL,
    metadata={"type": "object"},
    chunks={"type": "array", "items": _object(position={"type": "integer"}, heading=_TEXT, text=_TEXT)},
)
_SOURCE = _object(
    name=_TEXT,
    configured={"type": "boolean"},
    healthy={"type": "boolean"},
    documents={"type": "integer"},
    last_sync=_TEXT_OR_NULL,
    notes={"type": "array", "items": _TEXT},
)
