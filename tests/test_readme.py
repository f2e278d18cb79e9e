"""What the README and the first pages promise. Their code and commands are run by tests/docs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_demo_is_quick_and_its_story_holds() -> None:
    command = [sys.executable, str(ROOT / "examples" / "demo.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert "it returns  58,232.09" in done.stdout
    assert "its 20 calls, five at a time" in done.stdout
    assert len(re.findall(r"get_expenses .*✓", done.stdout)) == 20
    assert re.search(r"items in its context +2,000 +0", done.stdout)


def test_every_command_option_and_limit_is_documented() -> None:
    from dataclasses import fields

    from moonbox.cli.options import RUN_OPTIONS
    from moonbox.cli.run_options import option_name
    from moonbox.limits import Limits

    commands, lua = (ROOT / "docs" / "cli.md").read_text("utf-8"), (ROOT / "docs" / "lua.md").read_text("utf-8")
    for name in RUN_OPTIONS:
        assert f"--{name.replace('_', '-')}" in commands
    for limit in fields(Limits):
        assert option_name(limit.name) in commands
        assert f"`{limit.name}`" in lua


def test_every_layer_of_the_jail_is_documented() -> None:
    from moonbox.worker.jail.config import LAYERS

    security = (ROOT / "docs" / "security.md").read_text("utf-8")
    for layer in LAYERS:
        assert f"| `{layer}` |" in security


def test_each_boundary_names_code_and_a_test_that_exist() -> None:
    security = (ROOT / "docs" / "security.md").read_text("utf-8")
    rows = re.findall(r"^\| (.+) \| (`.+`) \| `(\S+)::(test_\w+)` \|$", security, re.MULTILINE)
    assert len(rows) > 35
    for boundary, code, path, name in rows:
        assert f"\ndef {name}(" in (ROOT / "tests" / path).read_text("utf-8"), boundary
        for place in re.findall("`(.+?)`", code):
            assert (ROOT / place).exists() or (ROOT / "src" / "moonbox" / place).exists(), boundary


def test_the_environment_is_documented() -> None:
    """Everything in the engine's allow-list is on the page, and so is every entry of `docs`."""
    from lupa import lua54

    from moonbox.languages.lua.vm import PRELUDE
    from moonbox.languages.registry import language

    page = (ROOT / "docs" / "lua.md").read_text("utf-8")
    words = set(re.findall(r"\w+", page))
    allowed = lua54.LuaRuntime().execute(Path(PRELUDE, "allowed.lua").read_text("utf-8"))
    names = [*allowed.base.values(), *allowed.replaced.values(), *allowed.libraries.keys()]
    for library, members in allowed.libraries.items():
        if library != "math":  # "all of Lua 5.4's"
            names += members.values()
    assert set(names) - words == set()
    assert {name.rpartition(".")[2] for name in language("lua").docs} - words == set()
