"""`moonbox init` and `moonbox tool`, as the commands they are."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


def moonbox(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "moonbox", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    assert moonbox(tmp_path, "init").returncode == 0
    assert moonbox(tmp_path, "tool", "init", "hello").returncode == 0
    return tmp_path


def test_a_new_tool_works_at_once(project: Path) -> None:
    done = moonbox(project, "tool", "test", "tools/hello.lua", "--param", "name=moon", "--param", "times=2", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["values"] == [{"text": "Hello, moon! Hello, moon!", "count": 2}]


def test_a_tool_is_found_by_its_name_too(project: Path) -> None:
    done = moonbox(project, "tool", "test", "hello", "--param", "name=42")
    assert done.stdout.strip() == '{"count":1,"text":"Hello, 42!"}'


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["hello"], "name: missing, expected string"),
        (["hello", "--param", "nam=x"], "did you mean 'name'?"),
        (["hello", "--param", "name=x", "--param", "times=many"], "times: expected integer"),
        (["hello", "--param", "name"], "--param must be key=value or one JSON object, not 'name'"),
        (["nothing"], "unknown tool script 'nothing'; `moonbox tool list` lists the configured ones"),
        (["helo"], "unknown tool script 'helo'; did you mean 'hello'?"),
    ],
)
def test_wrong_use_is_told_with_status_2(project: Path, arguments: list[str], says: str) -> None:
    done = moonbox(project, "tool", "test", *arguments)
    assert done.returncode == 2
    assert says in done.stderr


def test_a_failing_script_has_status_1(project: Path) -> None:
    (project / "tools" / "oops.lua").write_text("tool = {} function tool.execute() error('no luck') end")
    done = moonbox(project, "tool", "test", "oops")
    assert done.returncode == 1
    assert "no luck" in done.stderr


def test_list_and_check(project: Path) -> None:
    checked = moonbox(project, "tool", "check")
    assert (checked.returncode, checked.stdout) == (0, "1 tool script checked, 0 broken\n")
    (project / "tools" / "bad.lua").write_text("tool = {")
    listed = json.loads(moonbox(project, "tool", "list", "--json").stdout)
    assert {item["name"]: item["ok"] for item in listed} == {"bad": False, "hello": True}
    checked = moonbox(project, "tool", "check")
    assert checked.returncode == 1
    assert "bad.lua cannot be loaded" in checked.stderr
    assert "2 tool scripts checked, 1 broken" in checked.stdout
    assert "broken" in moonbox(project, "tool", "list").stdout


def test_nothing_is_overwritten(project: Path) -> None:
    for arguments in (["init"], ["tool", "init", "hello"]):
        done = moonbox(project, *arguments)
        assert done.returncode == 2
        assert "exists already; nothing was changed" in done.stderr


def test_names_that_a_script_cannot_write_are_refused(tmp_path: Path) -> None:
    done = moonbox(tmp_path, "tool", "init", "odd-name")
    assert done.returncode == 2
    assert "invalid tool name 'odd-name'" in done.stderr


def test_init_elsewhere_says_where_to_go_on(tmp_path: Path) -> None:
    done = moonbox(tmp_path, "init", "new project")
    assert done.stdout == (
        "new project/moonbox.toml is ready. Next:\n\n  cd 'new project'\n  moonbox tool init hello\n"
        "  moonbox tool test hello --param name=moon\n\n"
    )
    assert "cd " not in moonbox(tmp_path, "init").stdout


def test_a_file_where_a_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("")
    for command in (["init", "notes"], ["tool", "init", "hello", "--folder", "notes"]):
        done = moonbox(tmp_path, *command)
        assert (done.returncode, done.stderr) == (2, "error: notes is a file, not a folder; nothing was changed\n")
