"""What is built to be installed in empty environments, and the lowest versions that are allowed there."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.environments import checked

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
    checked([sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)])
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return sdist, wheel


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
    return checked([str(python), "-I", str(script)], cwd=folder, env={"MOONBOX_HOME": str(folder / "home")})
