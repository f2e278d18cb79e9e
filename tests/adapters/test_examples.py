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

from tests.adapters.frameworks import EXAMPLES, check_example
from tests.adapters.test_litellm import REQUIREMENTS as LITELLM
from tests.adapters.test_local import LLAMA
from tests.adapters.venvs import ROOT, is_ready, run_in
from tests.environments import INSTALL_SECONDS
from tests.programs import program

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SECONDS = 300
"""For one example: enough on a machine that has much else to do."""
PROVIDERS = ("openai_chat", "openai_responses", "anthropic_messages", "google_genai", "local_server", "plain_dicts")
LAST_LINE = {
    "demo.py": "Try it yourself in your browser: make console",
    "mcp/approvals.py": '{"gear":"47 x gear ordered","washer":"50 x washer ordered"}',
}
TOOLS = ("demo.py", "payments.py")
"""Modules of tools, for --tools."""
PACKAGES = {"anthropic_messages": "anthropic", "google_genai": "google", "plain_dicts": None}
"""The extra of each provider's example, where it is not openai."""


def test_every_example_is_run() -> None:
    written = {str(path.relative_to(ROOT / "examples")) for path in (ROOT / "examples").rglob("*.py")}
    frameworks = {f"frameworks/{name}.py" for names in EXAMPLES.values() for name in names}
    providers = {f"providers/{name}.py" for name in (*PROVIDERS, "litellm_any", "llama_cpp_model")}
    others = {path for path in written if path.startswith("wire/")} | {"loopback.py"}
    assert written == {*frameworks, *providers, *LAST_LINE, *TOOLS, *others}


def alone(
    path: str, folder: Path, *arguments: str, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a copy of the example in a folder that holds nothing else, with nothing else in the environment."""
    copy = shutil.copy(ROOT / "examples" / path, folder)
    kept = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    command = [sys.executable, "-W", "error", str(copy), *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=SECONDS, check=False, cwd=folder, env={**kept, **(env or {})}
    )


@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize("name", PROVIDERS)
def test_an_example_of_a_provider(name: str, tmp_path: Path) -> None:
    with serve(answer) as wire:
        done = alone(f"providers/{name}.py", tmp_path, env=environment(wire.url))
    assert done.returncode == 0, done.stderr
    assert "It is 460500." in done.stdout
    assert "tools.get_expenses{employee_id = id}" in done.stdout
    assert wire.refused == []


@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize("path", LAST_LINE)
def test_an_example_without_a_model(path: str, tmp_path: Path) -> None:
    done = alone(path, tmp_path, *(["--yes"] if "approvals" in path else []))
    assert done.returncode == 0, done.stderr
    last = done.stdout.splitlines()[-1]
    assert (json.loads(last) if last.startswith("{") else last) == (
        json.loads(LAST_LINE[path]) if last.startswith("{") else LAST_LINE[path]
    )


@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize("path", TOOLS)
def test_a_module_of_tools(path: str, tmp_path: Path) -> None:
    shutil.copy(ROOT / "examples" / path, tmp_path)
    command = program("-m", "moonbox", "catalog", "--tools", path)
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False, cwd=tmp_path)
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
    done = alone(f"providers/{name}.py", tmp_path, env={"PYTHONPATH": str(blocked)})
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith(f"; install it with: pip install 'moonbox[{package}]'")


@pytest.mark.timeout(SECONDS)
def test_without_a_key_it_says_so(tmp_path: Path) -> None:
    done = alone("providers/openai_chat.py", tmp_path)
    assert done.returncode == 1
    assert "OPENAI_API_KEY" in done.stderr
    done = alone("providers/plain_dicts.py", tmp_path)
    assert (done.returncode, done.stderr) == (1, "set OPENAI_API_KEY first\n")


@pytest.mark.timeout(SECONDS)
def test_without_a_key_in_the_checkout(tmp_path: Path) -> None:
    command = [sys.executable, "examples/loopback.py", "examples/providers/openai_chat.py"]
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=SECONDS, check=False, cwd=ROOT, env=environment
    )
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "It is 460500.")


@pytest.mark.timeout(INSTALL_SECONDS)
def test_the_example_of_litellm(tmp_path: Path) -> None:
    check_example("providers/litellm_any.py", "litellm", LITELLM, tmp_path)


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
