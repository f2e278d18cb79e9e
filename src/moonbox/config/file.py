"""The configuration file: found, read, its variables expanded, and handed out section by section."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct, field

from moonbox.config.variables import Variables, unset_texts
from moonbox.errors import ConfigError
from moonbox.secrets import SecretRedactor
from moonbox.suggest import unknown

FILE_NAME = "moonbox.toml"
SECTIONS = (
    *("audit", "cluster", "codemode", "journal", "knowledge", "limits", "llm"),
    *("mcp", "openapi", "sandbox", "serve", "sql", "tools"),
)

T = TypeVar("T")


class Config(Struct, frozen=True):
    """One configuration file, with its variables expanded; those that are not set are refused where they are read."""

    path: Path | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    written: Mapping[str, Any] = field(default_factory=dict)
    """As the file has it, before variables were expanded."""
    secrets: Mapping[str, str] = field(default_factory=dict)
    """Secret values of variables, by name: kept out of results, trails, logs and messages."""

    def __repr__(self) -> str:
        return f"Config(path={str(self.path)!r})"  # the values of variables may be secrets

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("path", self.path)]

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str] | None = None,
        *,
        environ: Mapping[str, str] | None = None,
        any_owner: bool = False,
    ) -> Config:
        """Read a file. Without a path: the nearest moonbox.toml, from this folder upwards, or no file at all.

        A file that another user owns or can write is refused, unless `any_owner` is set.
        """
        chosen = Path(path) if path is not None else find()
        if chosen is None:
            return cls()
        text = _read_text(chosen)
        if not any_owner and (problem := ownership_problem(chosen)) is not None:
            raise ConfigError(f"{problem}; nothing in it was used")
        return cls.parse(text, chosen, environ=environ)

    @classmethod
    def parse(cls, text: str, path: Path | None = None, *, environ: Mapping[str, str] | None = None) -> Config:
        """The same for text that was read already; `path` says where it is from."""
        import tomllib  # here and below: most folders have no such file, and these are slow to load

        name = _display_name(path) or FILE_NAME
        try:
            data = tomllib.loads(text)
        except (ValueError, RecursionError) as problem:  # also for an integer of too many digits
            raise ConfigError(f"{name} is not valid TOML: {problem}") from None
        for key in data:
            if key not in SECTIONS:
                raise ConfigError(f"{name}: {unknown('section', key, SECTIONS)}")
        variables = Variables(environ)
        try:
            return cls(path, variables.expand(data), data, variables.secrets)
        except ConfigError as problem:
            raise ConfigError(f"{name}: {problem}") from None

    @property
    def folder(self) -> Path:
        """The folder that relative paths in the file start from."""
        return self.path.resolve().parent if self.path is not None else Path.cwd()

    def section(self, name: str, keys: Iterable[str] | None = None) -> dict[str, Any]:
        """A top-level table; empty if it is missing. With `keys`, no others may be in it."""
        from moonbox.config.reader import check_keys, table

        with self.naming_file():
            section = table(self.data.get(name, {}), name)
            if keys is not None:
                check_keys(section, keys, name)
        return section

    def read(self, kind: type[T], name: str) -> T:
        """A section as its settings model; ConfigError names the file, the table and each key that is wrong."""
        from moonbox.config.reader import read

        with self.naming_file():
            return read(kind, self.data.get(name, {}), name)

    def with_changes(self, **sections: Mapping[str, Any]) -> Config:
        """A copy in which these keys of these sections have other values."""
        changed = {name: {**self.section(name), **changes} for name, changes in sections.items()}
        return Config(self.path, {**self.data, **changed}, self.written, self.secrets)

    @property
    def unset(self) -> tuple[str, ...]:
        """For each text with a variable that is not set: which one, and where."""
        return tuple(dict.fromkeys(text.problem for text in unset_texts(self.data)))

    @contextlib.contextmanager
    def naming_file(self) -> Iterator[None]:
        """Put the file's name before each line of a ConfigError, once, and no secret into it."""
        try:
            yield
        except ConfigError as problem:
            start = f"{_display_name(self.path)}: " if self.path is not None else ""
            lines = str(SecretRedactor(self.secrets)(str(problem))).splitlines()
            raise ConfigError("\n".join(f"{start}{line.removeprefix(start)}" for line in lines)) from None


def resolve_path(folder: Path, path: str | os.PathLike[str]) -> Path:
    """A path of the configuration, which starts from the folder of its file; `~` is a user's home folder."""
    return folder / os.path.expanduser(path)  # noqa: PTH111 - `Path.expanduser` fails for an unknown user


def find(start: Path | None = None) -> Path | None:
    """The nearest moonbox.toml, from this folder upwards."""
    folder = (start or Path.cwd()).resolve()
    for candidate in (folder, *folder.parents):
        if (candidate / FILE_NAME).exists():
            return candidate / FILE_NAME
    return None


def _read_text(path: Path) -> str:
    name = _display_name(path)
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(f"the file '{name}' does not exist; `moonbox init` creates one") from None
    except IsADirectoryError:
        raise ConfigError(f"'{name}' is a folder, not a file") from None
    except UnicodeDecodeError as problem:
        line = problem.object.count(b"\n", 0, problem.start) + 1
        raise ConfigError(f"'{name}' is not UTF-8 (line {line}); save it as UTF-8") from None
    except OSError as problem:
        raise ConfigError(f"'{name}' cannot be read: {problem.strerror}") from None


def _display_name(path: Path | None) -> str:
    """The path as messages show it: relative where it is below the working folder."""
    if path is None:
        return ""
    with contextlib.suppress(ValueError, OSError):
        return str(path.absolute().relative_to(Path.cwd()))
    return str(path)


def ownership_problem(path: Path) -> str | None:
    """Why other users may have written a file, and what to do; None when only this user and root can write it.

    The folders above count too: a user who can write one of them can put another file in its place.
    """
    if not hasattr(os, "geteuid"):
        return None
    real = Path(os.path.realpath(path))
    for place in (real, *real.parents):
        try:
            info = place.stat()
        except OSError:
            return None  # opening the file says what is wrong
        what = f"'{path}'" if place == real else f"the folder '{place}'"
        if info.st_uid not in (os.geteuid(), 0):
            return f"{what} belongs to {_user(info.st_uid)}; look at it, and `moonbox trust` the folder if you agree"
        if _others_can_write(info):
            return f"other users can write {what}; take that away with: chmod go-w '{place}'"
    return None


def _others_can_write(info: os.stat_result) -> bool:
    if stat.S_ISDIR(info.st_mode) and info.st_mode & stat.S_ISVTX:
        return False  # as in /tmp: others cannot replace what is not theirs
    if info.st_mode & stat.S_IWOTH:
        return True
    return bool(info.st_mode & stat.S_IWGRP) and info.st_gid not in (os.getegid(), 0)


def _user(uid: int) -> str:
    try:
        import pwd

        return f"the user '{pwd.getpwuid(uid).pw_name}'"
    except (ImportError, KeyError):
        return f"the user {uid}"
