"""Runs that take longer than a client waits: a handle in place of the result, and the result later, once."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

import pytest
from mcp_types import ElicitResult

from tests.mcp.mcp_driver import (
    HOLD,
    SERVE,
    Driver,
    Peer,
    Session,
    bearer,
    give_up,
    http_server,
    over_http,
    served,
    stdio,
    text,
)
from tests.waiting import await_until, wait_until

if TYPE_CHECKING:
    from pathlib import Path

CONFIG = f"""{SERVE}
answer_within = 0.3
[limits]
timeout = 100
[codemode]
approvals = true
"""
TOOLS = f"""{HOLD}
@tool(policy="approve")
def delete(name: str) -> str:
    return name + " is gone"

@tool(policy="direct")
async def slow() -> int:
    await asyncio.sleep(0.6)
    return 1
"""
MODES = pytest.mark.parametrize("mode", ["auto", "legacy"])
WAIT = "lua_repl_wait"


class Gate:
    """A file that a script waits for."""

    def __init__(self, path: Path) -> None:
        self.path, self.entered, self.cancelled = (
            path.with_name(path.name + end) for end in ("", ".entered", ".cancelled")
        )
        self.script = f"progress(3, 10, 'rows') return tools.hold{{path = '{path}'}}"


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    return Gate(tmp_path / "gate")


def handle(result: Any) -> str:
    """The run's id in an answer that is not yet the result."""
    assert result.structured_content.get("running") is True, text(result)
    run_id: str = result.structured_content["run"]
    assert f'run_id = "{run_id}"' in text(result)
    return run_id


def result_of(session: Session, run_id: str) -> Any:
    """Wait until there is a result."""
    while (answer := session.call(WAIT, {"run_id": run_id})).structured_content is not None:
        if not answer.structured_content.get("running"):
            break
    return answer


@MODES
def test_a_handle_in_place_of_a_timeout(as_: Any, gate: Gate, mode: str) -> None:
    with as_("alice", mode) as session:
        begun = session.lua(gate.script)
        run_id = handle(begun)
        while "(1 call made)" not in text(begun):  # on a busy machine the answer comes before the script's call
            begun = session.call(WAIT, {"run_id": run_id, "seconds": 0})
        assert re.fullmatch(
            rf"The script has not ended; it continues as run {run_id}\.\n"
            r"Progress: 3 of 10, rows \(1 call made\)\.\n"
            rf'For its result, call {WAIT} with run_id = "{run_id}"; with cancel = true it is stopped\.',
            text(begun),
        )
        assert begun.meta is not None
        assert begun.meta["moonbox/run"] == run_id
        assert session.call(WAIT, {"run_id": run_id, "seconds": 0}).structured_content == {
            "run": run_id,
            "calls": 1,
            "running": True,
            "progress": {"done": 3, "total": 10, "text": "rows"},
        }
        gate.path.touch()
        ended = result_of(session, run_id)
        assert (ended.structured_content["value"], ended.structured_content["run"]) == ("released", run_id)
        again = session.call(WAIT, {"run_id": run_id})
        assert again.is_error
        assert text(again) == (
            f"error: no run {run_id!r} is in the background: "
            "its result was given before, or was not asked for in time. "
            "If it has ended, the resource moonbox://runs/ID is its record."
        )
        assert '"released"' in session.read(f"moonbox://runs/{run_id}")


@MODES
def test_it_survives_a_reconnect(as_: Any, gate: Gate, mode: str) -> None:
    with as_("alice", mode) as session:
        run_id = handle(session.lua(gate.script))
    gate.path.touch()
    with as_("alice", mode) as session:
        assert result_of(session, run_id).structured_content["value"] == "released"
    assert not gate.cancelled.exists()


@MODES
def test_it_is_cancelled(as_: Any, gate: Gate, mode: str) -> None:
    with as_("alice", mode) as session:
        run_id = handle(session.lua(gate.script))
        wait_until(gate.entered.exists)
        stopped = session.call(WAIT, {"run_id": run_id, "cancel": True})
        assert text(stopped) == f"The run {run_id} was stopped."
        wait_until(gate.cancelled.exists)
        assert session.call(WAIT, {"run_id": run_id}).is_error
        assert "value" in result_value(session, "return 1")


def result_value(session: Session, source: str) -> dict[str, Any]:
    """What a script returns, however long it takes."""
    result = session.lua(source)
    if result.structured_content is not None and result.structured_content.get("running"):
        result = result_of(session, handle(result))
    assert result.structured_content is not None, text(result)
    return dict(result.structured_content)


@MODES
def test_progress_is_notified_to_whoever_waits(as_: Any, gate: Gate, mode: str) -> None:
    seen: list[tuple[float, float | None, str | None]] = []

    async def note(done: float, total: float | None, message: str | None) -> None:
        seen.append((done, total, message))

    script = (
        f"{gate.script.replace('return', 'local x =')} progress(10, 10, 'done') tools.hold{{path = '{gate.path}2'}}"
    )
    with as_("alice", mode) as session:
        run_id = handle(session.lua(script, progress_callback=note))
        assert (3, 10, "rows") in seen
        gate.path.touch()
        wait_until(lambda: gate.path.with_name("gate2.entered").exists())
        assert (10, 10, "done") not in seen
        session.call(WAIT, {"run_id": run_id}, progress_callback=note)
        assert (10, 10, "done") in seen
        gate.path.with_name("gate2").touch()
        result_of(session, run_id)


def test_a_request_that_is_given_up_stops_its_script(driver: Driver, gate: Gate, tmp_path: Path) -> None:
    config = CONFIG.replace("0.3", "50").replace("tokens", "# tokens")
    with served(tmp_path, config, TOOLS) as url, driver.session(over_http(url), mode="legacy") as session:
        call = session.client.call_tool("lua_repl", {"source_code": gate.script})
        driver.run(give_up(call, await_until(gate.entered.exists)))
        wait_until(gate.cancelled.exists)


def test_a_wait_that_is_given_up_leaves_the_script(driver: Driver, as_: Any, gate: Gate) -> None:
    waiting = asyncio.Event()

    async def note(*_: Any) -> None:
        waiting.set()

    with as_("alice") as session:
        run_id = handle(session.lua(gate.script))
        driver.run(give_up(session.client.call_tool(WAIT, {"run_id": run_id}, progress_callback=note), waiting.wait()))
        handle(session.call(WAIT, {"run_id": run_id}))  # it began later: the one that was given up has ended before it
        gate.path.touch()
        assert result_of(session, run_id).structured_content["value"] == "released"
        assert not gate.cancelled.exists()


@MODES
def test_a_question_reaches_whoever_waits(as_: Any, gate: Gate, mode: str) -> None:
    asked: list[Any] = []

    async def elicit(_: Any, params: Any) -> ElicitResult:
        asked.append(params)
        return ElicitResult(action="accept", content={})

    with as_("alice", mode, elicitation_callback=elicit) as session:
        run_id = handle(session.lua(f"tools.hold{{path = '{gate.path}'}} return tools.delete{{name = 'x'}}"))
        assert asked == []
        gate.path.touch()
        assert result_of(session, run_id).structured_content["value"] == "x is gone"
        assert len(asked) == 1


def test_tasks_find_it_too(url: str, gate: Gate) -> None:
    peer = Peer(url, "alice")
    begun = peer.result("tools/call", name="lua_repl", arguments={"source_code": gate.script})
    run_id = begun["structuredContent"]["run"]
    assert begun["_meta"]["io.modelcontextprotocol/related-task"] == {"taskId": run_id}
    about = peer.result("tasks/get", taskId=run_id)
    assert (about["status"], about.get("statusMessage")) == ("working", "3 of 10, rows (1 call made)")
    gate.path.touch()
    assert peer.result("tasks/result", taskId=run_id)["structuredContent"]["value"] == "released"
    task = peer.start(f"return tools.hold{{path = '{gate.path}'}}")
    result = peer.result("tasks/result", taskId=task["taskId"])
    assert result["structuredContent"]["value"] == "released", "a task waits for its result"
    given = peer.result("tools/call", name=WAIT, arguments={"run_id": task["taskId"]})
    assert given["structuredContent"]["value"] == "released", "the tool finds tasks too"
    peer.close()


def test_the_tool_is_there_only_with_the_setting(driver: Driver, as_: Any, tmp_path: Path) -> None:
    with as_("alice") as session:
        listed = session.tools()
        assert list(listed[WAIT].input_schema["properties"]) == ["run_id", "seconds", "cancel"]
        assert text(session.call("slow")) == "1", "a tool that is called directly is waited for"
    with served(tmp_path, "", TOOLS) as other, driver.session(over_http(other)) as session:
        assert WAIT not in session.tools()
        refused = session.call(WAIT, {"run_id": "x"})
        assert refused.is_error


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "missing required field `run_id`"),
        ({"run_id": 1}, "Expected `str`, got `int` - at `$.run_id`"),
        ({"run_id": "x", "seconds": "5"}, "Expected `float | null`, got `str` - at `$.seconds`"),
        ({"run_id": "x", "seconds": -1}, "Expected `float` >= 0.0 - at `$.seconds`"),
        ({"run_id": "x", "cancel": 1}, "Expected `bool | null`, got `int` - at `$.cancel`"),
        ({"run_id": "x", "until": 1}, "unknown field `until`"),
        ({"run_id": "x", "y" * 1000: 1}, "unknown field `yyy"),
        ({"run_id": "x" * 1000}, "is in the background"),
    ],
)
def test_wrong_arguments(as_: Any, arguments: dict[str, Any], said: str) -> None:
    with as_("alice") as session:
        refused = session.call(WAIT, arguments)
        assert refused.is_error
        assert said in text(refused)
        assert len(text(refused)) < 500


def test_the_end_of_the_server_stops_them(driver: Driver, gate: Gate, tmp_path: Path) -> None:
    (tmp_path / "moonbox.toml").write_text(CONFIG)
    (tmp_path / "kit.py").write_text(TOOLS)
    env = {"MOONBOX_HOME": str(tmp_path / "home")}
    with (
        http_server("--tools", "kit.py", env=env, cwd=tmp_path) as url,
        driver.session(over_http(url, bearer("alice"))) as session,
    ):
        handle(session.lua(gate.script))
        wait_until(gate.entered.exists)
    assert gate.cancelled.exists()
    gate.entered.unlink()
    gate.cancelled.unlink()
    options = ("--config", tmp_path / "moonbox.toml", "--tools", tmp_path / "kit.py")
    with driver.session(stdio(*options, env=env)) as session:
        handle(session.lua(gate.script))
        wait_until(gate.entered.exists)
    wait_until(gate.cancelled.exists)
