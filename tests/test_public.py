"""The public face: its names, and what importing it costs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import moonbox

NAMES = [
    "Answer", "Call", "CodeMode", "Context", "Conversation", "Decision", "Diverged", "Finding", "InDoubt", "Limits",
    "Media", "Middleware", "MoonboxError", "Pause", "Paused", "Repl", "Retry", "Run", "RunOptions", "Sandbox",
    "ScriptError", "Tool", "ToolCall", "ToolError", "Toolbox", "Usage", "__version__", "run", "tool",
]  # fmt: skip


def test_exported_names() -> None:
    assert sorted(moonbox.__all__) == sorted(NAMES)
    assert dir(moonbox) == sorted(NAMES)
    for name in NAMES:
        assert getattr(moonbox, name) is not None


def test_an_unknown_name() -> None:
    with pytest.raises(AttributeError, match="module 'moonbox' has no attribute 'Sandbx'"):
        _ = moonbox.Sandbx  # type: ignore[attr-defined]  # checkers know it too


def test_names_are_the_same_each_time() -> None:
    assert moonbox.Sandbox is moonbox.Sandbox
    assert moonbox.Limits is __import__("moonbox.limits", fromlist=["Limits"]).Limits


def test_importing_loads_almost_nothing() -> None:
    program = "import sys; before = set(sys.modules); import moonbox; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.split() == ["__future__", "moonbox", "moonbox._version"]


SLOW = {
    *("asyncio", "hashlib", "html", "jsonschema_rs", "logging", "lupa.lua54", "mimetypes", "pydantic", "queue"),
    *("secrets", "ssl", "tomllib", "traceback"),
}
"""Modules that are slow to load and that few scripts need."""
LATER = {"moonbox.check.walk", "moonbox.languages.program", "moonbox.sandbox.repl", "moonbox.worker.link"}
"""What a first run needs: it is loaded while the zygote starts."""


@pytest.mark.parametrize(
    ("work", "absent"),
    [
        ("moonbox.Sandbox", SLOW | LATER | {"lupa", "pathlib"}),
        ("box = moonbox.Sandbox()", SLOW | LATER | {"lupa", "pathlib"}),
        ("moonbox.run('local t = {1, 2} for i = 1, #t do print(t[i]) end return t').unwrap()", SLOW),
    ],
    ids=["class", "instance", "run"],
)
def test_a_first_run_loads_only_what_it_needs(work: str, absent: set[str]) -> None:
    program = (
        "import sys; before = set(sys.modules); import moonbox\n"
        f"{work}\n"
        "print(len([name for name in sys.modules if name.startswith('moonbox.')]), *(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    number, *loaded = done.stdout.split()
    assert int(number) > 10
    assert sorted(absent & set(loaded)) == []


def test_one_off_run_with_tools_and_options() -> None:
    def double(n: int) -> int:
        return n * 2

    run = moonbox.run("return tools.double(21)", tools=[double], isolation="inline", limits=moonbox.Limits(timeout=5))
    assert run.value == 42
    assert [call.tool for call in run.calls] == ["double"]


SHARED = """
import moonbox

made = []
begin = moonbox.Sandbox.__init__

def noted(self, *args, **options):
    made.append(self)
    begin(self, *args, **options)

moonbox.Sandbox.__init__ = noted
moonbox.run("x = 1")
assert moonbox.run("return x").value is None
assert moonbox.run("return 1", limits=moonbox.Limits(max_operations=1000)).usage.operations is not None
assert len(made) == 1 and not made[0].closed
assert moonbox.run("40 + 2", language="rhai").value == 42
assert moonbox.run("return tools.f{}", tools={"a": []}).error is not None
assert len(made) == 3 and made[2].closed
print(*made[0].workers.spare_pids)
"""


def test_run_shares_one_sandbox_in_a_process_and_ends_it_at_exit() -> None:
    done = subprocess.run([sys.executable, "-c", SHARED], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    for pid in map(int, done.stdout.split()):
        assert not Path(f"/proc/{pid}").exists()
