"""`moonbox run`: what it prints where, its exit status, its options, its errors."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from moonbox import Run
from moonbox.audit.sinks import open_trail
from moonbox.errors import ScriptError

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import Moonbox
    from .terminal import Terminal

    Open = Callable[..., Terminal]

FULL = Path("/dev/full")


def test_output_comes_first_and_values_are_plain_in_a_pipe(process: Moonbox) -> None:
    done = process("run", "-", input='print("a", {1, 2}) return "x\\27[1m", {k = {1.5, json.null}}, nil, "é"')
    assert done.stdout == 'a\t[1,2]\nx\x1b[1m\n{"k":[1.5,null]}\nnull\né\n'
    assert (done.returncode, done.stderr) == (0, "")
    done = process("run", "-e", 'return "\\xff\\x00"')
    assert done.stdout.encode("utf-8", "surrogateescape") == b"\xff\x00", "a string that is not UTF-8"


def test_media_are_saved(moonbox: Moonbox, tmp_path: Path) -> None:
    script = "local c = tools.chart{name = '../c.png'} show(c) return tools.chart{name = 'c.png'}.size"
    done = moonbox("run", "-t", "kit", "-e", script)
    assert (done.returncode, done.stdout) == (0, "[c.png: image/png, 14 bytes]\n14\n")
    assert done.stderr.splitlines()[-1] == f"saved moonbox-media{os.sep}c.png"
    assert (tmp_path / "moonbox-media" / "c.png").read_bytes().endswith(b"pixels")
    again = moonbox("run", "-t", "kit", "--json", "-e", script)
    assert "pixels" not in again.stdout and again.stderr.splitlines()[-1].endswith("c-2.png")


@pytest.mark.parametrize(
    ("script", "complains"),
    [
        ("return 6 * 7", False),
        ("return tools.add{a = 41}", False),
        ("return tools['add']{a = 41}", False),
        ("return pcall(tools.gone.list) and 1 or 42", True),
        ("local count = 0 for _ in pairs(tools) do count = count + 1 end return 42", True),
        ("local name = 'add' return tools[name]{a = 41}", True),
    ],
)
def test_a_server_is_started_only_for_scripts_that_may_use_it(
    moonbox: Moonbox, tmp_path: Path, script: str, complains: bool
) -> None:
    (tmp_path / "moonbox.toml").write_text("[tools]\npython = ['kit:add']\n[mcp.servers.gone]\ncommand = 'no-such'\n")
    done = moonbox("run", "-e", script)
    warning = "the MCP server 'gone' is not available: there is no program 'no-such'\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, "42\n", warning if complains else "")


def test_a_failed_script_shows_its_line_and_exits_with_1(moonbox: Moonbox, tmp_path: Path) -> None:
    (tmp_path / "bad.lua").write_text("print('before')\nlocal x = 1\nreturn x.y.z\n")
    done = moonbox("run", "bad.lua")
    assert (done.returncode, done.stdout) == (1, "before\n")
    assert done.stderr.splitlines()[:3] == [
        "bad.lua:3: runtime error: attempt to index a number value (local 'x')",
        "  3 | return x.y.z",
        "    |        ^",
    ]


def test_json_is_the_whole_run(moonbox: Moonbox) -> None:
    done = moonbox("run", "--json", "-e", "x = = 1")
    data = json.loads(done.stdout)
    assert (done.returncode, data["ok"], data["error"]["kind"], done.stderr) == (1, False, "syntax", "")
    done = moonbox("run", "--json", "--tools", "kit", "-e", 'print("hi") return tools.add{a = 2, b = 3}')
    run = Run.from_json(done.stdout)
    assert (run.ok, run.value, run.output) == (True, 5, "hi\n")
    assert [(call.tool, call.arguments, call.result) for call in run.calls] == [("add", {"a": 2, "b": 3}, 5)]


@pytest.mark.parametrize(
    ("option", "script", "limit"),
    [
        ("--timeout=200ms", "while true do end", "time"),
        ("--max-operations=10k", "while true do end", "operations"),
        ("--max-memory=4MiB", "local t = {} while true do t[#t + 1] = {} end", "memory"),
        ("--max-output=100", "while true do print('x') end", "output"),
        ("--limits=untrusted", "while true do end", "operations"),
    ],
)
def test_limits_hold(moonbox: Moonbox, option: str, script: str, limit: str) -> None:
    done = moonbox("run", option, "--tools", "kit", "-e", script)
    assert done.returncode == 1
    assert f"limit reached ({limit}): " in done.stderr


def test_tools_from_python(moonbox: Moonbox) -> None:
    for reference, script, said in (
        ("kit:add", "tools.add(1, 2)", "3\n"),
        ("kit:double", "tools.double(4)", "8\n"),
        ("kit:box", "tools.add(1) + tools.double(1)", "4\n"),
        ("kit", "tools.add(1)", "2\n"),
        ("kit.py:box", "tools.double(1)", "2\n"),
    ):
        done = moonbox("run", "--tools", reference, "-e", script)
        assert (done.stdout, done.stderr, done.returncode) == (said, "", 0)


def test_what_a_tool_prints_goes_to_stderr(moonbox: Moonbox) -> None:
    done = moonbox("run", "-t", "kit", "-e", "tools.noisy()")
    assert (done.stdout, done.stderr) == ("done\n", "from the tool\n")


WRONG = {
    "nix.lua": "the file 'nix.lua' does not exist",
    "sumary.lua": "the file 'sumary.lua' does not exist; did you mean 'summary.lua'?",
    "summary.lu": "the file 'summary.lu' does not exist; did you mean 'summary.lua'?",
    "folder": "'folder' is a folder, not a script",
    "kit.txt": "'kit.txt' does not end in .lua or .rhai or .py; name its language with --language",
    "binary.lua": "'binary.lua' is a binary file, not a script (byte 2 is zero)",
    "latin.lua": "'latin.lua' is not UTF-8 (byte 4 is 0xe9)",
    "compiled.lua": "'compiled.lua' is compiled Lua; only source text can be run",
    "": "a script is required: a file, - for standard input, or -e SCRIPT",
    "summary.lua foo": "a script takes no arguments, got 'foo'; give it a global: --set name=foo",
    "summary.lua 'a=b c' d": "a script takes no arguments, got 'a=b c'; give it a global: --set 'a=b c'",
    "summary.lua -e 1": "use either a file or -e, not both; to give the script a value: --set NAME=summary.lua",
    "-e 1 --timeout 0": "--timeout must be more than 0, not 0.0",
    "-e 1 --features io": "--features: unknown feature 'io'; known features: coroutines, metatables",
    "-e 1 --audit yes": "--audit must be on, off, or a path that ends in .db, .sqlite or .jsonl; not 'yes'",
    "-e 1 -t kit:ad": "--tools kit:ad: the module 'kit' has no 'ad'; did you mean 'add'?",
    "-e 1 -t kitt:x": "--tools kitt:x: the module 'kitt' does not exist; did you mean 'kit'?",
    "-e 1 --set x": "--set must be NAME=VALUE, not 'x'",
    "-e 1 --set 'a b=1'": "'a b' is not a name that a script can write; use letters, digits and _",
    "-e 1 --input no.json": "the file 'no.json' does not exist",
    "-e 1 --input folder": "'folder' is a folder, not a file",
    "-e 1 --input deep.json": "--input: 'deep.json' is not valid JSON: it is nested too deeply",
    "-e 1 --input not_json_number.json": "--input: 'not_json_number.json' is not valid JSON: NaN is not JSON",
    "-e 1 --input bad.json": "--input: 'bad.json' is not valid JSON: Expecting value: line 1 column 1 (char 0)",
}
"""What `moonbox run` says about its arguments."""


def test_wrong_use_is_one_line_and_status_2(moonbox: Moonbox, tmp_path: Path) -> None:
    (tmp_path / "summary.lua").write_text("return 1")
    (tmp_path / "folder").mkdir()
    (tmp_path / "binary.lua").write_bytes(b"ab\0cd")
    (tmp_path / "kit.txt").touch()
    (tmp_path / "latin.lua").write_bytes(b"-- \xc3\xe9t\xe9"[:3] + b" \xe9")
    (tmp_path / "compiled.lua").write_bytes(b"\x1bLua\x54")
    (tmp_path / "bad.json").write_text("nope")
    (tmp_path / "deep.json").write_text("[" * 100_000)
    (tmp_path / "not_json_number.json").write_text('{"a": NaN}')
    for args, message in WRONG.items():
        done = moonbox("run", *shlex.split(args))
        assert (done.returncode, done.stdout, done.stderr) == (2, "", f"error: {message}\n")


def test_the_language_is_that_of_the_suffix_or_of_the_option(moonbox: Moonbox, tmp_path: Path) -> None:
    (tmp_path / "script.txt").write_text("return 1")
    assert moonbox("run", "script.txt", "--language", "lua").stdout == "1\n"
    (tmp_path / "sum.rhai").write_text(
        "#!/usr/bin/env -S moonbox run\nlet t = 0; for x in [1, 2, 3] { t += add(x, 1); } t"
    )
    assert moonbox("run", "sum.rhai", "-t", "kit").stdout == "9\n"
    told = moonbox("run", "--language", "rhai", "-e", "let x = 1; x +").stderr.splitlines()
    assert told[:3] == ["line 1: syntax error: Script is incomplete", "  1 | let x = 1; x +", "    |               ^"]
    (tmp_path / "tool").write_text("#!/usr/bin/env -S moonbox run\nreturn x.y")
    done = moonbox("run", "tool")
    assert done.stderr.startswith("tool:2: runtime error: attempt to index a nil value (global 'x')")


def test_features_open_parts_of_lua(moonbox: Moonbox) -> None:
    script = "setmetatable({}, {__index = function() return 7 end}).x"
    assert moonbox("run", "--features", "metatables,coroutines", "-e", script).stdout == "7\n"
    assert "setmetatable" in moonbox("run", "-e", script).stderr


def test_inline_isolation(moonbox: Moonbox) -> None:
    assert moonbox("run", "--isolation", "inline", "-e", "1 + 1").stdout == "2\n"


def test_runs_are_kept_only_when_asked(moonbox: Moonbox, tmp_path: Path) -> None:
    moonbox("run", "-e", "1")
    assert not (tmp_path / "home").exists()
    moonbox("run", "-e", "2", "--audit", "on")
    moonbox("run", "-e", "3", env={"MOONBOX_AUDIT": "on"})
    moonbox("run", "-e", "4", "--audit", "off", env={"MOONBOX_AUDIT": "on"})
    moonbox("run", "-e", "5", "--audit", "other.jsonl")
    assert [run.title for run in open_trail(tmp_path / "home" / "audit.db").list()] == ["3", "2"]
    assert [run.title for run in open_trail(tmp_path / "other.jsonl").list()] == ["5"]
    assert "1 call" not in moonbox("audit", "list").stdout
    assert moonbox("audit", "list").stdout.count("ok") == 2


def test_an_approve_tool_is_refused_where_nobody_can_be_asked(moonbox: Moonbox) -> None:
    done = moonbox("run", "-t", "kit", "-e", "tools.delete{path = 'a'}")
    assert done.returncode == 1
    assert "denied: the tool 'delete' needs your approval, and there is no terminal to ask you on\n" in done.stderr
    assert "hint" not in done.stderr


def test_a_reader_that_goes_away_is_no_error(environment: dict[str, str]) -> None:
    command = [sys.executable, "-m", "moonbox", "run", "-e", "return (('x'):rep(900000))"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.read(1) == b"x"
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(30) == 1


@pytest.mark.skipif(not FULL.exists(), reason="the system has no full device")
@pytest.mark.parametrize("arguments", [("run", "-e", "6 * 7"), ("run", "--json", "-e", "6 * 7"), ("--help",)])
def test_output_to_a_full_device_is_one_line(environment: dict[str, str], arguments: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "moonbox", *arguments]
    with FULL.open("wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, env=environment, check=False, timeout=60)
    assert done.stderr == b"error: the output cannot be written: No space left on device\n"
    assert done.returncode == 1


@pytest.mark.parametrize("arguments", ["run -e '6 * 7'", "run -", "check -", "--version"])
def test_closed_streams_are_no_error(environment: dict[str, str], tmp_path: Path, arguments: str) -> None:
    command = f"{shlex.quote(sys.executable)} -m moonbox {arguments} <&- >&- 2>said"
    assert subprocess.run(command, shell=True, cwd=tmp_path, env=environment, check=False).returncode == 0
    assert (tmp_path / "said").read_text() == ""


def test_ctrl_c_ends_with_130_and_keeps_what_was_printed(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "kit.py").write_text("import sys\ndef ready():\n    print('ready', file=sys.stderr, flush=True)\n")
    command = [sys.executable, "-m", "moonbox", "run", "-t", "kit:ready"]
    command += ["-e", "print('so far') tools.ready() while true do end"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, env=environment, cwd=tmp_path) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stderr.readline() == b"ready\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (130, b"so far\n")
    assert err.startswith(b"error: interrupted after 1 call")


# In a terminal


def test_values_are_laid_out_and_coloured(terminal: Open) -> None:
    screen = terminal("run", "-e", "print('\\27[2J') return {name = 'x', list = {1, 2}}, 'text', '\\27]0;t\\7'")
    assert screen.ended() == 0
    assert screen.text.splitlines() == ["\\x1b[2J", '{"list": [1, 2], "name": "x"}', "text", "\\x1b]0;t\\x07"]
    assert '\x1b[34m"name"\x1b[0m' in screen.raw


def test_a_long_value_is_shortened(terminal: Open) -> None:
    screen = terminal("run", "-e", "local t = {} for i = 1, 1000 do t[i] = 'item ' .. i end return t")
    assert screen.ended() == 0
    assert "… 800 more" in screen.text
    assert "shortened for the terminal; use a pipe or --json to see everything" in screen.text


def test_an_error_is_coloured(terminal: Open) -> None:
    screen = terminal("run", "-e", "return nix.y")
    assert screen.ended() == 1
    assert "\x1b[1;31mruntime error: \x1b[0m" in screen.raw


def test_calls_are_shown_while_they_happen(terminal: Open, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    screen = terminal("run", "-t", "kit", "-e", "tools.add(1) return tools.wait{fifo = 'fifo'}")
    screen.expect("2 calls")
    screen.expect('wait {"fifo":"fifo"}')
    fifo.write_text("the answer")
    screen.expect("the answer")
    assert screen.ended() == 0
    assert "2 calls · " in screen.rest


def test_progress_is_a_bar_on_a_terminal_only(terminal: Open, moonbox: Moonbox, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    script = "progress(1, 4, 'rows') return tools.wait{fifo = 'fifo'}"
    screen = terminal("run", "-t", "kit", "-e", script)
    screen.expect("━━━━━━━━━━")
    screen.expect("1 of 4, rows")
    fifo.write_text("the answer")
    screen.expect("the answer")
    assert screen.ended() == 0
    piped = moonbox("run", "-e", "progress(1, 4, 'rows') return 'end'")
    assert (piped.stdout, piped.stderr) == ("end\n", "")


def test_a_person_is_asked(terminal: Open) -> None:
    script = "for _, p in ipairs{'a', 'b', 'c', 'd', 'e'} do print(select(2, pcall(tools.delete, {path = p}))) end"
    screen = terminal("run", "-t", "kit", "-e", script)
    question = "allow it? [y]es, [n]o, [a]lways, [e]dit: "
    screen.expect('delete needs your approval: Delete a file for good.\n  path = "a"\n')
    screen.expect(question)
    screen.type("what\n", question)
    screen.type("y\n", "deleted a\n", 'path = "b"', question)
    screen.type("n keep it\n", "delete: a person declined this call: keep it\n", 'path = "c"', question)
    screen.type("e\n", "fields to change")
    screen.type('{"path": \n', "invalid JSON", question)
    screen.type("e\n", "fields to change")
    screen.type('{"path": "z"}\n', "deleted z\n", 'path = "d"', question)
    screen.type("a\n", "deleted d\n", "deleted e\n")
    assert screen.ended() == 0


def test_an_approval_shows_all_or_says_what_is_missing(terminal: Open) -> None:
    screen = terminal("run", "-t", "kit", "-e", "tools.delete{path = ('x'):rep(2500) .. '\\27[2J'}")
    screen.expect("xxx … 511 more characters not shown")
    screen.expect("[v]iew all: ")
    screen.type("v\n", 'xxx\\u001b[2J"\n', "[v]iew all: ")
    screen.type("\x04", "denied: you denied the call of 'delete'\n")
    assert screen.ended() == 1
    assert "do not repeat" not in screen.text


def test_a_denial_is_told_to_the_one_who_denied(terminal: Open) -> None:
    screen = terminal("run", "-t", "kit", "-e", "return tools.delete{path = 'a'}")
    screen.expect("[e]dit: ")
    screen.type("n it is {needed}\n", "line 1: denied: you denied the call of 'delete': it is {needed}\n")
    assert screen.ended() == 1
    assert "hint" not in screen.text


def test_ctrl_c_at_a_question_ends_the_run(terminal: Open) -> None:
    screen = terminal("run", "-t", "kit", "-e", "print('before') tools.delete{path = 'a'}")
    screen.expect("before\n")
    screen.expect("[e]dit: ")
    screen.type("\x03", "error: interrupted after 1 call")
    assert screen.ended() == 130


def test_ctrl_c_withdraws_the_questions_of_a_whole_batch(terminal: Open) -> None:
    script = "parallel.map({1, 2, 3}, function(i) return tools.delete{path = 'p' .. i} end)"
    screen = terminal("run", "-t", "kit", "-e", script)
    screen.expect("[e]dit: ")
    screen.type("\x03", "error: interrupted after 3 calls")
    assert screen.ended() == 130
    assert screen.text.count("needs your approval") == 1


def test_ctrl_c_leaves_the_line_of_the_terminals_own_echo(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from moonbox.cli import output
    from moonbox.cli.script import show_run

    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(output, "is_terminal", lambda *, stderr=False: True)
    stopped = Run("a", "while true do end", error=ScriptError("cancelled", "stopped"))
    show_run(stopped)
    assert capsys.readouterr().err == "\nerror: interrupted\n"


def test_no_colours_for_who_wants_none(terminal: Open) -> None:
    screen = terminal("run", "nothing.lua", env={"NO_COLOR": "1"})
    assert screen.ended() == 2
    assert screen.raw == "error: the file 'nothing.lua' does not exist\r\n"
    screen = terminal("run", "-e", "return {1, 'x'}, nothing.x", env={"NO_COLOR": "1"})
    assert screen.ended() == 1
    assert "\x1b[3" not in screen.raw


def test_ctrl_c_while_a_script_is_being_typed(terminal: Open) -> None:
    screen = terminal("run", "-")
    screen.expect("Type a script; Ctrl-D runs it.\n")
    screen.type("return", "return")
    screen.type("\x03")
    assert screen.ended() == 130
    assert screen.rest == "^C\n"


def test_an_empty_script_is_told_to_the_person(terminal: Open, moonbox: Moonbox, tmp_path: Path) -> None:
    (tmp_path / "empty.lua").write_text("\n")
    screen = terminal("run", "empty.lua")
    assert screen.ended() == 0
    assert screen.text == "empty.lua is empty\n"
    assert (moonbox("run", "empty.lua").stdout, moonbox("run", "empty.lua").stderr) == ("", "")


def test_line_ends_and_marks_of_other_systems(moonbox: Moonbox, tmp_path: Path) -> None:
    (tmp_path / "crlf.lua").write_bytes(b"\xef\xbb\xbfreturn 1\r\n  + 2\r\n")
    assert moonbox("run", "crlf.lua").stdout == "3\n"
    (tmp_path / "bad.lua").write_bytes(b"local x = 1\r\nreturn x..y\r\n")
    assert moonbox("run", "bad.lua").stderr.splitlines()[1] == "  2 | return x..y"


def test_a_missing_file_in_a_folder_that_cannot_be_listed(moonbox: Moonbox, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Path) -> None:
        raise PermissionError

    monkeypatch.setattr("pathlib.Path.iterdir", refuse)  # the tests may run as root, who can list every folder
    assert moonbox("run", "nix.lua").stderr == "error: the file 'nix.lua' does not exist\n"


def test_inputs_are_globals(moonbox: Moonbox, tmp_path: Path) -> None:
    (tmp_path / "data.json").write_text('{"rows": [1, 2, 3], "factor": 10, "nothing": null}')
    script = "local sum = 0 for _, row in ipairs(rows) do sum = sum + row end return sum * factor, who, nothing"
    done = moonbox("run", "-e", script, "--input", "data.json", "--set", "factor=2", "--set", "who=me")
    assert (done.returncode, done.stdout) == (0, "12\nme\nnull\n")
    done = moonbox("run", "-e", "#input", "--input", "-", input="[4, 5]")
    assert (done.returncode, done.stdout) == (0, "2\n")
    assert moonbox("run", "-e", "#x", "--set", "x=" + "[" * 20_000).stdout == "20000\n", "text, as it is not JSON"


def test_a_limit_names_the_option_that_sets_it(moonbox: Moonbox) -> None:
    done = moonbox("run", "--tools", "kit", "--max-calls=2", "-e", "while true do tools.add{a = 1} end")
    assert done.returncode == 1
    assert "hint: a run may make 2 tool calls (max_tool_calls): ask for more with each call" in done.stderr
    assert done.stderr.endswith("limit: --max-calls sets it\n")


PROJECT = """
[tools]
folders = ["tools"]
python = ["crm:find", "more.py:extra"]
"""


def test_the_project_s_tools_are_there(moonbox: Moonbox, tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "deep").mkdir()
    (tmp_path / "tools" / "hi.lua").write_text("tool = {} function tool.execute() return 'hi' end")
    (tmp_path / "crm.py").write_text("def find(id: int) -> str:\n    'Find.'\n    return f'customer {id}'\n")
    (tmp_path / "more.py").write_text("def extra() -> int:\n    'More.'\n    return 7\n")
    (tmp_path / "moonbox.toml").write_text(PROJECT)
    script = "return tools.hi{}, tools.find{id = 3}, tools.extra{}"
    done = moonbox("run", "-e", script, cwd=tmp_path / "deep")
    assert (done.returncode, done.stdout) == (0, "hi\ncustomer 3\n7\n"), done.stderr
    done = moonbox("run", "--no-config", "-e", script)
    assert done.returncode == 1 and "unknown tool 'hi'" in done.stderr
    done = moonbox("run", "--no-config", "--config", "moonbox.toml", "-e", "1")
    assert (done.returncode, done.stderr) == (2, "error: use either --config or --no-config, not both\n")


@pytest.mark.parametrize(
    ("settings", "options", "script", "shown", "says"),
    [
        ("[limits]\nmax_operations = 1000", (), "while true do end", "", "max_operations = 1000"),
        ("[limits]\nmax_operations = 1000", ("--max-operations", "2k"), "while true do end", "", "= 2000"),
        ("[limits]\nmax_operations = 1000", ("--limits", "default"), "for i = 1, 9999 do end return 1", "1\n", ""),
        ("[limits]\ntimeot = 3", (), "return 1", "", "[limits] unknown key 'timeot'; did you mean 'timeout'?"),
        ("[limits]\ntimeout = 'x'", (), "return 1", "", "[limits] timeout must be a number of seconds, not 'x'"),
        ("[sandbox]\nlua_features = ['coroutines']", (), "return type(coroutine)", "table\n", ""),
        ("[sandbox]\nlua_features = ['coroutines']", ("--language", "rhai"), "1 + 1", "2\n", ""),
        ("[sandbox]\nisolation = 'inline'\nrequire = ['seccomp']", (), "return 1", "", "has no jail"),
        ("[sandbox]\nisolation = 'inline'\nrequire = []", ("--isolation", "process"), "return 1", "1\n", ""),
    ],
)
def test_the_sandbox_of_a_project_holds_and_options_change_it(
    moonbox: Moonbox, tmp_path: Path, settings: str, options: tuple[str, ...], script: str, shown: str, says: str
) -> None:
    (tmp_path / "moonbox.toml").write_text(settings)
    done = moonbox("run", *options, "-e", script)
    assert (done.stdout, says in done.stderr) == (shown, True), done.stderr


def test_output_is_shown_while_the_script_runs(terminal: Open, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    screen = terminal("run", "--tools", "kit", "-e", f"print('begun') return tools.wait{{fifo = '{fifo}'}}")
    screen.expect("begun")
    fifo.write_text("now")
    assert "begun" not in screen.expect("now")
    assert screen.ended() == 0
