"""Every code block of every page: run, and what it shows must come out."""

from __future__ import annotations

import ast
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

from .pages import DOCS, ROOT, RUN, SHOWN, Block, all_pages, blocks, name
from .running import Page

if TYPE_CHECKING:
    from pathlib import Path

FRAMEWORKS = DOCS / "frameworks"
"""Their code needs the framework and often a provider: it is run where it shows values and the framework is here."""


def with_code() -> list[pytest.ParameterSet]:
    return [pytest.param(page, id=name(page)) for page in all_pages() if blocks(page)]


@pytest.mark.parametrize("page", with_code())
def test_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = blocks(page)
    if page.parent == FRAMEWORKS:
        if not any("  # → " in block.text for block in found):
            pytest.skip("it shows no values")
        if missing := [package for block in found for package in imported(block) if find_spec(package) is None]:
            pytest.skip(f"{missing[0]} is not installed here")
    has_files = any(block.title is not None for block in found)
    home = tmp_path / "home"
    home.mkdir()
    folder = tmp_path / "project" if has_files else ROOT
    folder.mkdir(exist_ok=True)
    monkeypatch.setenv("MOONBOX_HOME", str(home))
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    running = Page(folder, home)
    for block in found:
        if block.not_run is None:
            running.run(block)
    ran = [block for block in found if block.language == "python" and block.title is None and block.not_run is None]
    assert running.shown or not ran, "a page's code should show what comes out"


@pytest.mark.parametrize("page", [pytest.param(page, id=name(page)) for page in all_pages()])
def test_every_block_is_run_or_says_why_not(page: Path) -> None:
    for block in blocks(page):
        if page.parent == FRAMEWORKS and block.language == "python":
            assert [module for module in imported(block, whole=True) if not is_ours(module)] == [], block.where
            continue
        known = block.language in RUN or block.language in SHOWN
        assert known or block.not_run, f"{block.where}: ```{block.language} is not run and does not say why"


def imported(block: Block, *, whole: bool = False) -> list[str]:
    """The packages that a block of Python imports; with `whole`, the modules of moonbox."""
    if block.language != "python":
        return []
    found: list[str] = []
    for node in ast.walk(ast.parse(block.text, block.where)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.append(node.module)
    if whole:
        return [module for module in found if module.split(".")[0] == "moonbox"]
    return [module.split(".")[0] for module in found]


def is_ours(module: str) -> bool:
    path = ROOT.joinpath("src", *module.split("."))
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()
