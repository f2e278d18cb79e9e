"""Markdown: the front matter and the title."""

from __future__ import annotations

import re
import tomllib

from moonbox.errors import UsageError
from moonbox.knowledge.extract.kinds import Extracted
from moonbox.knowledge.items import iso_time
from moonbox.knowledge.text import clean

__all__ = ["read_markdown"]

MAX_FRONT = 20_000
_FRONT = re.compile(
    r"\A(?P<fence>---|\+\+\+)[ \t]*\n(?P<front>.*?)^(?P=fence)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE
)
_PAIR = re.compile(r"^([A-Za-z][\w-]{0,40})[ \t]*:[ \t]+([^\n]+)$", re.MULTILINE)
_TITLE = re.compile(r"^(?: {0,3}#[ \t]+([^\n]+)|([^\n#>\s][^\n]{0,199})\n=+[ \t]*$)", re.MULTILINE)
_SEARCHED = 4_000


def read_markdown(text: str) -> Extracted:
    """A Markdown file's text without its front matter; title, author, date and the rest of the front matter apart."""
    text = clean(text)
    front, body = _front_matter(text)
    heading = _TITLE.search(body[:_SEARCHED])
    title = front.pop("title", "") or (next(filter(None, heading.groups())) if heading else "")
    author = front.pop("author", None)
    updated = next(
        (front[key] for key in ("updated", "lastmod", "last_modified", "modified", "date") if key in front), None
    )
    return Extracted(
        text=body,
        title=title.strip().rstrip("#").strip(),
        author=author,
        updated_at=_time(updated),
        metadata=front or None,
    )


def _front_matter(text: str) -> tuple[dict[str, str], str]:
    """Simple `key: value` lines of YAML, or TOML; whatever is nested is left out."""
    found = _FRONT.match(text[: MAX_FRONT + 8])
    if not found:
        return {}, text
    if found["fence"] == "+++":
        try:
            table = tomllib.loads(found["front"])
        except (tomllib.TOMLDecodeError, RecursionError):
            return {}, text
        pairs = {key: str(value) for key, value in table.items() if not isinstance(value, dict | list)}
    else:
        pairs = {key: _scalar(value) for key, value in _PAIR.findall(found["front"])}
    return {key.lower(): value for key, value in pairs.items() if value}, text[found.end() :]


def _scalar(value: str) -> str:
    value = value.strip()
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return "" if value[0] in "&*!|>%@`" else value.partition(" #")[0].strip()


def _time(value: str | None) -> str | None:
    try:
        return iso_time(value)
    except UsageError:
        return None
