"""The `[knowledge]` section of the configuration.

[knowledge]
path = ".moonbox/knowledge.db"

[knowledge.embeddings]            # only for semantic and hybrid search
provider = "openai"               # or "local"
url = "http://localhost:11434/v1"
model = "nomic-embed-text"

[knowledge.sources.handbook]
connector = "filesystem"          # or "git", "web"
path = "docs"
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from moonbox.errors import ConfigError
from moonbox.knowledge.contract import read, schema, suggestion

if TYPE_CHECKING:
    from collections.abc import Callable

    from moonbox.knowledge.connectors.fetching import Fetch
    from moonbox.knowledge.embedding import Embedder, OpenAIEmbeddings
    from moonbox.knowledge.items import Connector

__all__ = ["ConnectorKind", "KnowledgeConfig", "builtin_connectors"]

DEFAULT_PATH = Path(".moonbox") / "knowledge.db"
PROVIDERS = ["openai", "local"]
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")

T = TypeVar("T")


class ConnectorKind(Protocol):
    """How a source of one kind is made from its table in the configuration."""

    def build(self, options: Mapping[str, Any], base_dir: Path, where: str) -> Connector:
        """The connector; `where` names the table in errors, which are ConfigErrors."""
        ...

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the table without its key `connector`."""
        ...


@dataclass(frozen=True, slots=True)
class KnowledgeConfig:
    """The whole section, checked."""

    path: Path = DEFAULT_PATH
    sources: Mapping[str, Connector] = field(default_factory=dict)
    embeddings: OpenAIEmbeddings | None = None
    local_embeddings: bool = False

    @classmethod
    def from_dict(
        cls, data: Mapping[str, Any], base_dir: Path, *, connectors: Mapping[str, ConnectorKind] | None = None
    ) -> KnowledgeConfig:
        """Read the section; relative paths are relative to `base_dir`. Unknown keys are refused.

        `connectors` replaces the built-in kinds; extend it as `{**builtin_connectors(), "mine": kind}`.
        """
        if not isinstance(data, Mapping):
            raise ConfigError(f"knowledge must be a table, not {type(data).__name__}")
        for key in data:
            if key not in ("path", "embeddings", "sources"):
                raise ConfigError(
                    f"knowledge: unknown key {key!r}; {suggestion(key, ['path', 'embeddings', 'sources'])}"
                )
        kinds = builtin_connectors() if connectors is None else connectors
        path, tables = data.get("path", str(DEFAULT_PATH)), data.get("sources", {})
        if not isinstance(path, str) or not path:
            raise ConfigError(f"knowledge.path must be a file's path, not {path!r}")
        if not isinstance(tables, Mapping):
            raise ConfigError(f"knowledge.sources must be a table of tables, not {type(tables).__name__}")
        sources = {name: _source(name, table, base_dir, kinds) for name, table in tables.items()}
        embeddings, local = _embeddings(data.get("embeddings"))
        return cls(_resolved(Path(path), base_dir), sources, embeddings, local)

    def embedder(self) -> Embedder | None:
        """What turns texts into vectors, when the configuration names something."""
        if self.local_embeddings:
            from moonbox.knowledge.embedding import LocalEmbedder

            return LocalEmbedder()
        if self.embeddings is not None:
            from moonbox.knowledge.embedding import OpenAIEmbedder

            return OpenAIEmbedder(self.embeddings)
        return None

    @staticmethod
    def schema(connectors: Mapping[str, ConnectorKind] | None = None) -> dict[str, Any]:
        """The JSON Schema of the section."""
        from moonbox.knowledge.embedding import OpenAIEmbeddings

        kinds = builtin_connectors() if connectors is None else connectors
        local = {"type": "object", "properties": {}, "additionalProperties": False}
        providers = [_tagged("provider", "openai", schema(OpenAIEmbeddings)), _tagged("provider", "local", local)]
        return {
            "type": "object",
            "properties": {
                "path": {"type": "string", "default": str(DEFAULT_PATH), "description": "The file of the store."},
                "embeddings": {"oneOf": providers},
                "sources": {
                    "type": "object",
                    "propertyNames": {"pattern": f"^{NAME.pattern}$"},
                    "additionalProperties": {
                        "oneOf": [_tagged("connector", name, kind.schema()) for name, kind in kinds.items()]
                    },
                },
            },
            "additionalProperties": False,
        }


def builtin_connectors(fetch: Fetch | None = None) -> dict[str, ConnectorKind]:
    """The kinds of sources that come with moonbox; `fetch` gets pages in place of our own small client."""
    from moonbox.knowledge.connectors.filesystem import Filesystem
    from moonbox.knowledge.connectors.git import Git
    from moonbox.knowledge.connectors.web import Web, WebOptions

    return {
        "filesystem": _Kind(Filesystem, lambda options, base: replace(options, path=_resolved(options.path, base))),
        "git": _Kind(Git, lambda options, base: replace(options, path=_resolved(options.path, base))),
        "web": _Kind(WebOptions, lambda options, _: Web(options, fetch=fetch)),
    }


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind whose table is a closed dataclass."""

    options: type[Any]
    make: Callable[[Any, Path], Connector]

    def build(self, options: Mapping[str, Any], base_dir: Path, where: str) -> Connector:
        return self.make(read(self.options, options, where), base_dir)

    def schema(self) -> dict[str, Any]:
        return schema(self.options)


def _source(name: Any, table: Any, base_dir: Path, kinds: Mapping[str, ConnectorKind]) -> Connector:
    where = f"knowledge.sources.{name}"
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise ConfigError(f"{where}: a source's name must be letters, digits, - and _, at most 64 of them")
    if not isinstance(table, Mapping):
        raise ConfigError(f"{where} must be a table, not {type(table).__name__}")
    options = dict(table)
    kind = options.pop("connector", None)
    if kind is None:
        raise ConfigError(f"{where}.connector is missing; choose one of: {', '.join(kinds)}")
    if not isinstance(kind, str) or kind not in kinds:
        raise ConfigError(f"{where}: unknown connector {kind!r}; {suggestion(kind, list(kinds))}")
    return kinds[kind].build(options, base_dir, where)


def _embeddings(table: Any) -> tuple[OpenAIEmbeddings | None, bool]:
    if table is None:
        return None, False
    where = "knowledge.embeddings"
    if not isinstance(table, Mapping):
        raise ConfigError(f"{where} must be a table, not {type(table).__name__}")
    options = dict(table)
    provider = options.pop("provider", None)
    if provider == "openai":
        from moonbox.knowledge.embedding import OpenAIEmbeddings

        return read(OpenAIEmbeddings, options, where), False
    if provider != "local":
        problem = "is missing" if provider is None else f"must not be {provider!r}"
        raise ConfigError(f"{where}.provider {problem}; choose one of: {', '.join(PROVIDERS)}")
    if options:
        raise ConfigError(f'{where}: unknown key {next(iter(options))!r}; provider = "local" takes no others')
    return None, True


def _resolved(path: Path, base_dir: Path) -> Path:
    return base_dir.absolute() / path.expanduser()


def _tagged(key: str, value: str, inner: dict[str, Any]) -> dict[str, Any]:
    """A schema with one more key of a fixed value, which tells the alternatives apart."""
    return {
        **inner,
        "properties": {key: {"const": value}, **inner.get("properties", {})},
        "required": [key, *inner.get("required", [])],
    }
