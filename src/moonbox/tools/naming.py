"""Names of tools: which are valid, and how a script writes those that are not identifiers.

A tool's path is its namespace and name joined by a dot (`github.create_issue`). Any path works as
`tools["the path"]`. Each tool also has one alias made of Lua identifiers alone:

- every character outside `A-Z a-z 0-9 _` becomes `_` (`odd-name` is `odd_name`), dots stay as separators;
- a leading digit gets `_` in front, a Lua keyword gets `_` behind (`end` is `end_`);
- a tool whose path is also a namespace gets `_` behind (`github` beside `github.create_issue` is `github_`);
- where two would collide, the tool whose own path is a valid identifier keeps it and the others, in the
  order of their paths, get `_2`, `_3` and so on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from moonbox.errors import ToolDefinitionError
from moonbox.languages.language import RESERVED_WORDS

LONGEST_NAME = 128
_ODD = r"[^A-Za-z0-9_]"


def check_name(name: Any, what: str = "tool name") -> str:
    """The name, if a tool or namespace may have it."""
    if not isinstance(name, str):
        raise ToolDefinitionError(f"a {what} must be a string, not {type(name).__name__}")
    if not name:
        raise ToolDefinitionError(f"a {what} must not be empty")
    if len(name) > LONGEST_NAME:
        raise ToolDefinitionError(
            f"the {what} {name[:32]!r}… has {len(name)} characters; at most {LONGEST_NAME} are allowed"
        )
    if name != name.strip() or not name.isprintable():
        raise ToolDefinitionError(
            f"the {what} {name!r} has surrounding white space or a character that cannot be printed"
        )
    if "" in name.split("."):
        raise ToolDefinitionError(
            f"the {what} {name!r} has an empty part; dots separate parts, as in 'github.create_issue'"
        )
    return name


def safe_alias(path: str) -> str:
    """The path with each part made a Lua identifier, before collisions are resolved."""
    return ".".join(_safe_part(part) for part in path.split("."))


def aliases(paths: Iterable[str]) -> dict[str, str]:
    """The alias of each path; the same for the same set of paths, in whatever order they came."""
    ordered = sorted(set(paths))
    parts = [safe_alias(path).split(".") for path in ordered]
    spaces = {".".join(names[:count]) for names in parts for count in range(1, len(names))}
    exact = [path for path in ordered if safe_alias(path) == path and path not in spaces]
    chosen = {path: path for path in exact}
    taken = set(exact)
    last: dict[str, int] = {}  # of each name that several paths come to: the number that was given out last
    for path in ordered:
        if path in chosen:
            continue
        alias = safe_alias(path)
        base = alias + "_" if alias in spaces else alias
        candidate = base
        while candidate in taken or candidate in spaces:
            last[base] = last.get(base, 1) + 1
            candidate = f"{base}_{last[base]}"
        chosen[path] = candidate
        taken.add(candidate)
    return chosen


def _safe_part(part: str) -> str:
    safe = re.sub(_ODD, "_", part)
    if safe[0].isdigit():
        safe = "_" + safe
    return safe + "_" if safe in RESERVED_WORDS else safe
