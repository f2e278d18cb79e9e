"""References to Python tools: what they find, and what they say when they do not."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from moonbox import Sandbox
from moonbox.errors import UsageError
from moonbox.project.python_tools import load_tools

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def write(here: Path, name: str, text: str) -> None:
    (here / name).parent.mkdir(exist_ok=True, parents=True)
    (here / name).write_text(text, encoding="utf-8")


def test_functions_lists_objects_and_packages(here: Path) -> None:
    write(here, "shop/__init__.py", "")
    write(
        here,
        "shop/api.py",
        "def one(): ...\ndef two(): ...\nboth = [one, two]\n"
        "class Client:\n    def find(self, id: int): ...\nclient = Client()\nspaces = {'a': [one], 'b': [two]}\n",
    )
    assert load_tools(["shop.api:both"]).paths() == ("one", "two")
    assert load_tools(["shop.api:client.find", "shop.api:one"]).paths() == ("find", "one")
    assert load_tools(["shop.api:spaces"]).paths() == ("a.one", "b.two")
    assert load_tools(["shop/api.py:two"]).paths() == ("two",)
    assert load_tools([]).paths() == ()


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("kit:", "--tools kit:: write module:name, for example crm:find_customer"),
        ("kit:twoo", "--tools kit:twoo: the module 'kit' has no 'twoo'; did you mean 'two'?"),
        ("kit:zzz", "--tools kit:zzz: the module 'kit' has no 'zzz'; it has: two, many"),
        ("kit:two.x", "--tools kit:two.x: 'two' has no 'x'"),
        ("kit", "--tools kit: the module 'kit' has no @tool; name a function, for example kit:two"),
        ("qqq:x", "--tools qqq:x: the module 'qqq' does not exist; modules here: broken, kit, needy"),
        ("kti.py:x", "--tools kti.py:x: the file 'kti.py' does not exist; did you mean 'kit.py'?"),
        ("pack", "--tools pack: the package 'pack' has no @tool; choose one of its modules: pack.one, pack.two"),
        ("pack/", "--tools pack/: 'pack/' is not a Python file (.py)"),
        ("notes.md", "--tools notes.md: 'notes.md' is not a Python file (.py)"),
        ("needy:x", "--tools needy:x: 'needy' imports 'not_there_at_all', which is not installed"),
        (
            "broken:x",
            "--tools broken:x: 'broken' cannot be loaded: ZeroDivisionError: division by zero (broken.py, line 2)",
        ),
        (
            "kit:number",
            "--tools kit:number: 5 is not a tool; give functions, Tools, Toolboxes, or a dict of namespaces",
        ),
    ],
)
def test_what_is_wrong_is_said(here: Path, reference: str, message: str) -> None:
    write(here, "kit.py", "from json import dumps\ndef two(): ...\nmany = [two]\nnumber = 5\n")
    write(here, "pack/one.py", "def one(): ...\n")
    write(here, "pack/two.py", "")
    write(here, "notes.md", "")
    write(here, "needy.py", "import not_there_at_all\n")
    write(here, "broken.py", "x = 1\nx / 0\n")
    with pytest.raises(UsageError) as caught:
        load_tools([reference])
    assert str(caught.value) == message


def test_two_tools_of_one_name(here: Path) -> None:
    write(here, "kit.py", "def two(): ...\n")
    with pytest.raises(UsageError, match="--tools kit:two: there are two tools named 'two'"):
        load_tools(["kit:two", "kit:two"])


def test_a_sandbox_gives_its_tools_and_its_functions(here: Path) -> None:
    write(here, "box_kit.py", "from moonbox import Sandbox\ndef two(): return 2\nbox = Sandbox([two])\n")
    write(here, "box_more.py", "from box_kit import box\nbox.define('three', lambda: 3)\n")
    boxes: list[Sandbox] = []
    assert load_tools(["box_more:box"], boxes=boxes).paths() == ("two",)
    with Sandbox() as box:
        box.define_as(boxes[0])
        assert box.run("return three()").value == 3
