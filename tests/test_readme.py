"""The README and the documentation: their code and their commands are run, and what they show must come out."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHOWN = re.compile(r"^(?P<code>\S.*?)\s+# → (?P<value>.*)$")
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)\s]*)?\)")
NOT_RUN = re.compile(r"make (\w+)|python -m pip install")
"""They would build an environment or run all tests: what they need is checked instead."""


def blocks(language: str) -> list[pytest.ParameterSet]:
    """Each page's blocks of that language, together: a page's later code builds on the earlier."""
    found = []
    for page in PAGES:
        parts = [text for name, text in BLOCK.findall(page.read_text("utf-8")) if name == language]
        if parts:
            found.append(pytest.param("\n".join(parts), id=page.name))
    return found


@pytest.mark.parametrize("code", blocks("python"))
def test_python(code: str) -> None:
    names: dict[str, object] = {"__name__": "page"}
    pending: list[str] = []
    shown = 0
    for line in code.splitlines():
        found = SHOWN.match(line)
        if found is None:
            pending.append(line)
            continue
        exec("\n".join(pending), names)
        pending.clear()
        value = eval(found["code"], names)
        assert repr(value) == found["value"], found["code"]
        shown += 1
    exec("\n".join(pending), names)
    assert shown, "a page's code should show what comes out"


@pytest.mark.parametrize("session", blocks("console"))
def test_commands(session: str, tmp_path: Path) -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "MOONBOX_HOME": str(tmp_path), "NO_COLOR": "1"}
    steps = re.split(r"^\$ ", session, flags=re.MULTILINE)[1:]
    assert steps
    for step in steps:
        command, _, expected = step.partition("\n")
        skipped = NOT_RUN.match(command)
        if skipped is not None:
            assert skipped[1] is None or f"\n{skipped[1]}:" in (ROOT / "Makefile").read_text("utf-8")
            continue
        done = subprocess.run(
            command, shell=True, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=50, check=False
        )
        came = done.stdout + done.stderr
        assert expected.strip() == "…" or came.strip() == expected.strip(), command


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in LINK.findall(page.read_text("utf-8")):
        if "://" in target:
            continue
        found = page.parent / target
        assert found.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", found.read_text("utf-8"), re.MULTILINE)
            assert anchor[1:] in [re.sub(r"[^\w -]", "", text.lower()).replace(" ", "-") for text in headings]


def test_the_demo_is_quick_and_its_story_holds() -> None:
    command = [sys.executable, str(ROOT / "examples" / "demo.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=50, check=True)
    assert "it returns  58,232.09" in done.stdout
    assert "its 20 calls, five at a time" in done.stdout
    assert len(re.findall(r"get_expenses .*✓", done.stdout)) == 20
    assert re.search(r"items in its context +2,000 +0", done.stdout)


def test_every_command_option_and_limit_is_documented() -> None:
    from dataclasses import fields

    from moonbox.cli.settings import Settings
    from moonbox.limits import Limits

    commands, lua = (ROOT / "docs" / "cli.md").read_text("utf-8"), (ROOT / "docs" / "lua.md").read_text("utf-8")
    for field in fields(Settings):
        assert f"--{field.name.replace('_', '-')}" in commands
    for limit in fields(Limits):
        assert f"`{limit.name}`" in lua


def test_every_layer_of_the_jail_is_documented() -> None:
    from moonbox.worker.jail.probe import LAYERS

    security = (ROOT / "docs" / "security.md").read_text("utf-8")
    for layer in LAYERS:
        assert f"| `{layer}` |" in security


def test_the_environment_is_documented() -> None:
    """Everything in the engine's allow-list is on the page, and so is every entry of `docs`."""
    from lupa import lua54

    from moonbox.engine.lua.vm import PRELUDE
    from moonbox.sandbox.docs import builtin_docs

    page = (ROOT / "docs" / "lua.md").read_text("utf-8")
    words = set(re.findall(r"\w+", page))
    allowed = lua54.LuaRuntime().execute(Path(PRELUDE, "allowed.lua").read_text("utf-8"))
    names = [*allowed.base.values(), *allowed.replaced.values(), *allowed.libraries.keys()]
    for library, members in allowed.libraries.items():
        if library != "math":  # "all of Lua 5.4's"
            names += members.values()
    assert set(names) - words == set()
    assert {name.rpartition(".")[2] for name in builtin_docs("lua")} - words == set()
