"""A hook of the site's generator: the navigation lists every page of frameworks/, by its own heading."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def on_config(config: Any) -> Any:
    folder = Path(config["docs_dir"], "frameworks")
    pages = sorted(folder.glob("*.md"), key=lambda page: (page.stem != "index", page.stem))
    entries = [{_heading(page): f"frameworks/{page.name}"} for page in pages]
    config["nav"] = [_filled(item, entries) for item in config["nav"]]
    return config


def _filled(item: Any, entries: list[dict[str, str]]) -> Any:
    if not isinstance(item, dict):
        return item
    ((title, inner),) = item.items()
    if title == "Frameworks":
        return {title: entries}
    if not isinstance(inner, list):
        return item
    kept = [_filled(each, entries) for each in inner]
    return {title: [each for each in kept if each != {"Frameworks": []}]}


def _heading(page: Path) -> str:
    lines = page.read_text(encoding="utf-8").splitlines()
    return next((line[2:].strip() for line in lines if line.startswith("# ")), page.stem)
