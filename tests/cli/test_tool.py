"""`moonbox init` and `moonbox tool`, as the commands they are."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Moonbox


@pytest.fixture
def project(tmp_path: Path, moonbox: Moonbox) -> Path:
    assert moonbox("init").returncode == 0
    assert moonbox("tool", "init", "hello").returncode == 0
    return tmp_path


def test_a_new_tool_works_at_once_by_its_file_and_by_its_name(moonbox: Moonbox, project: Path) -> None:
    done = moonbox("tool", "test", "tools/hello.lua", "--param", "name=moon", "--param", "times=2", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["values"] == [{"text": "Hello, moon! Hello, moon!", "count": 2}]
    for given in ("name=42", '{"name": "42"}'):
        assert moonbox("tool", "test", "hello", "--param", given).stdout == '{"count":1,"text":"Hello, 42!"}\n'


WRONG = (
    ("hello", "name: missing, expected string"),
    ("hello --param nam=x", "did you mean 'name'?"),
    ("hello --param name=x --param times=many", "times: expected integer"),
    ("hello --param name", "--param must be key=value or one JSON object, not 'name'"),
    ("hello --param {", "--param is not valid JSON"),
    ("nothing", "unknown tool script 'nothing'; `moonbox tool list` lists the configured ones"),
    ("helo", "unknown tool script 'helo'; did you mean 'hello'?"),
    ("tools", "'tools' is a folder; name one of its scripts"),
    ("moonbox.toml", "'moonbox.toml' is not a tool script, which ends in .lua"),
    ("tools/helo.lua", "unknown tool script 'tools/helo.lua'; did you mean 'tools/hello.lua'?"),
)


def test_wrong_use_is_told_with_status_2(moonbox: Moonbox, project: Path) -> None:
    for arguments, says in WRONG:
        done = moonbox("tool", "test", *arguments.split())
        assert (done.returncode, done.stdout) == (2, ""), arguments
        assert says in done.stderr


def test_list_and_check(moonbox: Moonbox, project: Path) -> None:
    checked = moonbox("tool", "check")
    assert (checked.returncode, checked.stdout) == (0, "1 tool script checked, 0 broken\n")
    (project / "tools" / "bad.lua").write_text("tool = {}\nif x = 1 then end\n")
    listed = json.loads(moonbox("tool", "list", "--json").stdout)
    assert {item["name"]: item["ok"] for item in listed} == {"bad": False, "hello": True}
    checked = moonbox("tool", "check")
    assert (checked.returncode, checked.stdout) == (1, "2 tool scripts checked, 1 broken\n")
    assert checked.stderr.startswith("tools/bad.lua:2: syntax error: ")
    assert "  2 | if x = 1 then end" in checked.stderr.splitlines()
    assert "broken" in moonbox("tool", "list").stdout
    (project / "moonbox.toml").write_text("[tools]\nfolders = ['tools']\ndisabled = ['hel*']\n")
    assert any(line.split()[:2] == ["hello", "disabled"] for line in moonbox("tool", "list").stdout.splitlines())
    listed = json.loads(moonbox("tool", "list", "--json").stdout)
    assert {item["name"]: item["disabled"] for item in listed} == {"bad": False, "hello": True}


def test_a_script_is_listed_and_tested_under_the_name_of_its_tool(moonbox: Moonbox, project: Path) -> None:
    (project / "tools" / "file.lua").write_text(
        "tool = {name = 'own'}\nfunction tool.execute() return context.tool end\n"
    )
    assert [item["name"] for item in json.loads(moonbox("tool", "list", "--json").stdout)] == ["own", "hello"]
    for given in ("own", "tools/file.lua"):
        assert moonbox("tool", "test", given).stdout == "own\n"
    done = moonbox("tool", "test", "file")
    assert (done.returncode, done.stderr) == (2, "error: tools/file.lua defines the tool 'own'; use that name\n")


def test_a_run_that_may_use_a_broken_script_says_so(moonbox: Moonbox, project: Path) -> None:
    (project / "tools" / "bad-one.lua").write_text("tool = {}")
    warning = "the tool script bad-one.lua is broken: tool.execute is not a function; "
    assert moonbox("run", "-e", "return tools.bad_one{}").stderr.startswith(warning)
    assert moonbox("run", "-e", "return 1").stderr == ""


def test_nothing_is_overwritten(moonbox: Moonbox, project: Path) -> None:
    for arguments in (["init"], ["tool", "init", "hello"]):
        done = moonbox(*arguments)
        assert done.returncode == 2
        assert "exists already; nothing was changed" in done.stderr


def test_a_new_tool_may_have_every_name_that_a_tool_may_have(moonbox: Moonbox, project: Path) -> None:
    assert moonbox("tool", "init", "my-tool").returncode == 0
    assert moonbox("tool", "test", "my-tool", "--param", "name=x").stdout == '{"count":1,"text":"Hello, x!"}\n'
    run = moonbox("run", "-e", "return tools.my_tool{name = 'y'}.text")
    assert (run.stdout, run.stderr) == ("Hello, y!\n", "")


def test_names_that_a_tool_or_its_file_cannot_have_are_refused(moonbox: Moonbox) -> None:
    for name in ("a/b", "../up", "", " x", "a.b", 'quo"te', ".hidden"):
        done = moonbox("tool", "init", name)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == f"error: invalid tool name {name!r}; use letters, digits, - and _\n"


def test_init_elsewhere_says_where_to_go_on(moonbox: Moonbox, tmp_path: Path) -> None:
    done = moonbox("init", "new project")
    assert done.stdout == (
        "new project/moonbox.toml is written, and the folder new project/tools/ for tool scripts. Next:\n\n"
        "  cd 'new project'\n  moonbox tool init hello\n"
        "  moonbox tool test hello --param name=moon\n\n"
    )
    assert "cd " not in moonbox("init").stdout


def test_a_file_where_a_folder_should_be(moonbox: Moonbox, tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("")
    for command in (["init", "notes"], ["tool", "init", "hello", "--folder", "notes"]):
        done = moonbox(*command)
        assert (done.returncode, done.stderr) == (2, "error: notes is a file, not a folder; nothing was changed\n")


def test_a_failing_script_is_shown_with_its_line_and_its_log(moonbox: Moonbox, project: Path) -> None:
    source = "tool = {}\nfunction tool.execute(params)\n  log.info('begun', {n = 1})\n  local x\n  return x.y\nend\n"
    (project / "tools" / "oops.lua").write_text(source)
    done = moonbox("tool", "test", "oops")
    assert (done.returncode, done.stdout) == (1, "")
    lines = done.stderr.splitlines()
    assert lines[0] == 'log.INFO: begun {"n": 1}'
    assert lines[1].startswith("tools/oops.lua:5: runtime error: attempt to index a nil value (local 'x')")
    assert "  5 |   return x.y" in lines
    assert "run 1" not in done.stderr


def test_examples_beside_a_script(moonbox: Moonbox, project: Path) -> None:
    examples = project / "tools" / "hello.examples.json"
    good = {"params": {"name": "moon"}, "result": {"text": "Hello, moon!", "count": 1}}
    examples.write_text(json.dumps([good, {"name": "no name", "params": {}, "error": "name: missing"}]))
    done = moonbox("tool", "test", "hello")
    assert done.returncode == 0, done.stderr
    assert done.stdout == 'ok      hello: {"name":"moon"}\nok      hello: no name\n2 examples, 0 failed\n'
    examples.write_text(json.dumps([{**good, "result": 1}]))
    done = moonbox("tool", "test")
    assert done.returncode == 1
    assert 'failed  hello: {"name":"moon"}\n  expected 1, not {"count":1,"text":"Hello, moon!"}\n' in done.stdout
    told = moonbox("tool", "test", "hello", "--json")
    (example,) = json.loads(told.stdout)
    assert (told.returncode, example["tool"], example["example"], example["ok"]) == (
        1,
        "hello",
        '{"name":"moon"}',
        False,
    )
    assert example["problem"].startswith("expected 1, not ")
    examples.write_text('[{"parms": {}}]')
    done = moonbox("tool", "test", "hello")
    assert (done.returncode, done.stderr) == (
        2,
        "error: hello.examples.json[0]: unknown key 'parms'; did you mean 'params'?\n",
    )


def test_watching(moonbox: Moonbox, project: Path) -> None:
    script = project / "tools" / "hello.lua"
    command = [sys.executable, "-m", "moonbox", "tool", "test", "hello", "--param", "name=moon", "--watch"]
    with subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        assert "Hello, moon!" in watching.stdout.readline()
        script.write_text(script.read_text().replace('"Hello"', '"Goodbye"'))
        assert "Goodbye, moon!" in watching.stdout.readline()
        watching.send_signal(signal.SIGINT)
        assert watching.wait(30) == 0


def test_a_time_limit_names_the_setting_that_sets_it(moonbox: Moonbox, project: Path) -> None:
    (project / "tools" / "slow.lua").write_text("tool = {}\nfunction tool.execute() while true do end end\n")
    (project / "moonbox.toml").write_text('[tools.script.slow]\npath = "tools/slow.lua"\ntimeout = 0.2\n')
    done = moonbox("tool", "test", "slow")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "limit: timeout under [tools.script.slow] sets it"
    (project / "tools" / "slow.lua").write_text("tool = {}\nfunction tool.execute() return ('x'):rep(1e9) end\n")
    (project / "moonbox.toml").write_text('[tools.script.slow]\npath = "tools/slow.lua"\ntimeout = 60\n')
    assert "limit:" not in moonbox("tool", "test", "slow").stderr, "no setting changes this one"


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("return function() end", "two.lua: runtime error: value is a function, which cannot leave the script"),
        ("error('wrong', 2)", "two.lua: runtime error: wrong"),
        ("return nil .. 1", "two.lua:2: runtime error: attempt to concatenate a nil value"),
    ],
)
def test_lines_that_the_file_does_not_have_are_not_shown(
    moonbox: Moonbox, tmp_path: Path, body: str, says: str
) -> None:
    for ending in ("", "\n", "\nreturn 1\n"):
        (tmp_path / "two.lua").write_text(f"tool = {{}}\nfunction tool.execute() {body} end{ending}")
        done = moonbox("tool", "test", "two.lua")
        assert (done.returncode, done.stderr.splitlines()[0]) == (1, says)
        assert not {"3", "4", "5"} & {line.split("|")[0].strip() for line in done.stderr.splitlines()}
        assert "tool.execute(params, context)" not in done.stderr


def test_a_missing_grant_is_told_without_advice_for_a_model(moonbox: Moonbox, project: Path) -> None:
    (project / "tools" / "reads.lua").write_text("tool = {}\nfunction tool.execute() return fs.read('data/x') end\n")
    done = moonbox("tool", "test", "reads")
    assert done.returncode == 1
    assert done.stderr.startswith(
        'tools/reads.lua:2: denied: reading data/x is not granted; add read = ["./data"] under [tools.script.reads]\n'
    )
    assert "hint" not in done.stderr


def test_a_configuration_that_is_not_trusted_says_what_to_do(moonbox: Moonbox, project: Path) -> None:
    path = project / "moonbox.toml"
    path.write_text(path.read_text() + '\n[tools.script.hello]\npath = "tools/hello.lua"\nread = ["data"]\n')
    done = moonbox("run", "-e", "1", env={"MOONBOX_TRUST": ""})
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith(f"\nLook at it and run `moonbox trust {path}`; for CI, set MOONBOX_TRUST=1\n")
    assert moonbox("run", "-e", "1").stdout == "1\n"


def test_init_names_what_it_makes(moonbox: Moonbox, tmp_path: Path) -> None:
    done = moonbox("init", "shop")
    assert done.stdout.startswith("shop/moonbox.toml is written, and the folder shop/tools/ for tool scripts. Next:\n")
    assert (tmp_path / "shop" / "tools").is_dir()


def test_saved_scripts_are_listed_and_replaced(moonbox: Moonbox, project: Path) -> None:
    nowhere = moonbox("script", "list")
    assert (nowhere.returncode, nowhere.stdout) == (2, "")
    assert nowhere.stderr == 'error: no folder for saved scripts; add saved = "saved" under [tools] in moonbox.toml\n'
    (project / "moonbox.toml").write_text('[tools]\nsaved = "saved"\n[audit]\npath = "trail.db"\n')
    assert moonbox("trust", ".").returncode == 0
    assert moonbox("script", "list").stdout.startswith("no scripts are saved; `moonbox script save")
    assert moonbox("run", "-e", "local n = 3\nreturn n * 2").stdout == "6\n"
    save = ("script", "save", "--last", "--name", "double", "--param", "n")
    assert moonbox(*save).returncode == 0
    assert [item["name"] for item in json.loads(moonbox("script", "list", "--json").stdout)] == ["double"]
    assert "double" in moonbox("script", "list").stdout
    again = moonbox(*save)
    assert again.stderr.endswith("'double' already; --replace (in code: replace=True) makes a new version\n")
    assert " is version 2 of the tool 'double'" in moonbox(*save, "--replace").stdout
