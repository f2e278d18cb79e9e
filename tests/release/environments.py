"""Empty environments, and what is built to be installed in them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parents[2]
SMOKE = Path(__file__).with_name("smoke.py")
SMOKE_OF_EXTRAS = Path(__file__).with_name("smoke_extras.py")


def project() -> dict[str, Any]:
    loaded: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    return loaded


def build(folder: Path) -> tuple[Path, Path]:
    """The sdist, and the wheel that is made from it."""
    checked([sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)])
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return sdist, wheel


def environment(folder: Path, *requirements: str) -> Path:
    """A new environment's Python, with these installed and what they need."""
    checked([sys.executable, "-m", "venv", "--without-pip", str(folder)])
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--quiet", "--disable-pip-version-check"]
    checked([*pip, "install", *requirements])
    return python


def lowest(dependencies: Sequence[str]) -> list[str]:
    """Each requirement at its lower bound: `lupa>=2.8,<3` as `lupa==2.8`."""
    pinned = []
    for dependency in dependencies:
        found = re.match(r"(?P<name>[\w.-]+)(?:\[[\w,-]+\])?\s*>=\s*(?P<version>[\w.]+)", dependency)
        assert found is not None, f"{dependency!r} has no lower bound"
        pinned.append(f"{found['name']}=={found['version']}")
    return pinned


def smoke(python: Path, folder: Path, script: Path = SMOKE) -> str:
    """Run the smoke test with that Python, far from the source."""
    folder.mkdir(exist_ok=True)
    return checked([str(python), "-I", str(script)], cwd=folder, home=folder / "home")


def checked(command: Sequence[str], *, cwd: Path | None = None, home: Path | None = None) -> str:
    # Nothing of this process's environment that would change what the other interpreter imports.
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL_ENV", "PYTEST"))}
    if home is not None:
        kept["MOONBOX_HOME"] = str(home)
    done = subprocess.run(
        list(command), cwd=cwd or ROOT, env=kept, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout
