"""Variables of the environment in a configuration: their expansion, those that are not set, and those to keep secret.

A text with a variable that is not set stays as it is written, as an `Unset`. The code that reads such a value refuses
it, so that other parts of the configuration can be used.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from moonbox.errors import ConfigError
from moonbox.secrets import MIN_SECRET

# Compiled when they are first used: most commands need none of them.
_VARIABLE = r"\$\{([^}]*)\}"
_VARIABLE_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_SECRET_NAME = r"(?i)TOKEN|KEY|SECRET|PASS|PWD|AUTH|CRED|PAT\b|DSN|COOKIE|SESSION|PRIVATE"
_HOST_NAME = r"(?i)[a-z0-9-]+(\.[a-z0-9-]+)+(:\d+)?"
_PLACE_KEYS = frozenset({"path", "cwd", "command", "folders", "read", "write", "http", "host", "hosts", "python"})
"""Settings that name a place. Their values are shown to people and are not secrets."""
_ADDRESS_KEYS = frozenset({"url", "issuer", "client_metadata_url", "origins"})
_MOST_DEEP = 64
_LONGEST_WORD = 12
"""A word or a number shorter than this is not a secret, unless the variable's name says so."""


class Unset(str):
    """A text with a variable that is not set, as it is written."""

    __slots__ = ("problem",)
    problem: str
    """Which variable is not set, and where."""

    def __new__(cls, text: str, problem: str) -> Unset:
        value = super().__new__(cls, text)
        value.problem = problem
        return value


class Variables:
    """Expands variables of one environment, and remembers which of their values must stay secret."""

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self._environ = os.environ if environ is None else environ
        self.secrets: dict[str, str] = {}
        """Expanded values to keep secret, by the names of their variables."""

    def expand(self, value: Any, place: tuple[str | int, ...] = ()) -> Any:
        """Replace the variables in every text: ${NAME}, or ${NAME:-default}; $${…} stays as ${…}. One pass only.

        `place` is where the value stands: the keys and positions that lead to it. ConfigError if that is too deep.
        """
        if len(place) > _MOST_DEEP:
            raise ConfigError(f"{place_name(place[:3])} is nested too deeply")
        if isinstance(value, dict):
            return {key: self.expand(item, (*place, key)) for key, item in value.items()}
        if isinstance(value, list):
            return [self.expand(item, (*place, index)) for index, item in enumerate(value)]
        if isinstance(value, str) and "\0" in value:
            raise ConfigError(f"{place_name(place)} contains the character NUL")
        if not isinstance(value, str) or "${" not in value:
            return value
        missing: list[str] = []

        def replacement(match: re.Match[str]) -> str:
            escaped = match.start() > 0 and value[match.start() - 1] == "$"
            return match[0] if escaped else self._value(match[1], place, missing)

        expanded = re.sub(_VARIABLE, replacement, value).replace("$${", "${")
        if not missing:
            return expanded
        name = missing[0]
        return Unset(
            value,
            f"{place_name(place)}: the environment variable {name} is not set; "
            f"set it, or give a default: ${{{name}:-default}}",
        )

    def _value(self, text: str, place: tuple[str | int, ...], missing: list[str]) -> str:
        """The value of what stands between the braces."""
        name, has_default, default = text.partition(":-")
        if not re.fullmatch(_VARIABLE_NAME, name):
            raise ConfigError(f"{place_name(place)}: '${{{text}}}' is not the name of an environment variable")
        value = self._environ.get(name)
        if value is not None and not (value == "" and has_default):
            if is_secret(name, value, place):
                self.secrets[name] = value
            return value
        if not has_default:
            missing.append(name)
        return default


def unset_texts(value: Any) -> Iterator[Unset]:
    """Every text with a variable that is not set, anywhere in a value."""
    if isinstance(value, Unset):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from unset_texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from unset_texts(item)


def unset_problem(value: Any) -> str | None:
    """Why a value cannot be used: the first variable in it that is not set."""
    text = next(unset_texts(value), None)
    return None if text is None else text.problem


def place_name(place: Sequence[str | int]) -> str:
    """`[mcp.servers.github] args[1]`: the table, and the key in it."""
    names = [str(part) for part in place if not isinstance(part, int)]
    positions = "".join(f"[{part}]" for part in place if isinstance(part, int))
    if not names:
        return positions
    table = ".".join(names[:-1])
    return f"[{table}] {names[-1]}{positions}" if table else f"{names[-1]}{positions}"


def is_secret_name(name: str) -> bool:
    """Whether a variable, option or header of that name holds a secret, as far as its name tells."""
    return re.search(_SECRET_NAME, name) is not None


def is_secret(name: str, value: str, place: tuple[str | int, ...]) -> bool:
    """Whether the value of a variable is kept out of everything that is shown and recorded.

    Short words, paths and addresses are not secrets: replacing them would damage ordinary results.
    """
    key = next((part for part in reversed(place) if not isinstance(part, int)), "")
    if len(value) < MIN_SECRET or key in _PLACE_KEYS:
        return False
    if is_secret_name(name):
        return True
    if (value.isalpha() or value.isdigit()) and len(value) < _LONGEST_WORD:
        return False
    if key in _ADDRESS_KEYS and re.fullmatch(_HOST_NAME, value):
        return False
    return not (_is_plain_address(value) or os.path.exists(value))  # noqa: PTH110 - any text, not only a path


def _is_plain_address(value: str) -> bool:
    """An address without a password and without a query."""
    try:
        parts = urlsplit(value)
    except ValueError:
        return False
    return bool(parts.scheme and parts.hostname) and not (parts.query or parts.username or parts.password)
