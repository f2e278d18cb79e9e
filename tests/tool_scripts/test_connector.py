"""Connector scripts: how their pages are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moonbox.scripts.connector import ScriptConnectorKind

if TYPE_CHECKING:
    from pathlib import Path

PAGES = """
connector = { name = "pages" }

function connector.scan(config, cursor)
  if not cursor then
    return { items = { { source_id = "first", title = type(cursor), body = "a" } }, next = 2 }
  end
  return { items = { { source_id = "last", title = type(cursor), body = tostring(config.note) } }, next = nil }
end
"""


def test_the_first_cursor_is_nil(tmp_path: Path) -> None:
    (tmp_path / "pages.lua").write_text(PAGES)
    connector = ScriptConnectorKind().build({"path": "pages.lua"}, tmp_path, "knowledge.sources.pages")
    assert list(connector.scan({})) == [
        {"source_id": "first", "title": "nil", "body": "a"},
        {"source_id": "last", "title": "number", "body": "nil"},
    ]
