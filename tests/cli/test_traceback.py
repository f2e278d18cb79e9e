"""The traceback of a tool's own code: the developer gets it, in four places; scripts, models and clients do not."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from .test_serve import HELLO, READY, call, lines

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Moonbox

BANK = '''
from moonbox import ToolError, tool


def book(amount, pin):
    raise ValueError(f"no account for {amount}: pin={pin}")


@tool
def pay(amount: int, pin: str) -> str:
    """Pay."""
    return book(amount, pin)


@tool
def decline(reason: str) -> str:
    """Decline."""
    raise ToolError("declined", code="declined")


@tool
def deep(n: int) -> int:
    """Recurse."""
    return deep_inside(n)


def deep_inside(n):
    if n == 0:
        raise ValueError("x" * 100_000)
    return deep_inside(n - 1) + 1
'''
PAY = "tools.pay{amount = 5, pin = '12'}"


@pytest.fixture(autouse=True)
def bank(tmp_path: Path) -> None:
    (tmp_path / "bank.py").write_text(BANK)
    (tmp_path / "moonbox.toml").write_text('[audit]\nredact = ["pin"]\n')


def test_run_shows_it_when_asked(process: Moonbox) -> None:
    plain = process("run", "--tools", "bank", "-e", f"return {PAY}")
    assert plain.returncode == 1
    assert "bank.py" not in plain.stderr
    done = process("run", "--tools", "bank", "--traceback", "-e", f"return {PAY}")
    head, _, text = done.stderr.partition("traceback of call 1 (pay):\n")
    assert head == plain.stderr
    lines = text.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert re.fullmatch(r'  File ".*bank\.py", line 12, in pay', lines[1]), "moonbox's own frames are left out"
    assert lines[-1] == "ValueError: no account for 5: pin=12"
    assert (done.returncode, done.stdout) == (1, "")


def test_run_shows_those_that_the_script_caught_and_none_of_refused_calls(process: Moonbox) -> None:
    script = "pcall(tools.decline, 'x') pcall(tools.pay, {amount = 'x', pin = 5}) return 1"
    done = process("run", "--tools", "bank", "--traceback", "-e", script)
    assert (done.returncode, done.stdout) == (0, "1\n")
    assert re.findall(r"traceback of call (\d) \((\w+)\)", done.stderr) == [("1", "decline")]
    assert 'raise ToolError("declined"' in done.stderr


def test_the_trail_shows_it_redacted_and_bounded(process: Moonbox, tmp_path: Path) -> None:
    process("run", "--tools", "bank", "--audit", "on", "-e", f"pcall(tools.deep, 200) return {PAY}")
    shown = process("audit", "show", "--last").stdout
    assert "traceback of call 2 (pay)" in shown
    assert "ValueError: no account for 5: pin=[redacted]" in shown
    assert "pin = '12'" not in shown and "pin=12" not in shown
    record = json.loads(process("audit", "show", "--last", "--json").stdout)
    assert 2_000 < len(record["calls"][0]["error"]["detail"]) < 21_000


@pytest.mark.parametrize("verbose", ["-v", "-vv"])
def test_the_log_has_it_at_debug_and_names_the_run(process: Moonbox, verbose: str) -> None:
    given = lines(HELLO, READY, call(2, "lua_repl", source_code=f"return {PAY}"))
    done = process("serve", "--tools", "bank", verbose, "--log-format", "json", input=given)
    assert "bank.py" not in done.stdout, "the client does not get it"
    logged = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    run = next(line["id"] for line in logged if line["logger"] == "moonbox.runs")
    calls = [line for line in logged if line["logger"] == "moonbox.calls"]
    assert [(line["message"], line["run"], line["tool"]) for line in calls] == [
        ("call", run, "pay"),
        *([("traceback", run, "pay")] if verbose == "-vv" else []),
    ]
    if verbose == "-vv":
        assert calls[1]["traceback"].endswith("ValueError: no account for 5: pin=[redacted]")
    else:
        assert "bank.py" not in done.stderr
