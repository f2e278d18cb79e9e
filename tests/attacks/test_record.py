"""Attacks on the record: calls that leave no trace, secrets that slip past redaction."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from moonbox import Sandbox, Tool, tool
from moonbox.audit.sinks import open_trail
from moonbox.errors import AuditError
from tests.long import LONG
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

HOST = '''
import sys, asyncio, time
from pathlib import Path
from moonbox import Sandbox, tool

effect = Path(sys.argv[2])

@tool
def pay(amount: int, password: str = "") -> str:
    """Pay."""
    effect.write_text("paid")
    time.sleep(600)

@tool
async def apay(amount: int, password: str = "") -> str:
    """Pay, awaited."""
    effect.write_text("paid")
    await asyncio.sleep(600)

redact = ["password"] if "redact" in sys.argv else None
box = Sandbox(tools=[pay, apay], audit=sys.argv[1], redact=redact)
source = "tools." + sys.argv[3] + "{amount = 5, password = 'hunter-22'}"
if sys.argv[4] == "async":
    async def main():
        async with box.repl() as repl:
            await repl.arun(source)
    asyncio.run(main())
elif sys.argv[4] == "direct":
    box.call(sys.argv[3], {"amount": 5, "password": "hunter-22"})
else:
    box.run(source)
'''


NAMES = ("trail.db", "trail.jsonl")
WAYS = (("pay", "sync"), ("apay", "async"), ("pay", "async"), ("pay", "direct"))
KILLED = [(name, *way) for n, way in enumerate(WAYS) for name in (NAMES if LONG else (NAMES[n % 2],))]


@pytest.mark.parametrize(("name", "called", "how"), KILLED)
def test_a_call_that_took_effect_is_on_file_when_the_host_is_killed(
    tmp_path: Path, name: str, called: str, how: str
) -> None:
    (tmp_path / "host.py").write_text(HOST)
    redacted = how == "sync"
    arguments = [str(tmp_path / name), str(tmp_path / "effect"), called, how, *(["redact"] if redacted else [])]
    host = subprocess.Popen([sys.executable, str(tmp_path / "host.py"), *arguments])
    try:
        wait_until(lambda: (tmp_path / "effect").exists() or host.poll() is not None)
        assert host.poll() is None
    finally:
        os.kill(host.pid, signal.SIGKILL)
        host.wait()
    trail = open_trail(tmp_path / name)
    (summary,) = trail.list()
    assert summary.state == "interrupted"
    run = trail.get(summary.id)
    (call,) = run.calls
    password = "[redacted]" if redacted else "hunter-22"
    assert (call.tool, call.status, call.arguments) == (called, "in_flight", {"amount": 5, "password": password})
    assert (b"hunter-22" in _stored(tmp_path / name)) is not redacted
    assert trail.verify().ok


def _stored(path: Path) -> bytes:
    """Everything that is in the files of a trail."""
    return b"".join(file.read_bytes() for file in path.parent.glob(f"{path.name}*"))


class _FullDisk:
    """A durable sink that cannot write any more."""

    def __init__(self) -> None:
        self.written: list[Any] = []

    def start_run(self, run: Any) -> None:
        raise AuditError("the disk is full")

    def start_call(self, run: str, call: Any) -> None:
        raise AuditError("the disk is full")

    def write(self, run: Any) -> None:
        self.written.append(run)

    def close(self) -> None:
        """Nothing to close."""


def test_a_tool_is_not_invoked_when_its_call_cannot_be_written_down() -> None:
    invoked = []

    @tool
    def pay(amount: int) -> str:
        """Pay."""
        invoked.append(amount)
        return "paid"

    sink = _FullDisk()
    with Sandbox(tools=[pay], audit=sink) as box:
        run = box.run("return tools.pay{amount = 5}")
    assert run.error is not None
    assert invoked == []
    assert sink.written == [run]


@tool
def login(user: str, password: str) -> dict[str, Any]:
    """Log in."""
    return {"ok": True, "token": f"token-of-{user}"}


@tool
def note(text: str) -> str:
    """Write something down."""
    return text


SURPLUS = (
    "tools.login('bob', 'hunter-22', 'extra-secret')",
    "tools.login{'bob', 'hunter-22', 'extra-secret'}",
    "tools.login{'bob', 'hunter-22', user = 'extra-secret'}",
    "tools.login('bob', 'hunter-22', 'extra-secret', 4, 5, 6)",
    "tools.login{[1] = 'bob', [2] = 'hunter-22', [9] = 'extra-secret'}",
    "tools.login('bob', {'hunter-22'}, {'extra-secret'})",
    "secret('bob', 'hunter-22', 'extra-secret')",
)


@pytest.mark.parametrize("isolation", ["process", "inline"])
@pytest.mark.parametrize("name", NAMES)
def test_no_way_of_passing_arguments_leaves_a_named_field_in_the_record(
    tmp_path: Path, name: str, isolation: Any
) -> None:
    path = tmp_path / name
    with Sandbox(tools=[login, note], audit=path, redact=["password"], isolation=isolation) as box, box.repl() as repl:
        repl.define("secret", lambda user, password, *more: None)
        for source in SURPLUS:
            repl.run(f"pcall(function() {source} end)")
    for summary in open_trail(path).list(100):
        text = open_trail(path).get(summary.id).to_json()
        assert "hunter-22" not in text, text
    assert b"hunter-22" not in _stored(path)


def test_what_has_no_name_is_hidden_whole_and_what_has_one_stays_readable() -> None:
    from moonbox.audit.sinks import MemorySink

    sink = MemorySink()
    with Sandbox(tools=[login], audit=sink, redact=["password"]) as box:
        box.run("pcall(tools.login, 'bob', 'hunter-22', 'x')")
    (run,) = sink.runs()
    assert run.calls[0].arguments == {"user": "bob", "password": "[redacted]", 3: "[redacted]"}


def test_what_an_earlier_answer_or_a_label_held_is_hidden_in_the_intents_of_calls(tmp_path: Path) -> None:
    path = tmp_path / "trail.jsonl"
    with Sandbox(tools=[login, note], audit=path, redact=["token"]) as box:
        source = "local t = tools.login('bob', 'x').token return tools.note('got ' .. t)"
        box.run(source, labels={"token": "label-of-bob", "of": "the token is label-of-bob"})
    text = path.read_text()
    assert '"run_started"' in text
    assert '"call_started"' in text
    assert "token-of-bob" not in text
    assert "label-of-bob" not in text


@pytest.mark.parametrize("isolation", ["process", "inline"])
def test_discovery_is_budgeted(isolation: Any) -> None:
    """The count of answered questions is bounded, whatever a script asks and however it catches the refusals."""
    tools = [Tool.from_function(lambda x: x, name=f"tool_{n}", description="Does it.") for n in range(400)]
    script = """
        local answered = {search = 0, describe = 0, get = 0}
        for _, what in ipairs{"search", "describe", "get"} do
          for i = 1, 3000 do
            local ok = pcall(function()
              if what == "get" then return docs["tools.tool_1"] end
              return docs[what]("tool_" .. i % 400)
            end)
            if not ok then break end
            answered[what] = answered[what] + 1
          end
        end
        return answered
    """
    with Sandbox(tools=tools, isolation=isolation) as box:
        run = box.run(script)
        assert run.unwrap()["search"] <= 1000 // 21
        assert run.value["describe"] == 0
        run = box.run("for i = 1, 100000 do local _ = docs['tools.tool_' .. i % 400] end")
        assert run.error is not None
        assert "this run has asked docs too often" in run.error.message
        assert run.error.code == "limit_docs"
        assert box.run("return docs.search('tool', 3)").ok, "each run has its own"


def test_an_endless_name_costs_as_little_as_a_short_one() -> None:
    from moonbox import Toolbox
    from moonbox.errors import ArgumentError
    from tests.counting import count_calls

    toolbox = Toolbox([Tool.from_function(lambda x: x, name=f"tool_{n}", description="Does it.") for n in range(200)])

    def resolve(name: str) -> None:
        with pytest.raises(ArgumentError):
            toolbox.resolve(name)

    resolve("warm_up")
    short, long = count_calls(lambda: resolve("toll_1" * 50)), count_calls(lambda: resolve("toll_1" * 200_000))
    assert long <= 2 * short + 1000
