"""Tests of names and aliases."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moonbox.languages.language import is_identifier
from moonbox.languages.registry import LANGUAGES
from moonbox.tools.naming import aliases, safe_alias


@pytest.mark.parametrize(
    ("path", "alias"),
    [
        ("add", "add"),
        ("odd-name", "odd_name"),
        ("end", "end_"),
        ("3d", "_3d"),
        ("größe", "gr__e"),
        ("github.create_issue", "github.create_issue"),
        ("my-server.do it", "my_server.do_it"),
        ("a.end.b", "a.end_.b"),
        ("🎉", "_"),
    ],
)
def test_safe_alias(path: str, alias: str) -> None:
    assert safe_alias(path) == alias


def test_collisions_leave_the_valid_name_alone() -> None:
    assert aliases(["odd-name", "odd.name", "odd name", "odd_name"]) == {
        "odd_name": "odd_name",
        "odd name": "odd_name_2",
        "odd-name": "odd_name_3",
        "odd.name": "odd.name",
    }
    assert aliases(["end_", "end"]) == {"end_": "end_", "end": "end__2"}


def test_a_tool_beside_a_namespace_of_its_name() -> None:
    assert aliases(["github", "github.create", "github_"]) == {
        "github_": "github_",
        "github.create": "github.create",
        "github": "github__2",
    }
    assert aliases(["git-hub", "git_hub.create"]) == {"git_hub.create": "git_hub.create", "git-hub": "git_hub_"}


def test_a_word_of_a_language_beside_the_name_that_it_gets_there() -> None:
    assert aliases(["import", "import_"]) == {"import_": "import_", "import": "import_2"}
    assert aliases(["import", "import_.x"]) == {"import_.x": "import_.x", "import": "import_2"}
    assert aliases(["import.x", "import_.x"]) == {"import_.x": "import_.x", "import.x": "import.x_2"}
    assert aliases(["import", "import-"]) == {"import": "import", "import-": "import__2"}
    assert aliases(["get", "get_"]) == {"get": "get", "get_": "get_"}


_PART = st.from_regex(r"[a-b_\- é1]{1,4}(end)?|(import|class)[_\-]{0,2}", fullmatch=True)


@given(st.sets(st.lists(_PART, min_size=1, max_size=3).map(".".join)))
def test_aliases_are_unique_identifiers_whatever_the_order(paths: set[str]) -> None:
    found = aliases(paths)
    assert set(found) == paths
    assert len(set(found.values())) == len(paths)
    parts = [part for alias in found.values() for part in alias.split(".")]
    assert all(is_identifier(part) for part in parts)
    for language in LANGUAGES.values():
        written = {language.texts.identifiers(alias) for alias in found.values()}
        assert len(written) == len(paths)
        assert not {alias.rpartition(".")[0] for alias in written} & written
    shuffled = list(paths)
    random.Random(1).shuffle(shuffled)
    assert aliases(shuffled) == found
