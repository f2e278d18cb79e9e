"""`moonbox doctor`."""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING

import pytest

from moonbox.project.diagnosis import Doctor
from moonbox.worker.jail.config import LAYERS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .conftest import Moonbox
    from .terminal import Terminal

    Open = Callable[..., Terminal]


def test_every_layer_is_told_with_its_reason(moonbox: Moonbox) -> None:
    done = moonbox("doctor", "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["ok"], found["isolation"]["active"]) == (0, True, True)
    assert tuple(layer["name"] for layer in found["layers"]) == LAYERS
    assert all(layer["detail"] for layer in found["layers"])
    assert {"lupa", "pydantic", "typer"} <= {package["name"] for package in found["packages"] if package["version"]}
    extras = {package["name"]: package["extra"] for package in found["packages"]}
    smallest = {"lupa": None, "pypdf": "pdf", "mcp": "mcp", "jinja2": "console", "starlette": "http", "sqlglot": "sql"}
    assert {name: extras[name] for name in smallest} == smallest


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


def test_the_loop_can_be_chosen(moonbox: Moonbox) -> None:
    native = json.loads(moonbox("doctor", "--json", env={"MOONBOX_NATIVE": "0"}).stdout)["native"]
    assert native == {
        "name": "native",
        "active": False,
        "detail": "workers run in Python: MOONBOX_NATIVE=0 turns the native parts off",
    }


def test_the_table(terminal: Open) -> None:
    screen = terminal("doctor")
    assert screen.ended() == 0
    assert "running scripts" in screen.text
    for name in ("process", "native", "interrupt", *LAYERS, "lupa"):
        assert any(line[3:].startswith(name) and line[0] in "✓–" for line in screen.text.splitlines()), name
    assert "Scripts run in processes of their own" in screen.text.splitlines()[-1]


def test_status_1_where_scripts_cannot_be_isolated(process: Moonbox, tmp_path: Path) -> None:
    # A package of the same name in front of the real one, so that no worker can come up.
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.executable = '/nowhere/python'\n")
    done = process("doctor", env={"PYTHONPATH": str(tmp_path)})
    assert done.returncode == 1
    assert "a worker cannot be started" in " ".join(done.stdout.split())
    assert "Scripts cannot be isolated here" in done.stdout


def test_the_configuration_is_checked_section_by_section(moonbox: Moonbox, tmp_path: Path) -> None:
    assert json.loads(moonbox("doctor", "--json").stdout)["configuration"] == []
    file = tmp_path / "moonbox.toml"
    file.write_text("[limits]\ntimeout = 5\n[audit]\nenabled = true\n")
    done = moonbox("doctor", "--json")
    assert (done.returncode, json.loads(done.stdout)["configuration"]) == (
        0,
        [{"name": "moonbox.toml", "active": True, "detail": f"{file}: [limits], [audit] valid"}],
    )
    file.write_text('[limits]\ntimeuot = 5\n[audit]\nenabled = true\n[codemode]\nmode = "sometimes"\n')
    done = moonbox("doctor", "--json")
    found = {check["name"]: check for check in json.loads(done.stdout)["configuration"]}
    assert (done.returncode, found["[limits]"]["active"], found["moonbox.toml"]["active"]) == (1, False, True)
    assert found["[limits]"]["detail"] == "moonbox.toml: [limits] unknown key 'timeuot'; did you mean 'timeout'?"
    assert "sometimes" in found["[codemode]"]["detail"]
    shown = moonbox("doctor").stdout
    assert [line.split()[1] for line in shown.splitlines() if line.startswith("✗")] == ["[limits]", "[codemode]"]
    assert shown.splitlines()[-1].endswith(" The configuration is invalid: [limits], [codemode].")


def test_a_configuration_that_cannot_be_read(moonbox: Moonbox, tmp_path: Path) -> None:
    (tmp_path / "other.toml").write_text("[limits")
    done = moonbox("doctor", "--json", "--config", "other.toml")
    (check,) = json.loads(done.stdout)["configuration"]
    assert (done.returncode, check["name"], check["active"]) == (1, "other.toml", False)
    assert check["detail"].startswith("other.toml is not valid TOML: ")


def test_every_section_has_a_reader() -> None:
    from moonbox.config import SECTIONS
    from moonbox.project.sections import READERS

    assert tuple(READERS) == SECTIONS


def test_the_numbers_of_layers_add_up(moonbox: Moonbox) -> None:
    shown = moonbox("doctor").stdout
    layers = json.loads(moonbox("doctor", "--json").stdout)["layers"]
    [heading] = re.findall(r"the workers' jail \((.*)\)", shown)
    numbers = {what: int(count) for count, what in re.findall(r"(\d+) ([a-z ]+)", heading)}
    assert sum(numbers.values()) == len(layers)
    assert numbers["active"] == sum(layer["active"] for layer in layers)
    left_out = [layer["name"] for layer in layers if layer["detail"].startswith(("not asked for", "not needed"))]
    assert numbers["not needed"] == len(left_out) >= 1
    assert not any(name in shown.splitlines()[-1] for name in left_out), "not told as missing"


def test_a_repl_tells_the_layers_of_its_worker() -> None:
    from moonbox import Sandbox

    with Sandbox(min_workers=0) as box:
        repl = box.repl()
        assert list(repl.worker_jail) == []
        repl.run("return 1")
        assert {layer.name for layer in repl.worker_jail} <= set(LAYERS)
        assert any(layer.active and layer.detail for layer in repl.worker_jail)
    with Sandbox(isolation="inline") as box, box.repl() as repl:
        repl.run("return 1")
        assert repl.worker_jail == ()


def test_a_console_tries_the_machine_once_and_reads_the_configuration_each_time(tmp_path: Path) -> None:
    config = tmp_path / "moonbox.toml"
    config.write_text("[limits]\ntimeout = 5\n", encoding="utf-8")
    doctor = Doctor(config)
    first = doctor.diagnose()
    config.write_text("[limits]\ntimeout = -1\n", encoding="utf-8")
    second = doctor.diagnose()
    assert second.isolation is first.isolation and second.layers is first.layers
    assert (first.ok, second.ok) == (True, False)
    assert "timeout" in second.configuration[-1].detail


@pytest.mark.parametrize(
    ("config", "file", "active", "detail"),
    [
        ("path = 'j.db'", None, True, "there is no journal 'j.db'"),
        ("path = 'j.db'", b"this is not SQLite" * 100, False, "j.db"),
        ("durability = 'machine'", None, False, "[journal] has neither path nor url: no run is taken down"),
    ],
)
def test_the_journal_is_read(
    moonbox: Moonbox, tmp_path: Path, config: str, file: bytes | None, active: bool, detail: str
) -> None:
    (tmp_path / "moonbox.toml").write_text(f"[journal]\n{config}\n")
    if file is not None:
        (tmp_path / "j.db").write_bytes(file)
    checks = json.loads(moonbox("doctor", "--json").stdout)["configuration"]
    (journal,) = [check for check in checks if check["name"] == "journal"]
    assert (journal["active"], detail in journal["detail"]) == (active, True), journal


def test_a_journal_that_can_be_read_is_counted(moonbox: Moonbox, tmp_path: Path) -> None:
    (tmp_path / "moonbox.toml").write_text("[journal]\npath = 'j.db'\n")
    assert moonbox("run", "-e", "1").returncode == 0
    checks = json.loads(moonbox("doctor", "--json").stdout)["configuration"]
    assert "j.db can be read: 1 run" in checks[-1]["detail"]
