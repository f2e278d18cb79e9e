"""The shell of flake.nix has what the tests need of the system."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_shell_has_every_package_of_the_system_that_the_ci_installs() -> None:
    installed = re.findall(r"apt-get install ((?:-\S+ )*)(.+?)(?: \|\||$)", (ROOT / ".ci" / "run").read_text(), re.M)
    wanted = {name for _, names in installed for name in names.split()}
    assert {"chromium", "postgresql"} <= wanted
    flake = (ROOT / "flake.nix").read_text()
    named = {name for line in re.findall(r"^ +pkgs\.\S+ # apt: (.+)$", flake, re.M) for name in line.split()}
    assert named == wanted


def test_the_shell_has_what_make_calls() -> None:
    flake = (ROOT / "flake.nix").read_text()
    assert {"python311", "gnumake", "gcc", "git", "nodejs_22"} <= set(re.findall(r"^ +pkgs\.(\w+)", flake, re.M))
    assert flake.count("{") == flake.count("}") and flake.count("[") == flake.count("]")
