"""Virtual environments for packages that do not fit into the main one, made on demand and kept in `.cache/adapters`.

    python = venv("llama-cpp", ["gguf>=0.17,<1"])               its interpreter, with moonbox from this checkout
    done = run_in("llama-cpp", [...], "tests/adapters/run_llama_example.py", "example.py")
    check_inside("llama-cpp", [...], "inside_llama_cpp.py")     a file of tests, run by the pytest in there

Files of tests for such an environment are called `inside_*.py`, so that the main pytest does not collect them.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import shutil
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.environments import install, make_environment, offline, run

if TYPE_CHECKING:
    import os
    import subprocess
    from collections.abc import Iterator, Mapping, Sequence

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
CACHE = ROOT / ".cache" / "adapters"
NO_PLUGINS = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
"""For pytest there: packages bring plugins that nobody asked for."""
ENGINES = ("dbos>=3.3,<4", "temporalio>=1.35,<2")
"""Engines for workflows, in one environment."""
_TEST_PACKAGES = ("pytest>=8.3,<10", "pytest-timeout>=2.3,<3")


def venv(name: str, requirements: Sequence[str]) -> Path:
    """The Python of the environment `name`, made on the first use and brought up to date when moonbox needs more."""
    folder = CACHE / name
    python = folder / "bin" / "python"
    made_for, holding = _fingerprints(requirements)
    with _locked(name):
        marker = folder / "moonbox-fingerprint"
        found = marker.read_text().split() if marker.is_file() else []
        if found == [made_for, holding]:
            return python
        if found[:1] != [made_for]:
            shutil.rmtree(folder, ignore_errors=True)
            make_environment(folder)
        install(python, "--requirements", str(ROOT / "pyproject.toml"), *_TEST_PACKAGES, *requirements)
        [packages] = folder.glob("lib/python*/site-packages")
        (packages / "moonbox.pth").write_text(str(ROOT / "src"))  # with the native parts that were built there
        marker.write_text(f"{made_for} {holding}")
    return python


def is_ready(name: str, requirements: Sequence[str]) -> bool:
    """Whether the environment is there already: for those whose making takes many minutes."""
    marker = CACHE / name / "moonbox-fingerprint"
    return marker.is_file() and marker.read_text().split()[:1] == [_fingerprints(requirements)[0]]


def run_in(
    name: str,
    requirements: Sequence[str],
    script: str | os.PathLike[str],
    *arguments: str,
    timeout: float = 120.0,
    env: Mapping[str, str] | None = None,
    cwd: Path = ROOT,
) -> subprocess.CompletedProcess[str]:
    """Run a script (a path, from the repository's root if it is relative) in the environment."""
    command = [str(venv(name, requirements)), str(ROOT / script), *arguments]
    return run(command, cwd=cwd, timeout=timeout, env={**offline(), **(env or {})})


def check_inside(name: str, requirements: Sequence[str], tests: str, *, timeout: float = 900.0) -> None:
    """Run a file of tests, beside this one, by the pytest of the environment; its failures fail the caller."""
    command = [str(venv(name, requirements)), *pytest_arguments(TESTS / "adapters" / tests)]
    reported(run(command, cwd=ROOT, timeout=timeout, env={**offline(), **NO_PLUGINS}), tests)


def pytest_arguments(*tests: Path, options: Sequence[str] = ()) -> list[str]:
    """How the Python of an environment is told to run files of tests, from the repository's root."""
    settings = ["-q", "-p", "no:cacheprovider", "--rootdir", str(ROOT), "-c", str(ROOT / "pyproject.toml")]
    settings += ["-p", "pytest_timeout"]
    settings += ["-o", "timeout=120"]  # so that a test that hangs says where before all of them are ended
    return ["-m", "pytest", *settings, *options, *map(str, tests)]


def reported(done: subprocess.CompletedProcess[str], tests: str) -> None:
    if done.returncode != 0:
        pytest.fail(f"{tests}:\n{done.stdout}\n{done.stderr}", pytrace=False)


def _fingerprints(requirements: Sequence[str]) -> tuple[str, str]:
    """What the environment was made for, and what moonbox itself needs in it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return _hash([sys.version, str(ROOT), *requirements]), _hash([*sorted(project["dependencies"]), *_TEST_PACKAGES])


def _hash(parts: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


@contextlib.contextmanager
def _locked(name: str) -> Iterator[None]:
    """One maker at a time, over all processes."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
