"""`moonbox repl`, at a real terminal and in a pipe."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .conftest import Moonbox
    from .terminal import Terminal

    Open = Callable[..., Terminal]

ENTER, CTRL_C, CTRL_D, TAB, UP = "\r", "\x03", "\x04", "\t", "\x1b[A"


@pytest.fixture
def repl(terminal: Open) -> Callable[..., Terminal]:
    """A prompt that waits for its first script."""

    def start(*args: str, **more: str) -> Terminal:
        screen = terminal("repl", *args, **more)
        screen.expect(":help for help")
        screen.expect("lua> ")
        return screen

    return start


def test_globals_stay_and_values_are_shown(repl: Open) -> None:
    screen = repl()
    screen.type("x = {a = 1, list = {'é', 2.5, true}}" + ENTER, "lua> ")
    screen.type("x, null" + ENTER, '{"a": 1, "list": ["é", 2.5, true]}\nnil\n', "lua> ")
    screen.type(CTRL_D)
    assert screen.ended() == 0


def test_a_local_that_ended_with_its_script_is_explained(repl: Open) -> None:
    screen = repl()
    screen.type("local y, z = 5, 6" + ENTER, "lua> ")
    screen.type("y" + ENTER, "nil\n", "y is nil: `local y` ended with its script; write y = … to keep it\n")
    screen.type("y = 5" + ENTER, "lua> ")
    screen.type("y, nil" + ENTER)
    assert "ended with its script" not in screen.expect("lua> ")


def test_an_incomplete_script_goes_on(repl: Open) -> None:
    screen = repl()
    for line in ("for i = 1, 2 do", "if i > 1 then", "print('i is ' .. i)", "end"):
        screen.type(line + ENTER, "...> ")
    screen.type("end" + ENTER, "i is 2\n")


def test_an_error_shows_its_line_and_the_next_script_runs(repl: Open) -> None:
    screen = repl()
    screen.type("nix.y" + ENTER, "line 1: runtime error: attempt to index a nil value (global 'nix')\n  1 | nix.y\n")
    screen.type("'still ' .. 'here'" + ENTER, '"still here"\n')


def test_ctrl_c_stops_the_script_only(repl: Open) -> None:
    screen = repl("--tools", "kit")
    screen.type("kept = 5 tools.add(1) tools.noisy() while true do end" + ENTER, "from the tool")
    screen.type(CTRL_C, "stopped; globals are kept", "lua> ")
    screen.type("kept" + ENTER, "5\n")
    screen.type("half a scr" + CTRL_C, "lua> ")
    screen.type("6 * 7" + ENTER, "42\n")


def test_ctrl_c_at_a_question_withdraws_it(repl: Open) -> None:
    screen = repl("--tools", "kit")
    screen.type("tools.delete{path = 'a'}" + ENTER, "[e]dit: ")
    screen.type(CTRL_C, "stopped; globals are kept", "lua> ")
    screen.type("1 + 1" + ENTER)  # the withdrawn question must not eat this
    screen.expect("2\n")


def test_a_tool_call_and_its_timeline(repl: Open) -> None:
    screen = repl("--tools", "kit")
    screen.type("tools.add{a = 1} + tools.add{a = 2}" + ENTER, "5\n", "2 calls · ")
    screen.type(":calls" + ENTER, "2 add ", "✓")


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("tools.dou", "tools.double"),
        ("string.gma", "string.gmatch"),
        ("parallel.set", "parallel.settle"),
        ("my_long", "my_long_name"),
        ("docs['tools.dou", "docs['tools.double']"),
        (":glo", ":globals"),
        (":docs tools.dou", ":docs tools.double"),
    ],
)
def test_tab_completes(repl: Open, typed: str, completed: str) -> None:
    screen = repl("--tools", "kit:box")
    screen.type("my_long_name = 1" + ENTER, "lua> ")
    screen.type(typed + TAB, completed)


def test_history_is_kept_for_its_owner_alone(repl: Open, tmp_path: Path) -> None:
    first = repl()
    first.type("return 'from before'" + ENTER, '"from before"\n', "lua> ")
    first.type(CTRL_D)
    assert first.ended() == 0
    kept = tmp_path / "home" / "repl_history"
    assert kept.stat().st_mode & 0o777 == 0o600
    second = repl()
    second.type(UP + ENTER, '"from before"\n')


def test_commands(repl: Open) -> None:
    screen = repl("--tools", "kit", "--timeout", "7")
    screen.type("x = 1 function f() end" + ENTER, "lua> ")
    screen.type(":globals" + ENTER, "f  function\nx  number\n")
    screen.type(":limits" + ENTER, "timeout         7 s\n")
    screen.type(":docs tools.add" + ENTER, "add(a: integer, b?: integer) -> integer — Add two numbers.\n")
    screen.type(":docs" + ENTER)
    listed = screen.expect("utf8.offset")
    assert "tools.double" in listed
    assert "…" in listed, "a line that does not fit says so"
    screen.type(":reset" + ENTER, "all globals were removed\n")
    screen.type(":globals" + ENTER, "no globals yet\n")
    screen.type(":gobals" + ENTER, "error: unknown command :gobals; did you mean :globals?\n")
    screen.type(":docs ad" + ENTER, "error: no documentation for 'ad'")
    screen.type(":help" + ENTER, ":reset    remove all globals", "lua> ")
    screen.type(":quit" + ENTER)
    assert screen.ended() == 0


def test_a_script_that_takes_its_worker_along_loses_the_globals(repl: Open) -> None:
    screen = repl("--timeout", "1")
    screen.type("x = 1" + ENTER, "lua> ")
    screen.type("return (('a'):rep(40)):find(('a-'):rep(8) .. 'b')" + ENTER, "limit reached (time)")
    screen.expect("globals are lost")
    screen.expect("lua> ")
    screen.type("x == nil" + ENTER, "true\n")


@pytest.mark.parametrize(
    ("given", "status", "out", "err"),
    [
        (
            "x = 4\n\nfor i = 1, 2 do\n  print(i)\nend\nx * 2\n'text'\n:globals\n",
            *(0, "1\n2\n8\ntext\nx  number\n", ""),
        ),
        ("error('no')\n1 + 1\n:quit\n3\n", 1, "2\n", "line 1: runtime error: no\n"),
        ("while true do\n", 1, "", "syntax error: 'end' expected (to close 'while' at line 1) near <eof>"),
    ],
    ids=["one after another", "the rest runs after a failure", "an incomplete end"],
)
def test_scripts_in_a_pipe(moonbox: Moonbox, given: str, status: int, out: str, err: str) -> None:
    done = moonbox("repl", input=given)
    assert (done.returncode, done.stdout) == (status, out)
    assert err in done.stderr if err else done.stderr == ""


def test_wrong_use(moonbox: Moonbox) -> None:
    done = moonbox("repl", "--language", "cobol")
    assert done.returncode == 2
    assert done.stderr.startswith("error: unknown language 'cobol'; known languages: lua, ")


def test_no_history_file_is_no_obstacle(terminal: Open, tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file where the folder should be")
    screen = terminal("repl")
    screen.expect("lua> ")
    screen.type("1 + 1" + ENTER, "2\n")
    assert (tmp_path / "home").is_file()
