"""Environments that tests make for packages which do not fit into the main one, by uv: seconds instead of minutes."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

INSTALL_SECONDS = 1800
_AT_ONCE = 3
_OWN = ("PYTHON", "VIRTUAL_ENV", "PYTEST", "SSL_CERT_", "BEFORE_TESTS_")
_AUTHORITY = Path(__file__).with_name("authority.pem")
_BEFORE = "BEFORE_TESTS_"  # begins the names under which the processes of a test run find what the first one changed


def trust_nobody_elsewhere() -> None:
    """Have clients in this process and those that it starts trust one authority, which has signed nothing.

    Tests ask nothing of servers elsewhere, and to read everybody's authorities takes longer than most clients live.
    """
    for name, value in offline().items():
        os.environ.setdefault(_BEFORE + name, os.environ.get(name, ""))
        os.environ[name] = value


def offline() -> dict[str, str]:
    """The variables that say whom to trust: nobody."""
    return {"SSL_CERT_FILE": str(_AUTHORITY), "SSL_CERT_DIR": str(_AUTHORITY.parent)}  # no folder of authorities


def _trusted() -> dict[str, str]:
    """Where this machine keeps those whom it trusts: for what is downloaded, which the tests themselves do not."""
    before = {name: os.environ.get(_BEFORE + name, os.environ.get(name, "")) for name in offline()}
    return {name: value for name, value in before.items() if value}


def make_environment(folder: Path, *requirements: str) -> Path:
    """The Python of a new environment in `folder`, with these installed."""
    checked([*_uv(), "venv", "--clear", "--quiet", "--python", sys.executable, str(folder)])
    python = folder / "bin" / "python"
    if requirements:
        install(python, *requirements)
    return python


def install(python: Path, *requirements: str) -> None:
    """Install these, and what they need, for that Python."""
    checked([*_uv(), "pip", "install", "--quiet", "--python", str(python), *requirements])


def run(
    command: Sequence[str], *, cwd: Path | None = None, timeout: float, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program in the environment that it should have."""
    return subprocess.run(
        list(command),
        cwd=cwd,
        env=environment_for_programs(env or {}),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def environment_for_programs(more: Mapping[str, str]) -> dict[str, str]:
    """This process's environment, with nothing in it that is meant for its own interpreter and tests."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(_OWN)}
    return {**kept, **_trusted(), **more}


def checked(
    command: Sequence[str],
    *,
    cwd: Path | None = None,
    timeout: float = INSTALL_SECONDS,
    env: Mapping[str, str] | None = None,
) -> str:
    """What a program prints; its failure is an AssertionError with its last words."""
    done = run(command, cwd=cwd, timeout=timeout, env=env)
    assert done.returncode == 0, f"{' '.join(command)} failed:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def _uv() -> list[str]:
    return [sys.executable, "-m", "uv"]


def main() -> None:
    """Make all of them ahead of the tests: peers for MCP, a specification, environments of frameworks and engines."""
    from tests.adapters.frameworks import FRAMEWORKS
    from tests.adapters.venvs import ENGINES, venv
    from tests.mcp import peers
    from tests.sources import specifications

    work: list[Callable[[], object]] = []
    if specifications.missing() is None:
        work.append(specifications.github)
    if peers.missing() is None:
        work.append(peers.install)
    work += [partial(venv, name, framework.requirements) for name, framework in FRAMEWORKS.items()]
    work.append(partial(venv, "engines", ENGINES))
    with ThreadPoolExecutor(_AT_ONCE) as threads:  # they wait for downloads, and for the disk
        for done in [threads.submit(each) for each in work]:
            done.result()


if __name__ == "__main__":
    main()
