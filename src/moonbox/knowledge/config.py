"""The knowledge base that the section [knowledge] describes: its store, its sources and its embedder.

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

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from moonbox.config.file import resolve_path
from moonbox.config.reader import check_keys, read, schema
from moonbox.config.sections import DEFAULT_STORE, SOURCE_NAME, KnowledgeTable
from moonbox.config.variables import unset_problem
from moonbox.errors import ConfigError
from moonbox.knowledge.records import Connector, EmbeddingError, KnowledgeError
from moonbox.suggest import unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from moonbox.knowledge.embedding import Embedder, OpenAIEmbeddings

PROVIDERS = ("openai", "local")


class ConnectorKind(Protocol):
    """How a source of one kind is made from its table in the configuration."""

    def build(self, options: Mapping[str, Any], base_dir: Path, where: str) -> Connector:
        """The connector. `where` names the table in messages of ConfigError."""
        ...

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the table without its key `connector`."""
        ...


@dataclass(frozen=True, slots=True)
class KnowledgeConfig:
    """The whole section, with its sources made."""

    path: Path = DEFAULT_STORE
    sources: Mapping[str, Connector] = field(default_factory=dict)
    embeddings: OpenAIEmbeddings | None = None
    local_embeddings: bool = False
    unset_embeddings: str | None = None
    """Why the configured embedder cannot be used: a variable in its table is not set."""

    @classmethod
    def from_dict(
        cls, data: Mapping[str, Any], base_dir: Path, *, connectors: Mapping[str, ConnectorKind] | None = None
    ) -> KnowledgeConfig:
        """From the table; relative paths are relative to `base_dir`. Unknown keys are refused.

        `connectors` replaces the built-in kinds; extend it as `{**builtin_connectors(), "mine": kind}`.
        """
        table = read(KnowledgeTable, data, "knowledge", later=("sources", "embeddings"))
        kinds = builtin_connectors() if connectors is None else connectors
        sources: dict[str, Connector] = {}
        for name, options in data.get("sources", {}).items():
            section = f"knowledge.sources.{name}"
            if (problem := unset_problem(options)) is not None:
                sources[name] = Unusable(partial(KnowledgeError, problem))
                continue
            kind, rest = _choice("connector", options, kinds, section)
            sources[name] = kinds[kind].build(rest, base_dir, section)
        unset = unset_problem(data.get("embeddings"))
        embeddings, local = _embeddings(table.embeddings if unset is None else None)
        return cls(resolve_path(base_dir.absolute(), table.path), sources, embeddings, local, unset)

    def embedder(self) -> Embedder | None:
        """The configured embedder, or None."""
        if self.unset_embeddings is not None:
            return Unusable(partial(EmbeddingError, self.unset_embeddings))
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
        sources = [_tagged("connector", name, kind.schema()) for name, kind in kinds.items()]
        whole = schema(KnowledgeTable)
        whole["properties"]["embeddings"] |= {"anyOf": [{"oneOf": providers}, {"type": "null"}]}
        whole["properties"]["sources"] |= {
            "propertyNames": {"pattern": f"^{SOURCE_NAME.pattern}$"},
            "additionalProperties": {"oneOf": sources},
        }
        return whole


def builtin_connectors() -> dict[str, ConnectorKind]:
    """The kinds of sources that come with moonbox."""
    from moonbox.knowledge.connectors.filesystem import Filesystem
    from moonbox.knowledge.connectors.git import Git
    from moonbox.knowledge.connectors.web import Web

    return {"filesystem": _Kind(Filesystem), "git": _Kind(Git), "web": _Kind(Web)}


@dataclass(frozen=True, slots=True)
class _Kind:
    """A connector that is a closed dataclass of its options."""

    connector: type[Any]

    def build(self, options: Mapping[str, Any], base_dir: Path, where: str) -> Connector:
        made: Any = read(self.connector, options, where)
        return replace(made, path=resolve_path(base_dir.absolute(), made.path)) if hasattr(made, "path") else made  # type: ignore[no-any-return]  # each has `scan`

    def schema(self) -> dict[str, Any]:
        return schema(self.connector)


@dataclass(frozen=True, slots=True)
class Unusable:
    """Stands for a source, an embedder or a knowledge base with a variable that is not set: its use raises an error.

    The documents of such a source stay, and keyword search does without such an embedder. It has no name, because a
    sync forgets the vectors of models with other names.
    """

    error: Callable[[], Exception]

    def scan(self, *_: Any) -> NoReturn:
        raise self.error()

    embed = warm = search = get = sources = scan
    name = property(scan)


def _embeddings(table: Mapping[str, Any] | None) -> tuple[OpenAIEmbeddings | None, bool]:
    if table is None:
        return None, False
    section = "knowledge.embeddings"
    provider, options = _choice("provider", table, PROVIDERS, section)
    if provider == "local":
        check_keys(options, ["provider"], section)
        return None, True
    from moonbox.knowledge.embedding import OpenAIEmbeddings

    return read(OpenAIEmbeddings, options, section), False


def _choice(
    key: str, table: Mapping[str, Any], known: Mapping[str, Any] | tuple[str, ...], section: str
) -> tuple[str, dict[str, Any]]:
    """The key that says which kind of table this is, and the rest of the table."""
    options = dict(table)
    chosen = options.pop(key, None)
    if chosen is None:
        raise ConfigError(f"[{section}] {key} is missing; choose one of: {', '.join(known)}")
    if not isinstance(chosen, str):
        raise ConfigError(f"[{section}] {key} must be a string, not {chosen!r}")
    if chosen not in known:
        raise ConfigError(f"[{section}] {unknown(key, chosen, known)}")
    return chosen, options


def _tagged(key: str, value: str, inner: dict[str, Any]) -> dict[str, Any]:
    """A schema with an additional key of a fixed value, which distinguishes the alternatives."""
    return {
        **inner,
        "properties": {key: {"const": value}, **inner.get("properties", {})},
        "required": [key, *inner.get("required", [])],
    }
