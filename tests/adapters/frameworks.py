"""Frameworks in environments of their own: what each holds, and what is run in it.

Tests, examples and the page of a framework are forked from one process that has imported it.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loopback import answer, environment
from wire import serve

from tests.adapters.venvs import NO_PLUGINS, ROOT, TESTS, pytest_arguments, reported, venv
from tests.environments import environment_for_programs, offline, run
from tests.programs import Programs

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping
    from pathlib import Path

SECONDS = 900.0
"""For one file: enough on a machine that has much else to do."""
TOTAL = "460500"
"""What the question of every example and page comes to."""


@dataclass(frozen=True)
class Framework:
    """What its environment holds, and which modules its tests, examples and page import, some when they are used."""

    requirements: tuple[str, ...]
    modules: tuple[str, ...]
    examples: tuple[str, ...]
    """None is called like the package: a script's own folder is the first where Python looks."""
    ignored: str = "ignore::ResourceWarning"
    """Warnings: frameworks leave sockets to the garbage collector."""


FRAMEWORKS = {
    "fastmcp": Framework(
        ("fastmcp>=4.1,<5", "openai>=3,<4"),
        ("fastmcp.client", "fastmcp.experimental.transforms.code_mode", "openai", "moonbox.adapters.fastmcp"),
        ("frameworks/fastmcp_server.py",),
    ),
    "langchain": Framework(
        ("langchain>=1.3,<2", "langchain-openai>=1.7,<2"),
        ("langchain.agents", "langchain_openai", "langgraph.prebuilt", "moonbox.adapters.langchain"),
        ("frameworks/langchain_agent.py", "frameworks/langgraph_graph.py"),
    ),
    "litellm": Framework(
        ("litellm[mcp]>=1.100,<2",),  # without [mcp] it cannot send tools
        ("litellm", "openai.resources", "mcp.server", "moonbox.adapters.litellm"),
        ("providers/litellm_any.py",),
        "ignore",  # it leaves coroutines to the garbage collector too, and uses what others have deprecated
    ),
    "llamaindex": Framework(
        ("llama-index-core>=0.14.25,<0.15", "llama-index-llms-openai-like>=0.8,<0.9"),
        ("llama_index.core.agent.workflow", "llama_index.llms.openai_like", "openai.resources"),
        ("frameworks/llamaindex_agent.py",),
    ),
    "openai_agents": Framework(
        ("openai-agents>=0.24,<0.25",),
        ("agents", "moonbox.adapters.openai_agents"),
        ("frameworks/openai_agents_runner.py",),
    ),
    "pydantic_ai": Framework(
        ("pydantic-ai-slim[openai]>=2.66,<3",),
        ("pydantic_ai.models.openai", "pydantic_ai.providers.openai", "moonbox.adapters.pydantic_ai"),
        ("frameworks/pydantic_ai_agent.py",),
    ),
    "smolagents": Framework(
        ("smolagents[openai]>=1.26,<2",),
        ("smolagents", "openai.resources", "moonbox.adapters.smolagents"),
        ("frameworks/smolagents_agent.py",),
    ),
}

_OFFLINE = {**offline(), "LITELLM_LOCAL_MODEL_COST_MAP": "True", "OPENAI_AGENTS_DISABLE_TRACING": "1"}
"""No request to the web on import, and none afterwards."""


class Inside:
    """A framework's environment, in use until it is closed."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._framework = FRAMEWORKS[name]
        python = venv(name, self._framework.requirements)
        self._programs = Programs(
            "moonbox.sandbox.sandbox", *self._framework.modules, python=python, env=environment_for_programs(_OFFLINE)
        )

    def close(self) -> None:
        self._programs.close()

    def check(self) -> None:
        """Run every file of tests for the framework by the pytest in there; their failures fail the caller."""
        tests = sorted((TESTS / "adapters").glob(f"inside_{self.name}*.py"))
        arguments = pytest_arguments(*tests, options=("-W", self._framework.ignored))
        reported(self._run(*arguments, env=NO_PLUGINS), f"inside_{self.name}*.py")

    def check_example(self, path: str, folder: Path) -> None:
        """Copy an example, alone, into an empty folder and run it, with a model on loopback."""
        (folder / path).parent.mkdir(parents=True)
        copy = shutil.copy(ROOT / "examples" / path, folder / path)
        with serve(answer) as wire:
            done = self._run(str(copy), env=environment(wire.url), cwd=folder)
        assert done.returncode == 0, done.stderr
        assert TOTAL in done.stdout.splitlines()[-1], done.stdout
        assert wire.refused == []

    def page(self) -> str:
        """What the code of the framework's page of the documentation prints."""
        page = f"docs/frameworks/{self.name.replace('_', '-')}.md"
        done = self._run(str(TESTS / "adapters" / "page.py"), page)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def _run(
        self, *arguments: str, env: Mapping[str, str] | None = None, cwd: Path = ROOT
    ) -> subprocess.CompletedProcess[str]:
        command = self._programs.command(*arguments)
        return run(command, cwd=cwd, timeout=SECONDS, env={**_OFFLINE, **(env or {})})
