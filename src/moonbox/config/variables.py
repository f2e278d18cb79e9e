"""Environment variables in the configuration: `${NAME}` and `${NAME:-default}`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from moonbox.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["expand"]

_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def expand(value: Any, environ: Mapping[str, str], where: str) -> Any:
    """Replace the variables in every text: ${NAME}, or ${NAME:-default}; $${…} stays as ${…}. One pass only.

    `where` begins the messages: it names the file, and may name a table in it.
    """
    if isinstance(value, dict):
        return {
            key: expand(item, environ, f"{where}: {key}" if ":" not in where else f"{where}.{key}")
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [expand(item, environ, f"{where}[{index}]") for index, item in enumerate(value)]
    if not isinstance(value, str) or "${" not in value:
        return value

    def replacement(match: re.Match[str]) -> str:
        escaped = match.start() > 0 and value[match.start() - 1] == "$"
        return match[0] if escaped else _variable(match[1], environ, where)

    return _VARIABLE.sub(replacement, value).replace("$${", "${")


def _variable(text: str, environ: Mapping[str, str], where: str) -> str:
    """The value of what stands between the braces."""
    name, has_default, default = text.partition(":-")
    if not _NAME.fullmatch(name):
        raise ConfigError(f"{where}: '${{{text}}}' is not the name of an environment variable")
    value = environ.get(name)
    if value is not None and not (value == "" and has_default):
        return value
    if has_default:
        return default
    raise ConfigError(
        f"{where}: the environment variable {name} is not set; set it, or give a default: ${{{name}:-default}}"
    )
