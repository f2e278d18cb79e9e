"""The site: it builds strictly, every page is in its navigation, and reading it needs no other server."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import yaml

from .pages import DOCS, ROOT


def settings() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))
    return loaded


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, so that nothing is left behind here."""
    folder: Path = tmp_path_factory.mktemp("site")
    shutil.copytree(DOCS, folder / "docs", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "benchmarks").mkdir()
    for name in ("mkdocs.yml", "CHANGELOG.md", "benchmarks/results.md", "benchmarks/economy.md", "benchmarks/trial.md"):
        shutil.copy(ROOT / name, folder / name)
    nowhere = "http://127.0.0.1:9"  # no network
    environment = {**os.environ, "https_proxy": nowhere, "http_proxy": nowhere, "NO_COLOR": "1"}
    command = [str(Path(sys.executable).with_name("zensical")), "build", "--strict"]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=250, check=False
    )
    told = re.sub(r"\x1b\[[\d;]*m", "", done.stdout + done.stderr)
    assert done.returncode == 0, told
    return folder / "site"


def test_every_page_is_built(site: Path) -> None:
    for page in DOCS.rglob("*.md"):
        part = page.relative_to(DOCS).with_suffix("")
        built = site / (part.parent if part.name == "index" else part) / "index.html"
        assert built.is_file(), part


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        found = re.findall(r'<(?:script|img|link)[^>]+(?:src|href)="(https?://[^"]+)"', page.read_text("utf-8"))
        assert found == [], page


def test_only_pages_and_pictures_are_published(site: Path) -> None:
    assert [*site.rglob("*.py"), *site.rglob("*.pyc")] == []


def test_the_changelog_is_included(site: Path) -> None:
    assert "Keep a Changelog" in (site / "changelog" / "index.html").read_text("utf-8")


def test_the_plot_is_there(site: Path) -> None:
    page = (site / "benchmarks" / "index.html").read_text("utf-8")
    (picture,) = re.findall(r'<img[^>]+src="([^"]+\.svg)"', page)
    assert (site / "benchmarks" / picture).read_bytes() == (ROOT / "benchmarks" / "results.svg").read_bytes()
    assert "Where moonbox loses" in page


def test_links_lead_to_pages_and_headings_that_were_built(site: Path) -> None:
    names: dict[Path, set[str]] = {}
    for page in site.rglob("index.html"):
        for link in re.findall(r'<a[^>]+href="([^"]+)"', page.read_text("utf-8")):
            path, _, heading = unquote(link).partition("#")
            if re.match(r"[a-z]+:", link):
                continue
            target = (page.parent / path).resolve() if path else page
            target = target / "index.html" if target.is_dir() else target
            assert target.is_file(), f"{page}: {link}"
            if heading and target.suffix == ".html":
                if target not in names:
                    names[target] = set(re.findall(r'\bid="([^"]+)"', target.read_text("utf-8")))
                assert heading in names[target], f"{page}: {link}"


def test_every_page_is_in_the_navigation_once() -> None:
    listed = sorted(_pages(settings()["nav"]))
    there = sorted(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))
    assert listed == there, "the nav in mkdocs.yml and the files in docs/ differ"


def _pages(nav: Any) -> list[str]:
    if isinstance(nav, str):
        return [nav]
    items = nav.values() if isinstance(nav, dict) else nav
    return [page for item in items for page in _pages(item)]
