"""Environments of the agent frameworks: what each holds, and making those that a test run needs two at a time."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING

import pytest

from adapters.venvs import TESTS, check_inside, run_in, venv

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

REQUIREMENTS = {
    "fastmcp": ["fastmcp>=4.1,<5", "openai>=3,<4"],
    "langchain": ["langchain>=1.3,<2", "langchain-openai>=1.7,<2"],
    "llamaindex": ["llama-index-core>=0.14.25,<0.15", "llama-index-llms-openai-like>=0.8,<0.9"],
    "openai_agents": ["openai-agents>=0.24,<0.25"],
    "pydantic_ai": ["pydantic-ai-slim[openai]>=2.66,<3"],
    "smolagents": ["smolagents[openai]>=1.26,<2"],
}
EXAMPLES = {
    "fastmcp": ["fastmcp_server"],
    "langchain": ["langchain_agent", "langgraph_graph"],
    "llamaindex": ["llamaindex_agent"],
    "openai_agents": ["openai_agents_runner"],
    "pydantic_ai": ["pydantic_ai_agent"],
    "smolagents": ["smolagents_agent"],
}
"""Not called like the package: a script's own folder is the first where Python looks."""
AT_ONCE = 2
SECONDS = 900.0
"""For one file: enough on a machine that has much else to do."""
_made = pytest.StashKey[dict[str, "Future[Path]"]]()


def check(name: str, request: pytest.FixtureRequest) -> None:
    """Run every file of tests for a framework, in its environment."""
    _wait_for(name, request)
    first, *others = sorted((TESTS / "adapters").glob(f"inside_{name}*.py"))
    check_inside(name, REQUIREMENTS[name], first.name, *map(str, others), timeout=SECONDS)


def check_examples(name: str, request: pytest.FixtureRequest) -> None:
    """Run a framework's examples, in its environment."""
    _wait_for(name, request)
    for example in EXAMPLES[name]:
        done = run_in(name, REQUIREMENTS[name], f"examples/frameworks/{example}.py", "--loopback", timeout=SECONDS)
        assert done.returncode == 0, done.stderr
        assert [part for part in ("It is 129.", "It is 58232.09.") if part not in done.stdout] == []


def run_page(name: str, request: pytest.FixtureRequest) -> str:
    """Run the code of a framework's page of the documentation, in its environment; what it prints."""
    _wait_for(name, request)
    page = f"docs/frameworks/{name.replace('_', '-')}.md"
    done = run_in(name, REQUIREMENTS[name], "tests/adapters/page.py", page, timeout=SECONDS)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _wait_for(name: str, request: pytest.FixtureRequest) -> None:
    """Until the environment is there. The first who asks begins with all that this run of pytest will need."""
    stash = request.config.stash
    if _made not in stash:
        wanted = {item.path.name for item in request.session.items}
        stash[_made] = {name: Future() for name in REQUIREMENTS if f"test_{name}.py" in wanted}
        waiting = iter(list(stash[_made].items()))
        lock = threading.Lock()
        for _ in range(AT_ONCE):
            threading.Thread(target=_make, args=(waiting, lock), daemon=True).start()
    stash[_made][name].result()


def _make(waiting: Iterator[tuple[str, Future[Path]]], lock: threading.Lock) -> None:
    while True:
        with lock:
            name, future = next(waiting, ("", None))
        if future is None:
            return
        try:
            future.set_result(venv(name, REQUIREMENTS[name]))
        except Exception as problem:  # noqa: BLE001 - whoever waits for it must hear
            future.set_exception(problem)
