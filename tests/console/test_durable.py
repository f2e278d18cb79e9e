"""The page of durable runs: what a crash cut off is listed there, and continued from there."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from moonbox import CodeMode, Sandbox, tool
from moonbox.audit.sinks import MemorySink
from moonbox.http.workbench import Workbench

from .serving import running_console
from .test_access import client, page_key, signed_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .serving import Console

HOST = """
import os, signal, sys
from moonbox import Sandbox, tool

@tool
def pay(amount: int) -> str:
    os.kill(os.getpid(), signal.SIGKILL)

with Sandbox([pay], journal=sys.argv[1]) as box:
    box.repl(labels={"user": "<b>ann</b>"}).run("-- <i>pay</i>\\nreturn tools.pay{amount = 5}")
"""


@tool
def pay(amount: int) -> str:
    """Pay somebody."""
    return f"paid {amount}"


@pytest.fixture
def durable(tmp_path: Path) -> Iterator[Console]:
    """A console on the journal of a program that was killed while it paid."""
    program = [sys.executable, "-c", HOST, str(tmp_path / "j.db")]
    assert subprocess.run(program, check=False, capture_output=True).returncode < 0
    with running_console([pay], journal=tmp_path / "j.db") as console:
        yield console


def test_a_run_that_was_cut_off_is_resumed(durable: Console) -> None:
    with signed_in(durable) as browser:
        page = browser.get("/console/durable").text
        assert "-- &lt;i&gt;pay&lt;/i&gt;" in page and "user=&lt;b&gt;ann&lt;/b&gt;" in page
        assert "{&#34;amount&#34;:5}" in page and "in doubt" in page
        (run,) = durable.service.sandbox.interrupted()
        place, origin = f"/console/durable/{run.run_id}", {"origin": durable.url}
        form: dict[str, Any] = {"key": page_key(browser), "in_flight": "fail"}
        assert browser.post(place, data=form).status_code == 403, "not from a page of the console"
        assert browser.post(place, data={**form, "key": "0" * 64}, headers=origin).status_code == 403
        undecided = browser.post(place, data={"key": form["key"]}, headers=origin)
        assert undecided.status_code == 409 and "may have been made" in undecided.text
        assert browser.post(place, data=form, headers=origin).headers["location"] == "/console/durable"
        assert "No runs were cut off." in browser.get("/console/durable").text
    (resumed,) = durable.trail.runs()
    assert (resumed.id, resumed.error.code) == (run.run_id, "in_doubt")


STOPPED = """
import os, signal, sys
from moonbox import Sandbox, tool

@tool
def stop() -> None:
    os.kill(os.getpid(), signal.SIGKILL)

@tool
def pay(amount: int) -> str:
    return "paid"

with Sandbox([stop, pay], journal=sys.argv[1]) as box:
    box.repl(labels={"conversation": "one"}).run("pcall(tools.stop) return tools.pay{amount = 5}")
"""


def test_a_run_of_a_conversation_goes_on_with_the_tools_of_its_scripts(tmp_path: Path) -> None:
    """A tool that the model must call directly is not among them."""

    @tool
    def stop() -> None:
        """Never."""

    @tool(policy="approve")
    def pay(amount: int) -> str:
        """Pay somebody."""
        return f"paid {amount}"

    program = [sys.executable, "-c", STOPPED, str(tmp_path / "j.db")]
    assert subprocess.run(program, check=False, capture_output=True).returncode < 0
    kept, bench = MemorySink(), Workbench()
    with (
        Sandbox([stop, pay], journal=tmp_path / "j.db", audit=kept, approve=lambda call: call.allow()) as box,
        CodeMode(box) as mode,
        contextlib.closing(bench),
    ):
        bench.attach(box, options_for=mode.options_for)
        (run,) = box.interrupted()
        bench.go_on(run.run_id, None, "fail")
    (resumed,) = kept.runs()
    assert (resumed.id, len(resumed.calls)) == (run.run_id, 1)
    assert resumed.error is not None and "attempt to call a nil value (field 'pay')" in resumed.error.message


def test_strangers_resume_nothing(durable: Console) -> None:
    (run,) = durable.service.sandbox.interrupted()
    with client(durable) as stranger:
        form = {"key": durable.browser.page_key({"type": "http", "headers": []}), "in_flight": "retry"}
        answer = stranger.post(f"/console/durable/{run.run_id}", data=form, headers={"origin": durable.url})
    assert answer.status_code == 403
    assert len(durable.service.sandbox.interrupted()) == 1


def test_a_check_while_one_types_leaves_nothing_in_the_journal(durable: Console) -> None:
    with signed_in(durable) as browser:
        headers = {"x-moonbox-key": page_key(browser), "origin": durable.url}
        for source in ("return 1 +", "return 1"):
            answer = browser.post("/check", json={"source_code": source}, headers=headers)
            assert [finding["severity"] for finding in answer.json()["findings"]] == ["error"] * source.endswith("+")
    assert len(durable.service.sandbox.journal.repls()) == 1  # that of the program


def test_without_a_journal_the_page_says_how_to_keep_one(console: Console) -> None:
    with signed_in(console) as browser:
        assert "This server keeps no journal" in browser.get("/console/durable").text
