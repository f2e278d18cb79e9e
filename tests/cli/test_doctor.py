"""`moonbox doctor`."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

from moonbox.worker.jail.probe import LAYERS

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    from .terminal import Terminal

    Moonbox = Callable[..., subprocess.CompletedProcess[str]]
    Open = Callable[..., Terminal]


def test_every_layer_is_told_with_its_reason(moonbox: Moonbox) -> None:
    done = moonbox("doctor", "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["ok"], found["isolation"]["active"]) == (0, True, True)
    assert tuple(layer["name"] for layer in found["layers"]) == LAYERS
    assert all(layer["detail"] for layer in found["layers"])
    assert {"lupa", "pydantic", "typer"} <= {package["name"] for package in found["packages"] if package["version"]}


@pytest.mark.skipif(sys.platform != "linux", reason="the layers are Linux's")
def test_layers_are_those_of_a_real_worker(moonbox: Moonbox) -> None:
    layers = {layer["name"]: layer for layer in json.loads(moonbox("doctor", "--json").stdout)["layers"]}
    # The probe tries this layer with 60 seconds; a worker does not ask for it.
    assert layers["cpu-limit"] == {
        "name": "cpu-limit",
        "active": False,
        "detail": "not asked for: the host's clock ends a run",
    }
    assert layers["seccomp"]["active"]


def test_the_table(terminal: Open) -> None:
    screen = terminal("doctor")
    assert screen.ended() == 0
    assert "running scripts" in screen.text
    for name in ("process", "interrupt", *LAYERS, "lupa"):
        assert any(line[3:].startswith(name) and line[0] in "✓–" for line in screen.text.splitlines()), name
    assert "Scripts run in processes of their own" in screen.text.splitlines()[-1]


def test_status_1_where_scripts_cannot_be_isolated(moonbox: Moonbox, tmp_path: Path) -> None:
    # A package of the same name in front of the real one, so that no worker can come up.
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.executable = '/nowhere/python'\n")
    done = moonbox("doctor", env={"PYTHONPATH": str(tmp_path)})
    assert done.returncode == 1
    assert "the zygote process cannot be started" in " ".join(done.stdout.split())
    assert "Scripts cannot be isolated here" in done.stdout
