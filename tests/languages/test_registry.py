"""The registry of languages, and the rule that nothing outside the languages' folders names one."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import moonbox
from moonbox import CodeMode, Sandbox, Tool
from moonbox.errors import UsageError
from moonbox.languages import tables
from moonbox.languages.registry import DEFAULT_LANGUAGE, LANGUAGES, EngineError, Language, language
from moonbox.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(moonbox.__file__).parent
PUBLIC = {"lua_features", "LuaCodeMode"}
"""Names that users write: an option of Sandbox and moonbox.toml, a class of the adapter for FastMCP."""
IN_LUA = {"scripts", "cli/tool.py", "cli/init.py", "project/trust.py"}
"""Tool scripts are Lua by definition: these may name the suffix of their files."""

HOSTS_OWN = re.compile(r"(?i)[\w.]*python_\w+|\w+_(?:in_)?python|llama-cpp-python|python-\w+|<\|python_tag\|>")
"""Words about the Python of the host, which is a language of scripts too."""
ABOUT_THE_HOST = {"cli/doctor.py", "config", "project", "scripts/configured.py", "tools/function.py"}
"""The same for the word alone: the version that runs, and the setting for tools that are written in it."""


def words_of(path: Path) -> Iterator[tuple[int, str]]:
    """Identifiers, imported modules, and strings that are one word; with their lines."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        line = getattr(node, "lineno", 0)
        match node:
            case ast.Constant(value=str(text)) if not re.search(r"\s", text):
                yield line, text
            case ast.Name(id=text) | ast.Attribute(attr=text) | ast.arg(arg=text) | ast.alias(name=text):
                yield line, text
            case ast.FunctionDef(name=text) | ast.AsyncFunctionDef(name=text) | ast.ClassDef(name=text):
                yield line, text
            case ast.keyword(arg=str(text)):
                yield line, text
            case ast.ImportFrom(module=str(text)):
                yield line, text


def names_a_language(word: str) -> bool:
    parts = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", word)
    return word not in PUBLIC and any(part.lower() in LANGUAGES for part in parts)


def test_no_module_outside_names_a_language() -> None:
    named = []
    for path in ROOT.rglob("*.py"):
        name = str(path.relative_to(ROOT))
        if name.startswith("languages/") or not re.search("(?i)" + "|".join(LANGUAGES), path.read_text("utf-8")):
            continue
        files = any(name.startswith(each) for each in IN_LUA)
        hosts = any(name.startswith(each) for each in ABOUT_THE_HOST)
        named += [
            (name, line, word)
            for line, word in words_of(path)
            if names_a_language(word)
            and not (files and re.fullmatch(r"[\w*….\"=]*\.lua\"?", word))
            and not HOSTS_OWN.fullmatch(word)
            and not (hosts and re.fullmatch("(?i)python:?", word))
        ]
    assert named == []


def test_the_rule_sees_what_it_forbids() -> None:
    assert all(
        map(names_a_language, ("lua", "rhai", "python", "LuaVM", "_lua_checker", "is_rhai", "moonbox.languages.lua.vm"))
    )
    assert not any(map(names_a_language, ("evaluate", "language", "value", "lua_features")))


@pytest.mark.parametrize("each", LANGUAGES.values(), ids=lambda each: each.name)
def test_a_language_is_complete(each: Language) -> None:
    assert each.suffix.startswith(".") and each.comment and each.lexer
    folder = Path(tables.__file__).parent / each.name
    assert {path.name for path in folder.iterdir()} >= {"language.py", "texts.toml", "docs.toml"}
    assert each.texts.no_value and each.texts.part_of_map.format(key="x")
    assert each.docs["print"]
    assert each.tool_name("space.name").endswith("name")
    is_complete = each.completeness()
    assert is_complete("1 + 1") and not is_complete("(1 +")
    error = each.explain(EngineError("stop", limit="time"), sources={}, tools=(), limits=Limits(timeout=2))
    assert (error.kind, error.limit, error.message) == (
        "limit",
        "time",
        "the script ran longer than timeout = 2 seconds",
    )
    assert error.hint == "do less in one run, or split the work over several runs"


@pytest.mark.parametrize("each", LANGUAGES.values(), ids=lambda each: each.name)
@pytest.mark.parametrize("code", ["denied", "not_granted", "approval_denied", "approval_unavailable"])
def test_a_denial_is_one_in_every_language(each: Language, code: str) -> None:
    report = EngineError("tool", "no", extra={"data": [{"code": code, "tool": "save", "message": "no"}]})
    error = each.explain(report, sources={}, tools=("save",), limits=Limits())
    assert (error.kind, error.code, error.tool) == ("denied", code, "save")


def test_texts_and_lua_files_know_nothing_of_the_host() -> None:
    for path in ROOT.glob("languages/*/*.toml"):
        host = "lupa" if path.parent.name == "python" else "python|lupa"
        assert not re.search(rf"(?i:{host})|Sandbox\(", path.read_text(encoding="utf-8")), path
    for path in ROOT.joinpath("languages").rglob("*.lua"):
        assert not re.search(r"\b(?:Python|lupa|Sandbox)\b", path.read_text(encoding="utf-8")), path


def test_unknown_languages() -> None:
    assert language().name == DEFAULT_LANGUAGE
    with pytest.raises(UsageError, match=r"unknown language 'luaa'; did you mean 'lua'\?"):
        language("luaa")
    with pytest.raises(UsageError, match="unknown language 'cobol'; known languages: lua, rhai, python"):
        language("cobol")
    with pytest.raises(UsageError, match="unknown language 5"):
        language(5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("language", "calls"),
    [
        ("lua", ["tools.import{}", "tools.list{}", "tools.end_{}", "tools.match.print{}"]),
        ("rhai", ["import_()", "list()", "end_()", "match_::print_()", "tools::len()"]),
        (
            "python",
            ["import_()", "tools.list()", "end_()", "match.print()", "tools.len()", "json_.get()", "tools.open()"],
        ),
    ],
)
def test_the_catalog_names_tools_as_scripts_must_write_them(language: str, calls: list[str]) -> None:
    names = ("import", "list", "end", "match.print", "len", "json.get", "open")
    places = [(path.rpartition(".")[2], path.rpartition(".")[0] or None) for path in names]
    tools = [Tool.from_schema(name=name, namespace=space, call=lambda _, name=name: name) for name, space in places]
    with Sandbox(tools, language=language) as box, CodeMode(box) as mode:
        shown = [line.removeprefix("- ").partition("(")[0] for line in mode.catalog.text.splitlines()[1:]]
        runs = [box.run(f"return {call}" if language == "lua" else call) for call in calls]
    named = [call.rstrip("(){}") for call in calls]
    assert set(named) <= ({f"tools.{name}" for name in shown} if language == "lua" else set(shown))
    assert [run.value for run in runs] == [name for name, _ in places][: len(calls)]


@pytest.mark.parametrize("language", ["rhai", "python"])
def test_a_tool_keeps_its_name_beside_one_that_would_be_written_so(language: str) -> None:
    for names in (("import", "import_"), ("import_", "import")):
        tools = [Tool.from_schema(name=name, call=lambda _, name=name: name) for name in names]
        with Sandbox(tools, language=language) as box:
            assert box.run("import_()").value == "import_"


def test_parameters_that_are_words_of_python() -> None:
    text = {"type": "string"}
    parameters = {"type": "object", "properties": {"from": text, "end": text, "größe": text}, "required": ["from"]}
    move = Tool.from_schema(name="move", parameters=parameters, call=lambda given: given)
    with Sandbox([move], language="python") as box, CodeMode(box) as mode:
        assert mode.catalog.text.endswith("- move(from_: str, end: str = ..., größe: str = ...)")
        run = box.run('rest = {"from_": "a"}\n[move(from_="a", end="b"), move(größe="c", **rest)] ')
    assert run.value == [{"from": "a", "end": "b"}, {"größe": "c", "from": "a"}]
