"""`moonbox approvals`: calls that wait for a person, answered from another process, also after a crash."""

from __future__ import annotations

import getpass
import json
import signal
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from tests.programs import program
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from .terminal import Terminal

    Moonbox = Callable[..., Any]
    Open = Callable[..., Terminal]

SCRIPT = "local ok, what = pcall(tools.delete, {path = 'a\\27[31m'}) return ok and what or what.message"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "moonbox.toml").write_text("[journal]\npath = '.moonbox/journal.db'\napproval_seconds = 7200\n")
    return tmp_path


class Waiting:
    """A `moonbox run` that waits for a person, without a terminal."""

    def __init__(self, moonbox: Moonbox, process: subprocess.Popen[str]) -> None:
        self.moonbox = moonbox
        self.process = process

    def pending(self) -> list[Any]:
        done = self.moonbox("approvals", "list", "--json")
        return json.loads(done.stdout) if done.returncode == 0 else []

    def question(self) -> dict[str, Any]:
        wait_until(lambda: bool(self.pending()))
        (found,) = self.pending()
        return dict(found)


@pytest.fixture
def waiting(moonbox: Moonbox, project: Path, environment: dict[str, str]) -> Iterator[Waiting]:
    with running(moonbox, project, environment) as found:
        yield found


@contextmanager
def running(moonbox: Moonbox, project: Path, environment: dict[str, str]) -> Iterator[Waiting]:
    command = program("-m", "moonbox", "run", "-e", SCRIPT, "--tools", "kit:delete", "--json", "--wait-for-approval")
    pipes: Any = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=project, env=environment, text=True, **pipes) as process:
        try:
            yield Waiting(moonbox, process)
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("answer", "said", "value"),
    [
        (["--allow"], "allowed\n", "deleted a\x1b[31m"),
        (["--allow", "--edit", '{"path": "b"}'], "allowed\n", "deleted b"),
        (["--deny", "--reason", "not that"], "denied\n", "a person declined this call: not that"),
    ],
)
def test_a_host_that_waits_takes_the_answer(
    moonbox: Moonbox, waiting: Waiting, answer: list[str], said: str, value: str
) -> None:
    id = waiting.question()["id"]
    assert moonbox("approvals", "answer", id, *answer).stdout == said
    out, err = waiting.process.communicate(timeout=60)
    assert waiting.process.returncode == 0, err
    assert json.loads(out)["values"] == [value]
    assert f"delete waits for approval: moonbox approvals answer {id} --allow, or --deny\n" in err
    again = moonbox("approvals", "answer", id, "--allow")
    assert again.returncode == 2
    assert again.stderr.startswith("error: this approval is not open: it was answered (")
    assert moonbox("approvals", "list").stdout == "no calls wait for approval\n"


def test_without_a_terminal_a_call_is_denied_at_once(moonbox: Moonbox, project: Path) -> None:
    done = moonbox("run", "-e", "return tools.delete{path = 'a'}", "--tools", "kit:delete")
    assert done.returncode == 1
    reason = "the tool 'delete' needs your approval, and there is no terminal to ask you on"
    assert f"denied: {reason}; with --wait-for-approval the call waits for `moonbox approvals answer`\n" in done.stderr
    assert moonbox("approvals", "list").stdout == "no calls wait for approval\n"


def test_an_answer_outlives_the_host(moonbox: Moonbox, waiting: Waiting) -> None:
    asked = waiting.question()
    waiting.process.send_signal(signal.SIGKILL)
    waiting.process.wait(60)
    assert waiting.question() == asked  # still pending
    assert asked["expires"] - asked["asked"] == pytest.approx(7200)
    shown = moonbox("approvals", "list").stdout
    assert shown.startswith(rf"{asked['id']}  delete {{" + r'"path": "a\u001b[31m"}' + "\n  asked ")
    assert f"run {asked['run']}" in shown
    assert "\x1b" not in shown
    assert moonbox("approvals", "answer", asked["id"], "--allow", "--reason", "ok").stdout == "allowed\n"
    done = moonbox("resume", asked["run"], "--tools", "kit:delete", "--json")
    record = json.loads(done.stdout)
    assert done.returncode == 0, done.stderr
    (call,) = record["calls"]
    assert (call["approval"], call["approval_by"], call["approval_reason"]) == ("allowed", getpass.getuser(), "ok")
    assert moonbox("runs", "--interrupted").stdout == "no runs were cut off\n"


def test_a_terminal_lets_go_of_a_question_that_is_answered_elsewhere(
    moonbox: Moonbox, terminal: Open, project: Path
) -> None:
    two = "return parallel.map({'a', 'b'}, function(path) return tools.delete{path = path} end)"
    screen = terminal("run", "-e", two, "--tools", "kit:delete")
    screen.expect("allow it?")
    found: list[Any] = []

    def both() -> bool:
        found[:] = json.loads(moonbox("approvals", "list", "--json").stdout)
        return len(found) == 2

    wait_until(both)
    on_screen = "a" if 'path = "a"' in screen.text else "b"
    (first,) = [each["id"] for each in found if each["arguments"]["path"] == on_screen]
    assert moonbox("approvals", "answer", first, "--allow").returncode == 0
    screen.expect(f'path = "{"b" if on_screen == "a" else "a"}"')
    screen.expect("allow it?")
    screen.type("y\n")
    screen.expect("deleted a")
    screen.expect("deleted b")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["x"], "error: say what you decide: --allow, --allow --edit JSON, or --deny\n"),
        (["x", "--allow", "--deny"], "error: say what you decide: "),
        (["x", "--deny", "--edit", "{}"], "error: say what you decide: "),
        (["x", "--allow", "--edit", "{"], "error: --edit takes a JSON object, such as "),
        (["f" * 16, "--allow"], "error: there is no approval 'ffffffffffffffff'; `moonbox approvals list` lists"),
    ],
)
def test_wrong_answers(moonbox: Moonbox, project: Path, args: list[str], message: str) -> None:
    moonbox("run", "-e", "1")
    done = moonbox("approvals", "answer", *args)
    assert done.returncode == 2
    assert done.stderr.startswith(message)
