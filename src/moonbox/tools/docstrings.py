"""Docstrings read for what a model needs: the text, and what each parameter means."""

from __future__ import annotations

import re
from inspect import cleandoc

from msgspec import Struct


class Docstring(Struct, frozen=True):
    """The text before the first section, and each parameter's description."""

    text: str = ""
    parameters: dict[str, str] = {}


def read_docstring(doc: str | None) -> Docstring:
    """Split a docstring in Google, NumPy, Sphinx or Epydoc form into its text and its parameters."""
    if not doc:
        return Docstring()
    text = cleandoc(doc)
    if "\n" not in text and text[:1] not in ":@":
        return Docstring(text)
    from docstring_parser import parse  # slow to load

    parsed = parse(_tidy(text))
    gap = "\n\n" if parsed.blank_after_short_description else "\n"
    descriptions = {
        name.strip().lstrip("*"): " ".join((item.description or "").split())
        for item in parsed.params
        for name in item.arg_name.split(",")
    }
    return Docstring(
        gap.join(part for part in (parsed.short_description, parsed.long_description) if part), descriptions
    )


def _tidy(text: str) -> str:
    """The docstring with its sloppier forms written as the parser wants them."""
    if re.match(_LONE_HEADING, text):  # it has lost its section's indentation when it was cleaned
        heading, _, body = text.partition("\n")
        indented = "".join(f"    {line}" if line.strip() else line for line in body.splitlines(keepends=True))
        text = f"\n{heading}\n{indented}"
    text = re.sub(_EMPTY_SECTION, "", text, flags=re.MULTILINE)
    text = re.sub(_OTHER_HEADING, "Params:", text, flags=re.MULTILINE)
    return re.sub(_ENTRY, r"\1\2\3: ", text, flags=re.MULTILINE)


_LONE_HEADING = r"(?:Args|Arguments|Parameters|Params|Keyword Arg(?:ument)?s):[ \t]*\n"
_OTHER_HEADING = r"^(?:Keyword Arg(?:ument)?s|Other Parameters):[ \t]*$"
_EMPTY_SECTION = r"^[A-Z][\w ]*\n-{3,}\s*\Z"
_ENTRY = (  # `- name: text`, `name - text` and quoted names, in place of `name: text`
    r"^([ \t]+)(?:[-*][ \t]+)?`{0,2}(\*{0,2}\w+)`{0,2}([ \t]*\([^)\n]*\))?[ \t]*(?::(?!\w)|[ \t][-–—][ \t])[ \t]*"
)
