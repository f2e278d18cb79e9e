"""The shared cases in Node and Chromium: a sample here; `run.py` runs them all and writes docs/javascript.md."""

from __future__ import annotations

import re
import zlib
from typing import TYPE_CHECKING

import pytest

from tests.conformance.cases import SharedCase, conformance_tools, shared_cases
from tests.conformance.hosts import Host, open_host, why_missing
from tests.conformance.table import PAGE, REASONS
from tests.long import LONG

if TYPE_CHECKING:
    from collections.abc import Iterator

SHARE = 12  # one case in so many: starting a worker for each of a thousand takes minutes
LEAST = 0.99


def sample(host: str) -> list[SharedCase]:
    """Another part for each host, and always the same."""
    return [case for case in shared_cases() if zlib.crc32(f"{host} {case.name}".encode()) % SHARE == 0]


@pytest.fixture(scope="module")
def hosts() -> Iterator[dict[str, Host]]:
    opened: dict[str, Host] = {"process": open_host("process", conformance_tools())}
    yield opened
    for host in opened.values():
        host.close()


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", ["node", "chromium"] if LONG else ["node"])
def test_a_sample_of_the_cases(name: str, hosts: dict[str, Host]) -> None:
    if missing := why_missing(name):
        pytest.skip(missing)
    host = open_host(name, conformance_tools())
    try:
        failures = {}
        for case in sample(name):
            if differences := case.play(host, hosts["process"]):
                failures[case.name] = differences
    finally:
        host.close()
    assert {name: found for name, found in failures.items() if name not in REASONS} == {}


@pytest.mark.parametrize("title", ["Node", "Chromium"])
def test_the_table_is_full_and_good_enough(title: str) -> None:
    rows = [line.strip("| \n").split(" | ") for line in PAGE.read_text(encoding="utf-8").splitlines() if " of " in line]
    head = next(line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| cases |"))
    column = [cell.strip() for cell in head.strip("|").split("|")].index(title)
    total = next(row for row in rows if row[0] == "**all**")
    passed, cases = map(int, re.fullmatch(r"(\d+) of (\d+)", total[column].strip()).groups())  # type: ignore[union-attr]
    assert cases >= 900
    assert passed / cases >= LEAST
