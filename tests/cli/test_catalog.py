"""`moonbox catalog`: what a model would see, and what it costs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Moonbox


def test_what_the_model_sees(moonbox: Moonbox) -> None:
    done = moonbox("catalog", "--tools", "kit:box", "--tools", "kit:delete")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "── lua_repl · the code tool"
    assert lines[1].startswith("Runs a Lua 5.4 script")
    at = lines.index("Tools:")
    assert lines[at + 1 : at + 5] == [
        "- add(a: integer, b?: integer) -> integer — Add two numbers.",
        "- double(x: integer) -> integer — Twice as much.",
        "── direct tools",
        "- delete(path: string) -> string — Delete a file for good.",
    ]
    assert lines[at + 5].startswith("── system prompt · ") and lines[at + 5].endswith(" bytes")
    size, code, direct, compared, shown = lines[at + 7 :]
    assert size == "── size"
    assert code.startswith("code mode          ")
    assert code.endswith("the code tool, 2 tools in its catalog (full), 1 direct")
    assert direct.startswith("every tool direct  ") and direct.endswith(" tokens  3 tools")
    assert compared.startswith("code mode takes ") and compared.endswith(" times as much")
    assert shown == "shown: the code tool; mode is always"


def test_as_json_and_as_definitions(moonbox: Moonbox) -> None:
    told = json.loads(moonbox("catalog", "-t", "kit:box", "-t", "kit:delete", "--format", "json").stdout)
    assert (told["code_tool"], told["direct_tools"]) == ("lua_repl", ["delete"])
    assert told["hidden_tools"] == ["add", "double"]
    assert told["catalog"]["tools"] == 2 and told["catalog"]["detail"] == "full"
    assert told["tokens"]["code_mode"] > told["tokens"]["every_tool_direct"] > 0
    definitions = json.loads(moonbox("catalog", "-t", "kit:box", "--format", "anthropic").stdout)
    assert [item["name"] for item in definitions] == ["lua_repl"]
    assert definitions[0]["description"].startswith("Runs a Lua 5.4 script")


def test_auto_says_why(moonbox: Moonbox) -> None:
    lines = moonbox("catalog", "-t", "kit:box", "--mode", "auto").stdout.splitlines()
    assert lines[0] == "── lua_repl · the code tool"
    assert "── direct tools" in lines
    assert lines[-1] == "shown: both; direct definitions are smaller, and a lean code tool is beside them"


def test_a_smaller_catalog(moonbox: Moonbox) -> None:
    found = {
        tokens: json.loads(moonbox("catalog", "-t", "kit:box", "--tokens", tokens, "--format", "json").stdout)
        for tokens in ("20", "1", "0")
    }
    details = {tokens: data["catalog"]["detail"] for tokens, data in found.items()}
    assert details == {"20": "signatures", "1": "search", "0": "full"}


def test_the_configuration_is_used(moonbox: Moonbox, tmp_path: Path) -> None:
    (tmp_path / "moonbox.toml").write_text(
        '[codemode]\nname = "run_lua"\nkeep_visible = ["add"]\n[audit]\npath = "trail.db"\n', encoding="utf-8"
    )
    told = json.loads(moonbox("catalog", "-t", "kit:box", "--format", "json").stdout)
    assert (told["code_tool"], told["direct_tools"]) == ("run_lua", ["add"])
    assert not (tmp_path / "trail.db").exists()
    schemas = moonbox("catalog", "-t", "kit:box", "--full-schemas").stdout.splitlines()
    line = next(line for line in schemas if line.startswith("  schema: "))
    assert json.loads(line.removeprefix("  schema: "))["required"] == ["x"]


def test_mistakes(moonbox: Moonbox) -> None:
    for option, value in (("--format", "xml"), ("--mode", "sometimes"), ("--tokens", "-1")):
        done = moonbox("catalog", option, value)
        assert (done.returncode, f"Invalid value for '{option}': " in done.stderr) == (2, True)
    done = moonbox("catalog", "--tools", "kit:doubel")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: --tools kit:doubel: the module 'kit' has no 'doubel'; did you mean 'double'?\n"


def test_mistakes_in_the_configuration(moonbox: Moonbox, tmp_path: Path) -> None:
    where = tmp_path / "moonbox.toml"
    where.write_text("[codemode]\ncatalog_tokens = 0\n", encoding="utf-8")
    done = moonbox("catalog")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == ("error: moonbox.toml: [codemode] catalog_tokens must be at least 1, not 0\n")
    assert moonbox("catalog", "--tokens", "0").returncode == 0
    where.write_text('[codemode]\nkeep_visible = ["ad"]\n', encoding="utf-8")
    done = moonbox("catalog", "--tools", "kit:box")
    assert done.returncode == 2
    assert done.stderr == "error: moonbox.toml: [codemode] keep_visible: unknown tool 'ad'; did you mean 'add'?\n"


def test_without_tools_it_is_a_calculator(moonbox: Moonbox) -> None:
    lines = moonbox("catalog").stdout.splitlines()
    assert "Tools:" not in lines
    assert lines[-2].endswith(" 1 token   0 tools")
    assert lines[-1] == "shown: the code tool; mode is always"
