"""The providers' examples, run against the model on loopback."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.adapters.test_litellm import REQUIREMENTS as LITELLM
from tests.adapters.test_local import LLAMA
from tests.adapters.venvs import ROOT, is_ready, run_in
from tests.environments import INSTALL_SECONDS

if TYPE_CHECKING:
    from pathlib import Path

SECONDS = 300
"""For one example: enough on a machine that has much else to do."""
HERE = ("openai_chat", "openai_responses", "anthropic_messages", "google_genai", "local_server", "plain_dicts")


def test_every_example_is_run() -> None:
    found = {path.stem for path in (ROOT / "examples" / "providers").glob("*.py")}
    assert found == {*HERE, "litellm_any", "llama_cpp_model"}


@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize("name", HERE)
def test_an_example(name: str) -> None:
    command = [sys.executable, "-W", "error", str(ROOT / "examples" / "providers" / f"{name}.py"), "--loopback"]
    check(subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False))


@pytest.mark.timeout(SECONDS)
def test_an_example_runs_where_it_was_copied_to(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "mine")
    command = [sys.executable, "-W", "error", str(tmp_path / "mine" / "providers" / "plain_dicts.py"), "--loopback"]
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    check(
        subprocess.run(
            command, capture_output=True, text=True, timeout=SECONDS, check=False, cwd=tmp_path, env=environment
        )
    )


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*/*.py")), ids=lambda path: path.stem)
def test_one_file_by_itself_says_what_it_needs(path: Path, tmp_path: Path) -> None:
    if "from common import" not in path.read_text("utf-8"):
        pytest.skip("it needs no other file")
    (tmp_path / "providers").mkdir()
    alone = shutil.copy(path, tmp_path / "providers" / path.name)
    done = subprocess.run([sys.executable, alone], capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 1
    assert done.stderr == "common.py is missing: copy the whole folder 'examples', not one file of it\n"


@pytest.mark.timeout(INSTALL_SECONDS)
def test_the_example_of_litellm() -> None:
    check(run_in("litellm", LITELLM, "examples/providers/litellm_any.py", "--loopback"))


@pytest.mark.skipif(
    not is_ready("llama-cpp", LLAMA) and not os.environ.get("MOONBOX_BUILD_LLAMA"),
    reason="compiling llama.cpp takes half an hour: set MOONBOX_BUILD_LLAMA=1 to do it once",
)
@pytest.mark.timeout(INSTALL_SECONDS)
def test_the_example_of_llama_cpp() -> None:
    check(run_in("llama-cpp", LLAMA, "examples/providers/llama_cpp_model.py", "--loopback"))


@pytest.mark.timeout(SECONDS)
def test_without_a_key_it_says_so() -> None:
    command = [sys.executable, str(ROOT / "examples" / "providers" / "openai_chat.py")]
    environment = {name: value for name, value in os.environ.items() if name != "OPENAI_API_KEY"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False, env=environment)
    assert done.stdout.startswith("(OPENAI_API_KEY is not set: a model on loopback answers)\n")
    assert done.returncode == 0


def check(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stderr
    assert "It is 129." in done.stdout
    assert "parallel.map" in done.stdout
    assert "    (expected: 58232.09)" in done.stdout
