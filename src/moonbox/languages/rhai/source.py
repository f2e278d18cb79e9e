"""The runtime's Lua files as one chunk."""

from __future__ import annotations

from pathlib import Path

__all__ = ["runtime_source"]

_FOLDER = Path(__file__).parent / "runtime"
# In the order in which they build on each other.
_FILES = (
    "values",
    "errors",
    "format",
    "sizes",
    "search",
    "operators",
    "comparison",
    "ranges",
    "access",
    "tools",
    "calls",
    "parallel",
    "core",
    "numbers",
    "strings",
    "sorting",
    "arrays",
    "maps",
    "blobs",
    "json",
    "state",
)


def runtime_source() -> str:
    """A Lua chunk that returns `function(host) ... return R end`."""
    parts = ["local parts={}"]
    for name in _FILES:
        text = (_FOLDER / f"{name}.lua").read_text(encoding="utf-8")
        parts.append(f"parts[#parts+1]=(function()\n{text}\nend)()")
    parts.append("return function(host) local R={} for i=1,#parts do parts[i](R,host.lib,host) end return R end")
    return "\n".join(parts)
