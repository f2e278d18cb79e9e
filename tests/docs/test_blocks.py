"""Every code block of every page: run, and what it shows must come out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.adapters.frameworks import FRAMEWORKS
from tests.adapters.test_examples import PAGES as PROVIDERS

from .javascript import run_javascript, why_not_run
from .pages import DOCS, ROOT, RUN, SHOWN, all_pages, blocks, name
from .running import Page

if TYPE_CHECKING:
    from pathlib import Path


def with_code() -> list[pytest.ParameterSet]:
    return [pytest.param(page, id=name(page)) for page in all_pages() if blocks(page) and not needs_its_framework(page)]


def needs_its_framework(page: Path) -> bool:
    """Its code is run by the tests of its adapter, in an environment that has the framework."""
    return page.parent == DOCS / "frameworks" and page.stem.replace("-", "_") in (*FRAMEWORKS, *PROVIDERS)


@pytest.mark.parametrize("page", with_code())
def test_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = blocks(page)
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
    scripts = [block for block in found if block.language == "js" and block.not_run is None]
    if scripts and why_not_run():
        pytest.skip(why_not_run())
    assert not scripts or run_javascript(scripts, tmp_path / "javascript"), "a page's code should show what comes out"
    ran = [block for block in found if block.language == "python" and block.title is None and block.not_run is None]
    assert running.shown or not ran, "a page's code should show what comes out"


@pytest.mark.parametrize("page", [pytest.param(page, id=name(page)) for page in all_pages()])
def test_every_block_is_run_or_says_why_not(page: Path) -> None:
    for block in blocks(page):
        known = block.language in RUN or block.language in SHOWN
        assert known or block.not_run, f"{block.where}: ```{block.language} is not run and does not say why"
