"""The protocol's conformance suite: what docs/mcp-conformance.md says is what the suite finds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.mcp import conformance

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("run", conformance.SERVER_RUNS)
def test_server_scenarios(run: str, tmp_path: Path) -> None:
    with conformance.server_for(run, tmp_path) as url:
        results = conformance.run_server(url)
    assert results == {name: row[run] for name, row in conformance.expected("server scenarios").items()}


def test_nothing_is_lost_behind_moonbox() -> None:
    for name, row in conformance.expected("server scenarios").items():
        expected = "no checks" if name == "server-sse-polling" else "passed"
        assert row["alone"] == row["everything"] == row["everything-earlier"] == expected, name


@pytest.mark.parametrize("scenario", conformance.CLIENT_SCENARIOS)
def test_client_scenarios(scenario: str) -> None:
    assert conformance.run_client(scenario) == conformance.expected("client scenarios")[scenario]["moonbox"]
