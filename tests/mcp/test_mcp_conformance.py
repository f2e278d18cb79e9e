"""The protocol's conformance suite: what docs/mcp-conformance.md says is what the suite finds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.long import LONG
from tests.mcp import conformance

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("run", conformance.SERVER_RUNS if LONG else ("everything-both", "moonbox"))
def test_server_scenarios(run: str, tmp_path: Path) -> None:
    with conformance.server_for(run, tmp_path) as url:
        results = conformance.run_server(url)
    assert results == {name: row[run] for name, row in conformance.expected("server scenarios").items()}


def test_nothing_is_lost_behind_moonbox() -> None:
    for name, row in conformance.expected("server scenarios").items():
        expected = "no checks" if name == "server-sse-polling" else "passed"
        assert {row[run] for run in conformance.SERVER_RUNS if run != "moonbox"} == {expected}, name


@pytest.fixture(scope="module")
def client_results() -> dict[str, str]:
    return conformance.run_clients()


def test_every_client_scenario_is_known(client_results: dict[str, str]) -> None:
    assert set(client_results) == set(conformance.CLIENT_SCENARIOS)


@pytest.mark.parametrize("scenario", conformance.CLIENT_SCENARIOS)
def test_client_scenarios(scenario: str, client_results: dict[str, str]) -> None:
    assert client_results[scenario] == conformance.expected("client scenarios")[scenario]["moonbox"]
