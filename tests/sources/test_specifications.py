"""A real specification of more than a thousand operations: every one is a tool, and models find them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from moonbox import CodeMode, Sandbox, Toolbox
from tests.sources import specifications

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(specifications.missing() is not None, reason=str(specifications.missing()))
TAGS = ["issues", "pulls", "repos", "git", "actions", "users"]


@pytest.fixture(scope="module")
def github() -> Toolbox:
    return Toolbox.from_openapi(specifications.github(), namespace="github")


@pytest.fixture(scope="module")
def box(github: Toolbox) -> Iterator[Sandbox]:
    with Sandbox(github) as box:
        yield box


def test_every_operation_is_a_tool(github: Toolbox) -> None:
    data = json.loads(specifications.github().read_bytes())
    operations = [method for path in data["paths"].values() for method in path if method in ("get", "post", "put")]
    made = [tool for tool in github if str(tool.meta["openapi"]).startswith(("GET", "POST", "PUT"))]
    assert len(made) > 900
    unusable = [problem for problem in github.problems if problem.startswith(("GET", "POST", "PUT"))]
    assert len(made) == len(operations) - len(unusable)
    assert {problem.partition(": ")[2] for problem in github.problems} <= {
        "its request body of type application/octet-stream is not supported",
        "its request body of type text/plain is not supported",
        "it has a server of its own, which is not supported; give base_url",
    }


def test_tools_are_found_by_words_and_their_types_are_named(box: Sandbox) -> None:
    run = box.run("return docs.search('create an issue comment'), docs.describe('github.repos.list_releases')")
    assert run.error is None
    assert "github.issues.create_comment" in [found["name"] for found in run.values[0][:3]]
    assert run.values[1].startswith("github.repos.list_releases(owner: string, repo: string, per_page?: integer,")
    assert "\nSimpleUser = {" in run.values[1]


def test_a_search_answers_with_ten_short_results_and_the_best_is_first(box: Sandbox) -> None:
    run = box.run("return docs.search('list issues of a repository')")
    (found,) = run.values
    assert found[0]["name"] == "github.issues.list_for_repo"
    assert len(found) == 10
    assert all(len(each["signature"]) < 340 and len(each["summary"]) < 200 for each in found)
    assert found[0]["signature"].endswith("… (docs.describe has all)")
    assert len(json.dumps(found)) < 4_000


def test_the_catalog_of_hundreds_of_operations_is_within_its_budget() -> None:
    some = Toolbox.from_openapi(specifications.github(), include=[f"tag:{tag}" for tag in TAGS])
    assert len(some) > 500
    with Sandbox(some) as box, CodeMode(box, approvals=True, catalog_tokens=8000) as mode:
        text = mode.definitions("mcp")[0]["description"]
    assert len(text) < 4 * 8000 + 8000  # the language's own text comes before the catalog
    assert "issues" in text
