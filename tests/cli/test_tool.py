"""`moonbox init` and `moonbox tool`, as the commands they are."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.programs import program

if TYPE_CHECKING:
    from pathlib import Path


def moonbox(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(program("-m", "moonbox", *arguments), cwd=folder, capture_output=True, text=True, check=False)


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
        (["tools"], "'tools' is a folder; name one of its scripts"),
        (["moonbox.toml"], "'moonbox.toml' is not a tool script, which ends in .lua"),
        (["tools/helo.lua"], "unknown tool script 'tools/helo.lua'; did you mean 'tools/hello.lua'?"),
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
    assert checked.stderr.startswith("tools/bad.lua:1: syntax error: unexpected symbol near <eof>\n")
    assert "2 tool scripts checked, 1 broken" in checked.stdout
    assert "broken" in moonbox(project, "tool", "list").stdout


def test_a_script_is_listed_and_tested_under_the_name_of_its_tool(project: Path) -> None:
    (project / "tools" / "file.lua").write_text(
        "tool = {name = 'own'}\nfunction tool.execute() return context.tool end\n"
    )
    assert [item["name"] for item in json.loads(moonbox(project, "tool", "list", "--json").stdout)] == ["own", "hello"]
    for given in ("own", "tools/file.lua"):
        assert moonbox(project, "tool", "test", given).stdout == "own\n"
    done = moonbox(project, "tool", "test", "file")
    assert (done.returncode, done.stderr) == (2, "error: tools/file.lua defines the tool 'own'; use that name\n")


def test_a_run_that_may_use_a_broken_script_says_so(project: Path) -> None:
    (project / "tools" / "bad-one.lua").write_text("tool = {}")
    warning = "the tool script bad-one.lua is broken: tool.execute is not a function; "
    assert moonbox(project, "run", "-e", "return tools.bad_one{}").stderr.startswith(warning)
    assert moonbox(project, "run", "-e", "return 1").stderr == ""


def test_nothing_is_overwritten(project: Path) -> None:
    for arguments in (["init"], ["tool", "init", "hello"]):
        done = moonbox(project, *arguments)
        assert done.returncode == 2
        assert "exists already; nothing was changed" in done.stderr


def test_a_new_tool_may_have_every_name_that_a_tool_may_have(project: Path) -> None:
    assert moonbox(project, "tool", "init", "my-tool").returncode == 0
    assert moonbox(project, "tool", "test", "my-tool", "--param", "name=x").stdout == '{"count":1,"text":"Hello, x!"}\n'
    run = moonbox(project, "run", "-e", "return tools.my_tool{name = 'y'}.text")
    assert (run.stdout, run.stderr) == ("Hello, y!\n", "")


@pytest.mark.parametrize("name", ["a/b", "../up", "", " x", "a.b", 'quo"te', ".hidden"])
def test_names_that_a_tool_or_its_file_cannot_have_are_refused(tmp_path: Path, name: str) -> None:
    done = moonbox(tmp_path, "tool", "init", name)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: invalid tool name {name!r}; use letters, digits, - and _\n"


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


def test_a_failing_script_is_shown_with_its_line_and_its_log(project: Path) -> None:
    source = "tool = {}\nfunction tool.execute(params)\n  log.info('begun', {n = 1})\n  local x\n  return x.y\nend\n"
    (project / "tools" / "oops.lua").write_text(source)
    done = moonbox(project, "tool", "test", "oops")
    assert (done.returncode, done.stdout) == (1, "")
    lines = done.stderr.splitlines()
    assert lines[0] == 'log.INFO: begun {"n": 1}'
    assert lines[1].startswith("tools/oops.lua:5: runtime error: attempt to index a nil value (local 'x')")
    assert "  5 |   return x.y" in lines
    assert "run 1" not in done.stderr


def test_check_shows_the_line(project: Path) -> None:
    (project / "tools" / "bad.lua").write_text("tool = {}\nif x = 1 then end\n")
    done = moonbox(project, "tool", "check")
    assert (done.returncode, done.stdout) == (1, "2 tool scripts checked, 1 broken\n")
    assert done.stderr.startswith("tools/bad.lua:2: syntax error: ")
    assert "  2 | if x = 1 then end" in done.stderr.splitlines()


def test_examples_beside_a_script(project: Path) -> None:
    examples = project / "tools" / "hello.examples.json"
    good = {"params": {"name": "moon"}, "result": {"text": "Hello, moon!", "count": 1}}
    examples.write_text(json.dumps([good, {"name": "no name", "params": {}, "error": "name: missing"}]))
    done = moonbox(project, "tool", "test", "hello")
    assert done.returncode == 0, done.stderr
    assert done.stdout == 'ok      hello: {"name":"moon"}\nok      hello: no name\n2 examples, 0 failed\n'
    examples.write_text(json.dumps([{**good, "result": 1}]))
    done = moonbox(project, "tool", "test")
    assert done.returncode == 1
    assert 'failed  hello: {"name":"moon"}\n  expected 1, not {"count":1,"text":"Hello, moon!"}\n' in done.stdout
    examples.write_text('[{"parms": {}}]')
    done = moonbox(project, "tool", "test", "hello")
    assert (done.returncode, done.stderr) == (
        2,
        "error: hello.examples.json[0]: unknown key 'parms'; did you mean 'params'?\n",
    )


def test_watching(project: Path) -> None:
    script = project / "tools" / "hello.lua"
    command = [sys.executable, "-m", "moonbox", "tool", "test", "hello", "--param", "name=moon", "--watch"]
    with subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        assert "Hello, moon!" in watching.stdout.readline()
        script.write_text(script.read_text().replace('"Hello"', '"Goodbye"'))
        assert "Goodbye, moon!" in watching.stdout.readline()
        watching.send_signal(signal.SIGINT)
        assert watching.wait(30) == 0


def test_a_time_limit_names_the_setting_that_sets_it(project: Path) -> None:
    (project / "tools" / "slow.lua").write_text("tool = {}\nfunction tool.execute() while true do end end\n")
    (project / "moonbox.toml").write_text('[tools.script.slow]\npath = "tools/slow.lua"\ntimeout = 0.2\n')
    done = moonbox(project, "tool", "test", "slow")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "limit: timeout under [tools.script.slow] sets it"
    (project / "tools" / "slow.lua").write_text("tool = {}\nfunction tool.execute() return ('x'):rep(1e9) end\n")
    (project / "moonbox.toml").write_text('[tools.script.slow]\npath = "tools/slow.lua"\ntimeout = 60\n')
    assert "limit:" not in moonbox(project, "tool", "test", "slow").stderr, "no setting changes this one"


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("return function() end", "two.lua: runtime error: value is a function, which cannot leave the script"),
        ("error('wrong', 2)", "two.lua: runtime error: wrong"),
        ("return nil .. 1", "two.lua:2: runtime error: attempt to concatenate a nil value"),
    ],
)
@pytest.mark.parametrize("ending", ["", "\n", "\nreturn 1\n"])
def test_lines_that_the_file_does_not_have_are_not_shown(project: Path, body: str, says: str, ending: str) -> None:
    (project / "two.lua").write_text(f"tool = {{}}\nfunction tool.execute() {body} end{ending}")
    done = moonbox(project, "tool", "test", "two.lua")
    assert done.returncode == 1
    assert done.stderr.splitlines()[0] == says
    assert not {"3", "4", "5"} & {line.split("|")[0].strip() for line in done.stderr.splitlines()}
    assert "tool.execute(params, context)" not in done.stderr


def test_a_missing_grant_is_told_without_advice_for_a_model(project: Path) -> None:
    (project / "tools" / "reads.lua").write_text("tool = {}\nfunction tool.execute() return fs.read('data/x') end\n")
    done = moonbox(project, "tool", "test", "reads")
    assert done.returncode == 1
    assert done.stderr.startswith(
        'tools/reads.lua:2: denied: reading data/x is not granted; add read = ["./data"] under [tools.script.reads]\n'
    )
    assert "hint" not in done.stderr


def test_a_configuration_that_is_not_trusted_says_what_to_do(project: Path) -> None:
    with (project / "moonbox.toml").open("a") as file:
        file.write('\n[tools.script.hello]\npath = "tools/hello.lua"\nread = ["data"]\n')
    environment = {"PATH": os.environ["PATH"], "HOME": str(project), "MOONBOX_HOME": str(project / "home")}
    done = subprocess.run(
        program("-m", "moonbox", "run", "-e", "1"),
        cwd=project, env=environment, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    path = project / "moonbox.toml"
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith(f"\nLook at it and run `moonbox trust {path}`; for CI, set MOONBOX_TRUST=1\n")
    again = subprocess.run(
        program("-m", "moonbox", "run", "-e", "1"),
        cwd=project, env={**environment, "MOONBOX_TRUST": "1"}, capture_output=True, text=True, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert (again.returncode, again.stdout) == (0, "1\n"), again.stderr
