"""Every code block of every page: run, and what it shows must come out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .pages import DOCS, ROOT, RUN, SHOWN, all_pages, blocks, name
from .running import Page

if TYPE_CHECKING:
    from pathlib import Path

FRAMEWORKS = DOCS / "frameworks"
"""Their code needs the framework itself: the tests of the adapters run it in an environment that has it."""


def with_code() -> list[pytest.ParameterSet]:
    found = [page for page in all_pages() if page.parent != FRAMEWORKS]
    return [pytest.param(page, id=name(page)) for page in found if blocks(page)]


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
    ran = [block for block in found if block.language == "python" and block.title is None and block.not_run is None]
    assert running.shown or not ran, "a page's code should show what comes out"


@pytest.mark.parametrize("page", [pytest.param(page, id=name(page)) for page in all_pages()])
def test_every_block_is_run_or_says_why_not(page: Path) -> None:
    for block in blocks(page):
        if page.parent == FRAMEWORKS and block.language == "python":
            compile(block.text, block.where, "exec", dont_inherit=True)
            continue
        known = block.language in RUN or block.language in SHOWN
        assert known or block.not_run, f"{block.where}: ```{block.language} is not run and does not say why"
