"""Environments of the agent frameworks: what each holds, and what is run in it."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from loopback import answer, environment
from wire import serve

from tests.adapters.venvs import ROOT, TESTS, check_inside, run_in

if TYPE_CHECKING:
    from collections.abc import Sequence
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
SECONDS = 900.0
"""For one file: enough on a machine that has much else to do."""


def check(name: str) -> None:
    """Run every file of tests for a framework, in its environment."""
    first, *others = sorted((TESTS / "adapters").glob(f"inside_{name}*.py"))
    options = ("-W", "ignore::ResourceWarning")  # frameworks leave sockets to the garbage collector
    check_inside(name, REQUIREMENTS[name], first.name, *options, *map(str, others), timeout=SECONDS)


def check_example(path: str, name: str, requirements: Sequence[str], folder: Path) -> None:
    """Copy an example, alone, into an empty folder and run it in an environment, with a model on loopback."""
    (folder / path).parent.mkdir(parents=True)
    copy = shutil.copy(ROOT / "examples" / path, folder / path)
    with serve(answer) as wire:
        done = run_in(name, requirements, copy, timeout=SECONDS, env=environment(wire.url), cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "460500" in done.stdout.splitlines()[-1], done.stdout
    assert wire.refused == []


def run_page(name: str) -> str:
    """Run the code of a framework's page of the documentation, in its environment; what it prints."""
    page = f"docs/frameworks/{name.replace('_', '-')}.md"
    done = run_in(name, REQUIREMENTS[name], "tests/adapters/page.py", page, timeout=SECONDS)
    assert done.returncode == 0, done.stderr
    return done.stdout
