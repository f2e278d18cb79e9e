"""Tests of names and aliases."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moonbox.languages.language import is_identifier
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


@given(
    st.sets(st.from_regex(r"[a-b_.\- é1]{1,5}(end)?", fullmatch=True).filter(lambda path: "" not in path.split(".")))
)
def test_aliases_are_unique_identifiers_whatever_the_order(paths: set[str]) -> None:
    found = aliases(paths)
    assert set(found) == paths
    assert len(set(found.values())) == len(paths)
    parts = [part for alias in found.values() for part in alias.split(".")]
    assert all(is_identifier(part) for part in parts)
    spaces = {alias.rpartition(".")[0] for alias in found.values()} - {""}
    assert not spaces & set(found.values())
    shuffled = list(paths)
    random.Random(1).shuffle(shuffled)
    assert aliases(shuffled) == found
