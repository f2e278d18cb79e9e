"""`moonbox runs`, `resume`, `replay` and `repls`, after a host that was killed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from moonbox.durable.index import KnownRun

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Moonbox = Callable[..., Any]

KIT = '''
import os, pathlib, signal
from moonbox import tool

@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    if pathlib.Path("die").exists():
        pathlib.Path("die").unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    return a + b
'''


def listed(lines: str) -> list[dict[str, Any]]:
    """What `moonbox runs --json` has printed: a line for each run."""
    return [json.loads(line) for line in lines.splitlines()]


@pytest.fixture
def cut_off(moonbox: Moonbox, process: Moonbox, tmp_path: Path) -> str:
    """The id of a run whose host was killed in the middle of a call."""
    (tmp_path / "durable_kit.py").write_text(KIT)
    (tmp_path / "die").touch()
    script = "local x = tools.add{a = 1, b = 2} return x"
    done = process("run", "-e", script, "--tools", "durable_kit.py", "--journal", "j.db")
    assert done.returncode < 0
    (found,) = listed(moonbox("runs", "--journal", "j.db", "--interrupted", "--json").stdout)
    return str(found["id"])


def test_a_run_is_resumed_after_a_crash(moonbox: Moonbox, cut_off: str) -> None:
    tools = ("--tools", "durable_kit.py", "--journal", "j.db")
    refused = moonbox("resume", cut_off, *tools)
    assert refused.returncode == 2
    assert refused.stderr == (
        "error: these calls may have been made before the crash:\n  add {'a': 1, 'b': 2}\n"
        "decide with --in-flight retry or --in-flight fail\n"
    )
    done = moonbox("resume", cut_off, *tools, "--in-flight", "retry")
    assert (done.returncode, done.stdout) == (0, "3\n")
    assert moonbox("runs", "--journal", "j.db", "--interrupted").stdout == "no runs were cut off\n"
    assert "  ok  local x = tools.add" in moonbox("runs", "--journal", "j.db").stdout


def test_a_run_is_replayed(moonbox: Moonbox, cut_off: str, tmp_path: Path) -> None:
    tools = ("--tools", "durable_kit.py", "--journal", "j.db")
    moonbox("resume", cut_off, *tools, "--in-flight", "retry")
    same = moonbox("replay", cut_off, *tools)
    assert (same.returncode, same.stdout, same.stderr) == (0, "3\n", "the same as recorded\n")
    (tmp_path / "other.lua").write_text("return tools.add{a = 1, b = 2} * 10")
    assert moonbox("replay", cut_off, "--with", "other.lua", *tools).stdout == "30\n"
    (tmp_path / "other.lua").write_text("pcall(tools.add, {a = 5, b = 6}) return 1")
    other = moonbox("replay", cut_off, "--with", "other.lua", *tools)
    assert (other.returncode, other.stdout) == (1, "1\n")
    assert other.stderr == "it called add, which is not in the record\nit did not call add as recorded\n"


def test_a_replay_invokes_no_tool_of_a_run_that_was_cut_off(moonbox: Moonbox, cut_off: str, tmp_path: Path) -> None:
    kit = KIT.replace("@tool", "@tool(hints={'read_only': True})").replace(
        "return a", "pathlib.Path('made').touch()\n    return a"
    )
    (tmp_path / "durable_kit.py").write_text(kit)
    tools = ("--tools", "durable_kit.py", "--journal", "j.db")
    done = moonbox("replay", cut_off, *tools)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"error: run '{cut_off}' has not ended; `moonbox resume {cut_off}` continues a run that was cut off\n"
    )
    (tmp_path / "other.lua").write_text("return (pcall(tools.add, {a = 1, b = 2}))")
    assert moonbox("replay", cut_off, "--with", "other.lua", *tools).stdout == "false\n"
    assert not (tmp_path / "made").exists()
    assert moonbox("resume", cut_off, *tools).stdout == "3\n"
    assert (tmp_path / "made").exists()


def test_the_other_script_of_a_replay_must_be_one(moonbox: Moonbox, cut_off: str, tmp_path: Path) -> None:
    (tmp_path / "latin.lua").write_bytes(b"-- \xe9")
    given = {
        "latin.lua": "'latin.lua' is not UTF-8 (byte 3 is 0xe9)",
        "nix.lua": "the file 'nix.lua' does not exist",
        ".": "'.' is a folder, not a script",
    }
    for file, message in given.items():
        done = moonbox("replay", cut_off, "--with", file, "--journal", "j.db")
        assert (done.returncode, done.stderr) == (2, f"error: {message}\n")


def test_repls_are_listed_and_deleted(moonbox: Moonbox, cut_off: str) -> None:
    (repl,) = json.loads(moonbox("repls", "list", "--journal", "j.db", "--json").stdout)
    assert (repl["language"], repl["runs"], repl["held_by"]) == ("lua", 1, "")
    assert moonbox("repls", "delete", "--journal", "j.db").stderr.startswith("error: name the Repls to delete")
    asked = moonbox("repls", "delete", repl["id"], "--journal", "j.db")
    message = "error: no terminal to ask for confirmation; use --yes to delete them\n"
    assert (asked.returncode, asked.stderr) == (2, message)
    both = moonbox("repls", "delete", repl["id"], "--label", "a=b", "--yes", "--journal", "j.db")
    assert both.stderr == "error: name either the Repls to delete or their label, not both\n"
    assert moonbox("repls", "delete", repl["id"], "--yes", "--journal", "j.db").stdout == "deleted 1 Repl\n"
    assert moonbox("repls", "list", "--journal", "j.db").stdout == "no Repls in this journal\n"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["runs"], "error: name the journal with --journal, in MOONBOX_JOURNAL, or in [journal] of moonbox.toml\n"),
        (["runs", "--journal", "nix.db"], "error: there is no journal 'nix.db'\n"),
    ],
)
def test_wrong_use(moonbox: Moonbox, args: list[str], message: str) -> None:
    done = moonbox(*args)
    assert (done.returncode, done.stderr) == (2, message)


def test_old_repls_are_deleted_but_not_interrupted_ones(moonbox: Moonbox, cut_off: str) -> None:
    moonbox("run", "-e", "1", "--journal", "j.db")
    old = ("repls", "delete", "--older-than", "0m", "--yes", "--journal", "j.db")
    assert moonbox("repls", "delete", "--older-than", "1h", "--yes", "--journal", "j.db").stdout == "no Repls match\n"
    assert moonbox(*old).stdout == "deleted 1 Repl\n"
    (left,) = listed(moonbox("runs", "--journal", "j.db", "--json").stdout)
    assert left["id"] == cut_off
    assert moonbox(*old, "--interrupted").stdout == "deleted 1 Repl\n"


def test_the_journal_of_a_project_is_used(moonbox: Moonbox, tmp_path: Path) -> None:
    (tmp_path / "moonbox.toml").write_text("[journal]\npath = 'j.db'\n")
    moonbox("run", "-e", "6 * 7")
    assert "  ok  6 * 7" in moonbox("runs").stdout
    moonbox("run", "-e", "1", "--journal", "other.db")
    assert len(listed(moonbox("runs", "--json").stdout)) == 1


def test_the_journal_of_the_environment_is_used(moonbox: Moonbox, tmp_path: Path) -> None:
    journal = {"MOONBOX_JOURNAL": "j.db"}
    (tmp_path / "six.lua").write_text("return 6")
    moonbox("run", "-e", "6 * 7", env=journal)
    moonbox("run", "six.lua", env=journal)
    assert len(listed(moonbox("runs", "--json", env=journal).stdout)) == 2


@pytest.mark.parametrize(
    ("config", "power"),
    [
        ("path = '../j.db'", "write the journal to ../j.db"),
        ("url = 'postgresql://me:secret@db.example/x'", "results to the database postgresql://db.example/x"),
        ("path = 'j.db'", None),
    ],
)
def test_a_foreign_journal_needs_trust(moonbox: Moonbox, tmp_path: Path, config: str, power: str | None) -> None:
    (tmp_path / "moonbox.toml").write_text(f"[journal]\n{config}\n")
    done = moonbox("runs", env={"MOONBOX_TRUST": ""})
    assert done.returncode == 2
    assert "secret" not in done.stderr
    assert (power or "there is no journal 'j.db'") in done.stderr
    assert ("is not trusted yet" in done.stderr) is (power is not None)


def test_a_list_that_is_cut_says_so(moonbox: Moonbox) -> None:
    for number in range(3):
        moonbox("run", "-e", f"return {number}", "--journal", "j.db")
    for command, more in ((("runs",), ("--page", "2")), (("repls", "list"), ("--skip", "2"))):
        first = moonbox(*command, "--journal", "j.db", "--limit", "2")
        hint = f"there are more: {' '.join(more)} lists the next ones\n"
        assert (len(first.stdout.splitlines()), first.stderr) == (2, hint)
        last = moonbox(*command, "--journal", "j.db", "--limit", "2", *more)
        assert (len(last.stdout.splitlines()), last.stderr) == (1, "")


def test_a_run_is_shown_at_a_call(moonbox: Moonbox, tmp_path: Path) -> None:
    (tmp_path / "durable_kit.py").write_text(KIT)
    tools = ("--tools", "durable_kit.py", "--journal", "j.db")
    script = "local sum = 0\nfor i = 1, 3 do\n  sum = tools.add{a = sum, b = i}\n  print(i)\nend\nreturn sum"
    assert moonbox("run", "-e", script, *tools).stdout.endswith("6\n")
    (found,) = listed(moonbox("runs", "--journal", "j.db", "--json").stdout)
    at_two = ("replay", found["id"], *tools, "--at", "2")
    head = 'call 2 of 3, line 3: add {"a": 1, "b": 2}\nanswer: 3\n'
    assert moonbox(*at_two).stdout == head + "locals of main chunk, line 3\n  sum = 1\n  i = 2\n"
    parts = ("--show", "globals", "--show", "calls", "--show", "output")
    calls = 'calls\n  1. add {"a": 0, "b": 1}, answer: 1\n  2. add {"a": 1, "b": 2}, answer: 3\n'
    assert moonbox(*at_two, *parts).stdout == f"{head}globals\n{calls}output\n  1\n"
    shown = json.loads(moonbox(*at_two, "--json").stdout)
    assert (shown["line"], shown["frames"][0]["locals"]) == (3, {"sum": 1, "i": 2})
    answered = moonbox("replay", found["id"], *tools, "--answer", "2=10", "--dry")
    assert answered.stdout.startswith(
        'call 3 of 3, line 3: add {"a": 10, "b": 3}\nthe record has no answer to this call\n'
    )
    assert moonbox("replay", found["id"], *tools, "--answer", "2=10").stdout.endswith("13\n")
    assert len(listed(moonbox("runs", "--journal", "j.db", "--json").stdout)) == 2
    about = "--at, --answer and --dry are about"
    for given, message in {
        ("--at", "9"): f"run '{found['id']}' made 3 calls",
        ("--at", "2", "--show", "lines"): "--show takes one of locals, globals, output, calls, not 'lines'",
        ("--dry",): "say at which call: --at 7",
        ("--answer", "x=1"): "--answer takes the number of a call and a value, such as 7=5, not 'x=1'",
        ("--dry", "--with", "a.lua"): f"--with runs another script; {about} the recorded one",
    }.items():
        done = moonbox("replay", found["id"], *tools, *given)
        assert (done.returncode, done.stderr) == (2, f"error: {message}\n")


BANK = '''
from moonbox import tool

def refund(id: int) -> None:
    print("refunded", id)

@tool(undo=refund)
def pay(cents: int) -> dict:
    """Pay."""
    return {"id": cents}
'''


def test_a_failed_run_is_found_corrected_and_undone(moonbox: Moonbox, tmp_path: Path) -> None:
    (tmp_path / "bank_kit.py").write_text(BANK)
    tools = ("--tools", "bank_kit.py", "--journal", "j.db")
    moonbox("run", "-e", "return 1", *tools)
    moonbox("run", "-e", "local id = tools.pay{cents = 5}.id error('typo')", *tools)
    where = ("--journal", "j.db", "--json")
    (found,) = listed(moonbox("runs", *where, "--state", "failed").stdout)
    for given in (("--tool", "pay"), ("--text", "typo error"), ("--since", "1h", "--state", "runtime")):
        assert listed(moonbox("runs", *where, *given).stdout) == [found]
    assert listed(moonbox("runs", *where, "--text", "nothing").stdout) == []
    assert set(found) == set(KnownRun.__struct_fields__)
    wrong = moonbox("runs", *where, "--state", "fialed")
    assert wrong.stderr == "error: unknown state 'fialed'; did you mean 'failed'?\n"
    (tmp_path / "other.lua").write_text("return tools.pay{cents = 6}.id")
    differs = moonbox("patch", found["id"], "other.lua", *tools)
    assert differs.returncode == 2 and "it differs at call 1" in differs.stderr
    done = moonbox("patch", found["id"], "other.lua", *tools, "--skip", "1")
    assert (done.returncode, done.stdout) == (0, "6\n")
    plan = 'call 1: pay  →  undo_pay {"id": 6}\n'
    plan += 'a call that a correction has left out: pay  →  undo_pay {"id": 5}\n'
    refused = moonbox("undo", found["id"], *tools)
    assert refused.returncode == 2 and refused.stderr.startswith(plan)
    undone = moonbox("undo", found["id"], *tools, "--yes")
    assert (undone.stderr, undone.stdout.splitlines()[-1]) == (plan, "2 calls taken back, 0 left")
    assert "  ok, undone  return tools.pay" in moonbox("runs", "--journal", "j.db").stdout


def test_calls_in_doubt_are_listed(moonbox: Moonbox, cut_off: str) -> None:
    (found,) = listed(moonbox("runs", "--journal", "j.db", "--in-doubt", "--json").stdout)
    assert (found["id"], found["pending"]) == (cut_off, [{"call": 1, "tool": "add", "arguments": {"a": 1, "b": 2}}])
    assert 'without an answer: add {"a": 1, "b": 2}' in moonbox("runs", "--journal", "j.db", "--in-doubt").stdout


def test_a_missing_tool_is_named_before_calls_in_doubt_are_asked_about(moonbox: Moonbox, cut_off: str) -> None:
    done = moonbox("resume", cut_off, "--journal", "j.db")
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        done.stderr == "error: the run called 'add', not found here; name its tools with --tools or in moonbox.toml\n"
    )


def test_a_difference_of_a_replay_is_told_once(moonbox: Moonbox, cut_off: str, tmp_path: Path) -> None:
    tools = ("--tools", "durable_kit.py", "--journal", "j.db")
    moonbox("resume", cut_off, *tools, "--in-flight", "retry")
    (tmp_path / "other.lua").write_text("for i = 1, 5 do pcall(tools.add, {a = i, b = 6}) end return 1")
    other = moonbox("replay", cut_off, "--with", "other.lua", *tools)
    assert other.stderr == "it called add, which is not in the record (5 times)\nit did not call add as recorded\n"


def test_a_journal_is_a_database(moonbox: Moonbox, tmp_path: Path) -> None:
    done = moonbox("run", "-e", "1", "--journal", "foo.txt")
    assert done.stderr == "error: the journal 'foo.txt' must be a .db file or a postgresql:// address\n"
    assert (done.returncode, list(tmp_path.glob("foo*"))) == (2, [])
