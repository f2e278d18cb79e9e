"""The section [knowledge]: the store, what turns texts into vectors, and one table for each source."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from moonbox.config.reader import CLOSED, read
from moonbox.errors import ConfigError

__all__ = ["DEFAULT_PATH", "SOURCE_NAME", "KnowledgeTable"]

DEFAULT_PATH = Path(".moonbox") / "knowledge.db"
SOURCE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


@dataclass(frozen=True, kw_only=True)
class KnowledgeTable:
    """The section [knowledge]; its providers and connectors read their own tables with the same reader."""

    __pydantic_config__: ClassVar = CLOSED

    path: Path = DEFAULT_PATH
    """The file of the store."""
    embeddings: Mapping[str, Any] | None = None
    """What turns texts into vectors: the table `[knowledge.embeddings]`. Without it, search is by keywords."""
    sources: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """One table for each source: `[knowledge.sources.<name>]`."""

    def __post_init__(self) -> None:
        if str(self.path) in ("", "."):
            raise ConfigError("path must name a file")
        for name in self.sources:
            if not SOURCE_NAME.fullmatch(name):
                raise ConfigError(
                    f"the source name '{name}' is invalid: use 1 to 64 letters, digits, - and _, "
                    "beginning with a letter or digit"
                )

    @classmethod
    def from_dict(cls, data: Any) -> KnowledgeTable:
        """Refuses unknown keys and wrong types."""
        return read(cls, data, "knowledge")
