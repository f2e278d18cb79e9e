"""Docstrings read for what a model needs: the text, and what each parameter means.

Google, NumPy and Sphinx forms are understood, mixed and sloppy ones too: what does not look like a
section is text, and nothing here ever fails.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field

__all__ = ["Docstring", "read_docstring"]

_PARAMETERS = {"args", "arguments", "parameters", "params", "keyword-args", "keyword-arguments", "other-parameters"}
_OTHERS = {
    *("returns", "return", "yields", "yield", "receives", "raises", "raise", "except", "exceptions", "warns"),
    *("example", "examples", "usage", "note", "notes", "see-also", "warning", "warnings", "todo", "references"),
    *("attributes", "methods"),
}
_GOOGLE = re.compile(r"(?P<name>[A-Za-z]+(?: [A-Za-z]+)?)\s*:\s*")
_RULE = re.compile(r"-{3,}\s*|={3,}\s*")
_GOOGLE_ENTRY = re.compile(
    r"(?:[-*]\s+)?`{0,2}(?P<name>\*{0,2}\w+)`{0,2}\s*(?:\((?P<type>.*?)\))?\s*(?::(?!\w)|\s[-–—]\s)\s*(?P<text>.*)"
)
_NUMPY_ENTRY = re.compile(r"(?P<names>\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?")
_FIELD = re.compile(r"[:@](?P<kind>[a-z]+)(?P<rest>(?:\s+[^:]+)?):(?:\s+(?P<text>.*))?")
_PARAMETER_FIELDS = {"param", "parameter", "arg", "argument", "key", "keyword"}
_FIELDS = {
    *_PARAMETER_FIELDS,
    *("type", "return", "returns", "rtype", "raise", "raises", "except", "exception", "yield", "yields"),
}


@dataclass(frozen=True, slots=True)
class Docstring:
    """The text before the first section, and each parameter's description."""

    text: str = ""
    parameters: dict[str, str] = field(default_factory=dict)


def read_docstring(doc: str | None) -> Docstring:
    """Split a docstring into its text and its parameters."""
    if not doc:
        return Docstring()
    lines = inspect.cleandoc(doc).splitlines()
    found: dict[str, str] = {}
    end = len(lines)
    index = 0
    while index < len(lines):
        body = _section(lines, index)
        if body is None:
            index += 1
            continue
        end = min(end, index)
        reader, start, stop = body
        for name, text in reader(lines[start:stop]):
            found.setdefault(name.lstrip("*"), text)
        index = max(stop, index + 1)
    return Docstring("\n".join(lines[:end]).strip(), found)


def _section(lines: list[str], index: int):  # type: ignore[no-untyped-def]
    """The reader, first line and end of the section that begins at this line, if one does."""
    line = lines[index]
    if not line or line[0].isspace():
        return None
    if (match := _FIELD.fullmatch(line)) and match["kind"] in _FIELDS:
        return _read_field, index, _end_of_field(lines, index)
    underlined = index + 1 < len(lines) and _RULE.fullmatch(lines[index + 1]) is not None
    heading = line.strip().lower().replace(" ", "-") if underlined else _google_heading(lines, index)
    if heading in _PARAMETERS:
        start = index + 2 if underlined else index + 1
        stop = _next_heading(lines, start) if underlined else _end_of_block(lines, start)
        return (_read_numpy if underlined else _read_google), start, stop
    if heading in _OTHERS:
        start = index + 2 if underlined else index + 1
        return _read_nothing, start, (_next_heading(lines, start) if underlined else _end_of_block(lines, start))
    return None


def _google_heading(lines: list[str], index: int) -> str | None:
    match = _GOOGLE.fullmatch(lines[index])
    following = next((line for line in lines[index + 1 :] if line.strip()), "")
    # A docstring that is one section has lost that section's indentation when it was cleaned.
    alone = index == 0 and _GOOGLE_ENTRY.fullmatch(following) is not None
    if match is None or not (following[:1].isspace() or alone):
        return None
    return match["name"].lower().replace(" ", "-")


def _end_of_block(lines: list[str], start: int) -> int:
    """The first line from `start` that is neither blank nor indented (or, where none is indented, a heading)."""
    if start < len(lines) and lines[start][:1].strip():
        return next((at for at in range(start, len(lines)) if _GOOGLE.fullmatch(lines[at])), len(lines))
    return next((at for at in range(start, len(lines)) if lines[at].strip() and not lines[at][0].isspace()), len(lines))


def _end_of_field(lines: list[str], index: int) -> int:
    for at in range(index + 1, len(lines)):
        line = lines[at]
        if not line.strip() or line[0] in ":@":
            return at
        if not line[0].isspace() and _GOOGLE.fullmatch(line):
            return at
    return len(lines)


def _next_heading(lines: list[str], start: int) -> int:
    return next((at for at in range(start, len(lines) - 1) if _RULE.fullmatch(lines[at + 1])), len(lines))


def _read_nothing(lines: list[str]) -> list[tuple[str, str]]:
    return []


def _read_field(lines: list[str]) -> list[tuple[str, str]]:
    match = _FIELD.fullmatch(lines[0])
    if match is None or match["kind"] not in _PARAMETER_FIELDS or not match["rest"].strip():
        return []
    name = match["rest"].split()[-1]  # `:param int count:` has the type first
    return [(name, _join([match["text"] or "", *lines[1:]]))]


def _read_google(lines: list[str]) -> list[tuple[str, str]]:
    indents = [len(line) - len(line.lstrip()) for line in lines if line.strip()]
    level = indents[0] if indents else 0
    entries: list[tuple[str, list[str]]] = []
    for line in lines:
        match = _GOOGLE_ENTRY.fullmatch(line.strip()) if _indent(line) <= level else None
        if match:
            entries.append((match["name"], [match["text"]]))
        elif entries:
            entries[-1][1].append(line)
    return [(name, _join(text)) for name, text in entries]


def _read_numpy(lines: list[str]) -> list[tuple[str, str]]:
    entries: list[tuple[list[str], list[str]]] = []
    for line in lines:
        match = _NUMPY_ENTRY.fullmatch(line.strip()) if line.strip() and not line[0].isspace() else None
        if match:
            entries.append(([name.strip() for name in match["names"].split(",")], []))
        elif entries:
            entries[-1][1].append(line)
    return [(name, _join(text)) for names, text in entries for name in names]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _join(lines: list[str]) -> str:
    return " ".join(" ".join(lines).split())
