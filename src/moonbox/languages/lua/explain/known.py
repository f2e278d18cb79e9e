"""What a script's environment holds, by name."""

from __future__ import annotations

__all__ = ["BASE", "LIBRARIES", "library_of"]

BASE = frozenset(
    {
        *("assert", "error", "ipairs", "next", "pairs", "pcall", "print", "rawequal", "rawget", "rawlen", "rawset"),
        *("select", "tonumber", "tostring", "type", "xpcall", "array", "null", "parallel", "docs", "tools"),
    }
)
"""Names that every script finds, beside the libraries."""

LIBRARIES: dict[str, frozenset[str]] = {
    "string": frozenset(
        {
            *("byte", "char", "find", "format", "gmatch", "gsub", "len", "lower", "match", "pack", "packsize"),
            *("rep", "reverse", "sub", "unpack", "upper"),
        }
    ),
    "table": frozenset({"concat", "insert", "move", "pack", "remove", "sort", "unpack"}),
    "math": frozenset(
        {
            *("abs", "acos", "asin", "atan", "ceil", "cos", "deg", "exp", "floor", "fmod", "huge", "log", "max"),
            *("maxinteger", "min", "mininteger", "modf", "pi", "rad", "random", "randomseed", "sin", "sqrt", "tan"),
            *("tointeger", "type", "ult"),
        }
    ),
    "utf8": frozenset({"char", "charpattern", "codepoint", "codes", "len", "offset"}),
    "os": frozenset({"clock", "date", "difftime", "time"}),
    "json": frozenset({"decode", "encode", "null", "parse", "stringify"}),
    "parallel": frozenset({"map", "settle"}),
}
"""Libraries and their members."""


def library_of(member: str) -> str | None:
    """The one library that has a member of that name; None when there is none or more than one."""
    found = [name for name, members in LIBRARIES.items() if member in members and name != "parallel"]
    return found[0] if len(found) == 1 else None
