"""Globs."""

from __future__ import annotations

import pytest

from moonbox.errors import ConfigError
from moonbox.knowledge.connectors.filesystem import Globs


@pytest.mark.parametrize(
    ("glob", "yes", "no"),
    [
        ("*.md", ["a.md", "x/y/a.md"], ["a.mdx", "amd"]),
        ("docs/*.md", ["docs/a.md"], ["docs/x/a.md", "x/docs/a.md"]),
        ("docs/**/*.md", ["docs/a.md", "docs/x/y/a.md"], ["a.md"]),
        ("**/build/**", ["build/x", "a/build/x/y"], ["build", "rebuild/x"]),
        ("docs/", ["docs/a", "docs/x/a", "x/docs/a"], ["docs", "docsx/a"]),
        ("?.txt", ["a.txt", "d/b.txt"], ["ab.txt", "/.txt"]),
        ("[a-c].txt", ["a.txt"], ["d.txt"]),
        ("[!a-c].txt", ["d.txt"], ["a.txt"]),
        ("*.{md,txt}", ["a.md", "a.txt"], ["a.rst", "a.{md,txt}"]),
        ("a+b(1).md", ["a+b(1).md"], ["aab1.md"]),
        ("**", ["a", "a/b"], []),
        ("*", ["a", "a/b", "a\n/b\n"], []),
        ("{a,b}.{md,txt}", ["a.md", "b.txt"], ["c.md"]),
    ],
)
def test_what_a_glob_matches(glob: str, yes: list[str], no: list[str]) -> None:
    globs = Globs((glob,))
    assert [path for path in yes if not globs.chooses(path)] == []
    assert [path for path in no if globs.chooses(path)] == []


def test_exclusions_win_and_spare_whole_folders() -> None:
    globs = Globs(("**",), ("private/", "*.key", "a/b"))
    assert globs.chooses("public/x")
    assert not globs.chooses("private/x")
    assert not globs.chooses("public/x.key")
    assert not globs.descends("private")
    assert not globs.descends("a/b")
    assert globs.descends("a")
    assert not globs.chooses("line\nend/x.key")


@pytest.mark.parametrize("glob", ["", " ", "/etc/passwd", "[z-a]", "[a", "!keep", "#note", "{a,b}" * 5])
def test_invalid_globs(glob: str) -> None:
    with pytest.raises(ConfigError, match=r"^(invalid glob|a glob must be a path inside the source, not) "):
        Globs((glob,)).check()
