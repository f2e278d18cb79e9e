"""moonbox.toml: found, read, expanded, and handed out section by section."""

from __future__ import annotations

import os
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moonbox.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["FILE_NAME", "Config", "expand"]

FILE_NAME = "moonbox.toml"
SECTIONS = ("audit", "codemode", "knowledge", "limits", "mcp", "sandbox", "serve", "tools")
_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Config:
    """One configuration file. Each section is understood by the part of moonbox that it belongs to."""

    path: Path | None = None
    data: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def load(cls, path: str | os.PathLike[str] | None = None, *, environ: Mapping[str, str] | None = None) -> Config:
        """Read a file; without a path, moonbox.toml in this folder or the nearest above, or nothing."""
        found = Path(path) if path is not None else find()
        if found is None:
            return cls()
        try:
            text = found.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise ConfigError(f"there is no file {found}; `moonbox init` writes one") from None
        except IsADirectoryError:
            raise ConfigError(f"{found} is a folder; it must be a file") from None
        except UnicodeDecodeError as problem:
            line = problem.object.count(b"\n", 0, problem.start) + 1
            raise ConfigError(f"{found} is not UTF-8 text (line {line}); save it as UTF-8") from None
        except OSError as problem:
            raise ConfigError(f"{found} cannot be read: {problem.strerror}") from None
        return cls.parse(text, found, environ=environ)

    @classmethod
    def parse(cls, text: str, path: Path | None = None, *, environ: Mapping[str, str] | None = None) -> Config:
        where = path or Path(FILE_NAME)
        try:
            data = tomllib.loads(text)
        except tomllib.TOMLDecodeError as problem:
            raise ConfigError(f"{where} is not valid TOML: {problem}") from None
        for key in data:
            if key not in SECTIONS:
                raise ConfigError(f"{where} has an unknown section [{key}]; the sections are: {', '.join(SECTIONS)}")
        return cls(path, expand(data, os.environ if environ is None else environ, str(where)))

    @property
    def folder(self) -> Path:
        """What relative paths in the file are relative to."""
        return self.path.resolve().parent if self.path is not None else Path.cwd()

    def section(self, name: str) -> dict[str, Any]:
        """A top-level table; empty when it is not there."""
        value = self.data.get(name, {})
        if not isinstance(value, dict):
            raise ConfigError(f"[{name}] must be a table, not {value!r}")
        return dict(value)


def find(start: Path | None = None) -> Path | None:
    """The nearest moonbox.toml, from this folder upwards."""
    folder = (start or Path.cwd()).resolve()
    for candidate in (folder, *folder.parents):
        if (candidate / FILE_NAME).exists():
            return candidate / FILE_NAME
    return None


def expand(value: Any, environ: Mapping[str, str], path: str) -> Any:
    """Put environment variables in: ${NAME}, or ${NAME:-default}; $${…} stays as ${…}. One pass only."""
    if isinstance(value, dict):
        return {
            key: expand(item, environ, f"{path}: {key}" if ":" not in path else f"{path}.{key}")
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [expand(item, environ, f"{path}[{index}]") for index, item in enumerate(value)]
    if not isinstance(value, str) or "${" not in value:
        return value

    def put_in(match: re.Match[str]) -> str:
        if match.start() > 0 and value[match.start() - 1] == "$":
            return match.group(0)
        name, given, default = match.group(1).partition(":-")
        if not _NAME.fullmatch(name):
            raise ConfigError(f"{path}: ${{{match.group(1)}}} does not name an environment variable")
        found = environ.get(name)
        if found is None or (found == "" and given):
            if given:
                return default
            raise ConfigError(
                f"{path}: the environment variable {name} is not set; set it, or give a default: ${{{name}:-default}}"
            )
        return found

    return _VARIABLE.sub(put_in, value).replace("$${", "${")
