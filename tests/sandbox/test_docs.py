"""Discovery: everything that a script finds has an entry, and the entries can be listed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from moonbox import Repl, Sandbox, tool
from moonbox.languages.registry import LANGUAGES

if TYPE_CHECKING:
    from collections.abc import Iterator

MEMBERS = """
local names = {}
for name, value in pairs(_G) do
  if name ~= "_G" and name ~= "_VERSION" then names[#names + 1] = name end
  if type(value) == "table" and name ~= "_G" and name ~= "docs" and name ~= "tools" then
    for member in pairs(value) do names[#names + 1] = name .. "." .. member end
  end
end
return names
"""


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool(policy="direct")
def hidden() -> None:
    """Not for scripts."""


@pytest.fixture(scope="module")
def lua() -> Iterator[Repl]:
    with Sandbox([add, hidden], lua_features={"coroutines", "metatables"}) as box, box.repl() as repl:
        repl.document("house rules", "Be kind.")
        yield repl


@pytest.fixture(scope="module")
def rhai() -> Iterator[Repl]:
    with Sandbox([add, hidden], language="rhai") as box, box.repl() as repl:
        repl.document("house rules", "Be kind.")
        yield repl


def test_everything_in_the_environment_has_an_entry(lua: Repl) -> None:
    names = lua.run(MEMBERS).unwrap()
    assert {"string.format", "table.sort", "math.pi", "json.null", "coroutine.wrap", "utf8.len", "os.time"} <= set(
        names
    )
    run = lua.run(
        "local none = array{} for _, n in ipairs(names) do if not docs[n] then none[#none + 1] = n end end return none",
        inputs={"names": names},
    )
    assert run.unwrap() == []


def test_no_entry_is_about_what_is_not_there(lua: Repl) -> None:
    there = set(lua.run(MEMBERS).unwrap())
    language = LANGUAGES["lua"]
    assert set(language.library_docs) <= there
    assert set(language.docs) - there == {"docs.describe", "docs.search", "null"}


def test_pairs_goes_over_everything(lua: Repl) -> None:
    run = lua.run("local t = {} for name, text in pairs(docs) do t[name] = text end return t")
    entries = run.unwrap()
    assert entries["tools.add"] == lua.run("return docs.describe('add')").value
    assert entries["house rules"] == "Be kind."
    assert entries["string.format"].startswith("string.format(form, ...) -> text.")
    assert not any("hidden" in name for name in entries)
    assert all(isinstance(text, str) and text for text in entries.values())
    assert run.calls == ()


def test_an_empty_search_lists(lua: Repl, rhai: Repl) -> None:
    found = lua.run("return docs.search('')").unwrap()
    assert found[0] == {
        "name": "add",
        "signature": "add(a: integer, b: integer) -> integer",
        "summary": "Add two numbers.",
    }
    names = [item["name"] for item in found]
    assert {"house rules", "parallel", "json"} <= set(names)
    assert "string.format" not in names
    assert [item["name"] for item in lua.run("return docs.search(' ', 2)").unwrap()] == names[:2]
    assert [item["name"] for item in rhai.run('docs_search("", 2)').unwrap()] == ["add", "show"]


def test_library_functions_are_found_by_their_name(lua: Repl) -> None:
    assert [item["name"] for item in lua.run("return docs.search('gsub')").unwrap()][-1] == "string.gsub"


def test_rhai_has_entries_for_its_functions(rhai: Repl) -> None:
    names = rhai.run("docs_names()").unwrap()
    assert names[:3] == ["tools.add", "show", "house rules"]
    assert {"parallel", "push", "sub_string", "to_json", "type_of"} <= set(names)
    missing = rhai.run("docs_names().filter(|name| docs_get(name) == ())").unwrap()
    assert missing == []
    assert rhai.run('docs_get("sub_string")').value == "string.sub_string(start, length) -> that part of it"
