"""Peers: MCP servers and clients that others wrote, installed once into a cache beside the repository.

    npm    the reference servers everything, filesystem, memory and sequential-thinking; the inspector and its node;
           the protocol's conformance suite
    PyPI   the reference servers time, git and fetch, in an environment of their own

`python tests/mcp/peers.py` installs them ahead of the tests.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.environments import checked, make_environment

__all__ = ["CACHE", "conformance", "inspector", "install", "missing", "server"]

CACHE = Path(os.environ.get("MOONBOX_TEST_CACHE", Path(__file__).parents[2] / ".cache")) / "mcp-peers"

SERVERS = {
    "@modelcontextprotocol/server-everything": "2026.8.31",
    "@modelcontextprotocol/server-filesystem": "2026.8.31",
    "@modelcontextprotocol/server-memory": "2026.8.31",
    "@modelcontextprotocol/server-sequential-thinking": "2026.8.31",
}
INSPECTOR = {"@modelcontextprotocol/inspector": "2.12.0", "node": "22.23.3"}
CONFORMANCE = {"@modelcontextprotocol/conformance": "0.1.16", "node": "22.23.3"}
PYTHON = {"mcp-server-time": "2026.10.19", "mcp-server-git": "2026.10.19", "mcp-server-fetch": "2026.10.24"}


def missing() -> str | None:
    """Why the peers cannot be here; None when they can."""
    return None if shutil.which("npm") and shutil.which("node") else "node and npm are not installed"


def install() -> None:
    """Install what is not installed yet."""
    CACHE.mkdir(parents=True, exist_ok=True)
    (CACHE / ".gitignore").write_text("*\n")
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # test runs side by side wait for one another
        _npm("servers", SERVERS)
        _npm("inspector", INSPECTOR)
        _npm("conformance", CONFORMANCE)
        _python()


def server(name: str) -> str:
    """The program of a reference server."""
    for folder in (CACHE / "servers" / "node_modules" / ".bin", CACHE / "python" / "bin"):
        if (folder / f"mcp-server-{name}").exists():
            return str(folder / f"mcp-server-{name}")
    raise LookupError(name)


def conformance() -> tuple[str, dict[str, str]]:
    """The conformance suite's program, and the environment in which it finds its node."""
    folder = CACHE / "conformance" / "node_modules" / ".bin"
    return str(folder / "conformance"), {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}


def inspector() -> tuple[str, dict[str, str]]:
    """The inspector's program, and the environment in which it finds its node."""
    folder = CACHE / "inspector" / "node_modules" / ".bin"
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    return str(folder / "mcp-inspector"), {**os.environ, "PATH": path, "MCP_INSPECTOR_SECRET_STORE": "memory"}


def _npm(name: str, packages: dict[str, str]) -> None:
    folder = CACHE / name
    if _is_done(folder, packages):
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "package.json").write_text(json.dumps({"private": True, "dependencies": packages}))
    checked(["npm", "install", "--no-audit", "--no-fund", "--loglevel=error"], cwd=folder)
    _done(folder, packages)


def _python() -> None:
    folder = CACHE / "python"
    if _is_done(folder, PYTHON):
        return
    shutil.rmtree(folder, ignore_errors=True)
    make_environment(folder, *(f"{name}=={version}" for name, version in PYTHON.items()))
    _done(folder, PYTHON)


def _stamp(packages: dict[str, str]) -> str:
    return hashlib.sha256(json.dumps([packages, sys.version_info[:2]], sort_keys=True).encode()).hexdigest()


def _is_done(folder: Path, packages: dict[str, str]) -> bool:
    mark = folder / "installed"
    return mark.is_file() and mark.read_text() == _stamp(packages)


def _done(folder: Path, packages: dict[str, str]) -> None:
    (folder / "installed").write_text(_stamp(packages))


if __name__ == "__main__":
    install()
    print(f"installed in {CACHE}")
