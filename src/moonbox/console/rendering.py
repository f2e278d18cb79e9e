"""Rendering: templates in which everything is escaped, and the addresses of static files by their content."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from importlib.resources import files
from textwrap import shorten
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from moonbox._version import __version__
from moonbox.wording import counted, seconds, size

if TYPE_CHECKING:
    from pathlib import Path

_CLIP = 100_000


def templates(static: Path, prefix: str) -> Environment:
    """The templates of the console.

    Addresses of static files have a digest of all files in their path, so that modules import others of their version.
    """
    digest = hashlib.sha256()
    for path in sorted(static.iterdir()):
        digest.update(path.read_bytes())
    place = f"{prefix}/{digest.hexdigest()[:12]}"
    environment = Environment(
        loader=PackageLoader("moonbox.console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(static=lambda name: f"{place}/{name}", version=__version__)
    environment.filters.update(seconds=seconds, size=size, number="{:,}".format, plural=counted)
    environment.filters.update(iso=_iso, clip=_clip, first_paragraph=_first_paragraph)
    return environment


def sample(language: str) -> str:
    """What the playground's editor holds at first."""
    matches = list(files("moonbox.console").joinpath("samples").iterdir())
    return next((path.read_text(encoding="utf-8") for path in matches if path.name.startswith(f"{language}.")), "")


def as_json(value: Any) -> str:
    """A value for a `data-…` attribute, which the template escapes."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _iso(timestamp: float) -> str:
    try:
        return dt.datetime.fromtimestamp(timestamp, dt.UTC).isoformat(timespec="seconds")
    except (OverflowError, ValueError, OSError):
        return str(timestamp)


def _first_paragraph(text: str) -> str:
    """It in one line, without the marks of Markdown around names."""
    return shorten(text.strip().partition("\n\n")[0].replace("`", ""), 300, placeholder=" …")


def _clip(text: str) -> str:
    return text if len(text) <= _CLIP else f"{text[:_CLIP]}\n… {len(text) - _CLIP:,} more characters"
