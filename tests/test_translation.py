"""The modules that the npm package translates: everything that they import can be translated, too."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

SCRIPTS = Path(__file__).parent.parent / "js" / "scripts"


@pytest.fixture
def translate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The translator, which is a program of the npm package's build."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    yield import_module("translate.__main__")
    for name in [name for name in sys.modules if name.partition(".")[0] == "translate"]:
        del sys.modules[name]


def test_all_that_the_npm_package_needs_is_translated(translate: Any, tmp_path: Path) -> None:
    """Where this fails, the message names the module and those that import it: `…; imported by A, by B`."""
    places = [place for place, _ in translate.translated(*translate.collect(), tmp_path)]
    assert tmp_path / "suggest.js" in places


def test_a_module_that_cannot_be_translated_is_named_with_what_imports_it(
    translate: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "moonbox"
    package.mkdir()
    (package / "first.py").write_text("from moonbox.second import f\n")
    (package / "second.py").write_text("def f():\n    from moonbox.third import save\n    return save\n")
    (package / "third.py").write_text("def save(p, b):\n    p.savefig(b, format='png')\n")
    monkeypatch.setattr(translate, "SOURCES", tmp_path)
    monkeypatch.setattr(translate, "SHARED", ("moonbox.first",))
    with pytest.raises(translate.Refused) as refused:
        list(translate.translated(*translate.collect(["moonbox.first"]), tmp_path))
    assert str(refused.value) == (
        "moonbox/third.py: line 2: keywords of an unknown method is not translated: p.savefig(b, format='png')"
        "; imported by moonbox.second, by moonbox.first"
    )
