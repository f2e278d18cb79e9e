"""Specifications of real services, taken from packages of the npm registry into a cache beside the repository."""

from __future__ import annotations

import fcntl
import os
import shutil
import tarfile
import tempfile
from pathlib import Path

from tests.environments import checked

CACHE = Path(os.environ.get("MOONBOX_TEST_CACHE", Path(__file__).parents[2] / ".cache")) / "specifications"
PACKAGE, VERSION, FILE = "@octokit/openapi", "23.0.2", "api.github.com.json"


def missing() -> str | None:
    """Why the specification cannot be here; None when it can."""
    return None if shutil.which("npm") else "npm is not installed"


def github() -> Path:
    """GitHub's specification, fetched the first time."""
    CACHE.mkdir(parents=True, exist_ok=True)
    (CACHE / ".gitignore").write_text("*\n")
    target = CACHE / f"{VERSION}-{FILE}"
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # test runs side by side wait for one another
        if not target.exists():
            with tempfile.TemporaryDirectory() as folder:
                checked(["npm", "pack", "--silent", f"{PACKAGE}@{VERSION}"], cwd=Path(folder), timeout=300)
                with tarfile.open(next(Path(folder).glob("*.tgz"))) as package:
                    content = package.extractfile(f"package/generated/{FILE}")
                    assert content is not None
                    draft = target.with_suffix(".draft")
                    draft.write_bytes(content.read())
                    draft.replace(target)
    return target
