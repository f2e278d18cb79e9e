"""The examples: each runs when it is copied, alone, into an empty folder with moonbox installed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from loopback import answer, environment
from wire import serve

from tests.adapters.frameworks import FRAMEWORKS
from tests.adapters.test_local import LLAMA
from tests.adapters.venvs import ROOT, is_ready, run_in
from tests.environments import INSTALL_SECONDS, environment_for_programs, offline
from tests.programs import Programs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

SECONDS = 300
"""For one example: enough on a machine that has much else to do."""
PROVIDERS = ("openai_chat", "openai_responses", "anthropic_messages", "google_genai", "local_server", "plain_dicts")
PAGES = ("openai", "anthropic", "google")
"""Pages of the documentation, each with its provider's package."""
LAST_LINE = {
    "demo.py": "Try it yourself in your browser: make console",
    "functions.py": "('8.93 €', 'Sunday')",
    "overnight.py": "undo_pay pay-the-night-shift-undo-2 ada",
    "mcp/approvals.py": '{"gear":"47 x gear ordered","washer":"50 x washer ordered"}',
}
TOOLS = ("demo.py", "payments.py")
"""Modules of tools, for --tools."""
PACKAGES = {"anthropic_messages": "anthropic", "google_genai": "google", "plain_dicts": None}
"""The extra of each provider's example, where it is not openai."""
MODULES = ("openai.resources", "anthropic.resources", "google.genai", "moonbox")
KEPT = {"PATH": os.environ["PATH"], **offline()}


def test_every_example_is_run() -> None:
    written = {str(path.relative_to(ROOT / "examples")) for path in (ROOT / "examples").rglob("*.py")}
    frameworks = {path for framework in FRAMEWORKS.values() for path in framework.examples}
    providers = {f"providers/{name}.py" for name in (*PROVIDERS, "llama_cpp_model")}
    others = {path for path in written if path.startswith("wire/")} | {
        "loopback.py",
        "expenses.py",
    }
    engines = {"engines/dbos_workflow.py", "engines/temporal_workflow.py"}
    assert written == {*frameworks, *providers, *engines, *LAST_LINE, *TOOLS, *others}


@pytest.fixture(scope="module")
def programs() -> Iterator[Programs]:
    """Programs that find the providers' packages loaded."""
    with Programs(*MODULES, options=("-W", "error"), env=KEPT) as programs:
        yield programs


def alone(
    programs: Programs, path: str, folder: Path, *arguments: str, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a copy of the example in a folder that holds nothing else, with nothing else in the environment."""
    copy = shutil.copy(ROOT / "examples" / path, folder)
    return _run(programs.command(copy, *arguments), folder, {**KEPT, "HOME": str(folder), **(env or {})})


def _run(command: list[str], folder: Path, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, capture_output=True, text=True, timeout=SECONDS, check=False, cwd=folder, env=environment
    )


@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize("name", PROVIDERS)
def test_an_example_of_a_provider(programs: Programs, name: str, tmp_path: Path) -> None:
    with serve(answer) as wire:
        done = alone(programs, f"providers/{name}.py", tmp_path, env=environment(wire.url))
    assert done.returncode == 0, done.stderr
    assert "It is 460500." in done.stdout
    assert "tools.get_expenses{employee_id = id}" in done.stdout
    assert wire.refused == []


@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize("path", LAST_LINE)
def test_an_example_without_a_model(programs: Programs, path: str, tmp_path: Path) -> None:
    done = alone(programs, path, tmp_path, *(["--yes"] if "approvals" in path else []))
    assert done.returncode == 0, done.stderr
    last = done.stdout.splitlines()[-1]
    assert (json.loads(last) if last.startswith("{") else last) == (
        json.loads(LAST_LINE[path]) if last.startswith("{") else LAST_LINE[path]
    )


@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize("path", TOOLS)
def test_a_module_of_tools(programs: Programs, path: str, tmp_path: Path) -> None:
    shutil.copy(ROOT / "examples" / path, tmp_path)
    done = _run(
        programs.command("-m", "moonbox", "catalog", "--tools", path), tmp_path, environment_for_programs(offline())
    )
    assert done.returncode == 0, done.stderr
    assert "employee_id: integer" in done.stdout


@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize("name", [name for name in PROVIDERS if PACKAGES.get(name, "openai")])
def test_without_its_package_it_says_what_to_install(name: str, tmp_path: Path) -> None:
    package = PACKAGES.get(name, "openai")
    blocked = tmp_path / "blocked"
    blocked.mkdir()
    module = "google.genai" if package == "google" else package
    (blocked / "sitecustomize.py").write_text(f"import sys\nsys.modules[{module!r}] = None\n")
    copy = shutil.copy(ROOT / "examples" / "providers" / f"{name}.py", tmp_path)
    done = _run([sys.executable, str(copy)], tmp_path, {**KEPT, "HOME": str(tmp_path), "PYTHONPATH": str(blocked)})
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith(f"; install it with: pip install 'moonbox[{package}]'")


@pytest.mark.timeout(SECONDS)
def test_without_a_key_it_says_so(programs: Programs, tmp_path: Path) -> None:
    done = alone(programs, "providers/openai_chat.py", tmp_path)
    assert done.returncode == 1
    assert "OPENAI_API_KEY" in done.stderr
    done = alone(programs, "providers/plain_dicts.py", tmp_path)
    assert (done.returncode, done.stderr) == (1, "set OPENAI_API_KEY first\n")


@pytest.mark.timeout(SECONDS)
def test_without_a_key_in_the_checkout(programs: Programs, tmp_path: Path) -> None:
    command = programs.command("examples/loopback.py", "examples/providers/openai_chat.py")
    done = _run(command, ROOT, {**KEPT, "HOME": str(tmp_path)})
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "It is 460500.")


@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_of_the_documentation(programs: Programs, name: str) -> None:
    command = programs.command(ROOT / "tests" / "adapters" / "page.py", f"docs/frameworks/{name}.md")
    done = _run(command, ROOT, environment_for_programs(offline()))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("It is 460500.\nIt is 460500.\n")


@pytest.mark.skipif(
    not is_ready("llama-cpp", LLAMA) and not os.environ.get("MOONBOX_BUILD_LLAMA"),
    reason="compiling llama.cpp takes half an hour: set MOONBOX_BUILD_LLAMA=1 to do it once",
)
@pytest.mark.timeout(INSTALL_SECONDS)
def test_the_example_of_llama_cpp(tmp_path: Path) -> None:
    copy = shutil.copy(ROOT / "examples" / "providers" / "llama_cpp_model.py", tmp_path)
    done = run_in("llama-cpp", LLAMA, "tests/adapters/run_llama_example.py", str(copy))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "It is 460500."
