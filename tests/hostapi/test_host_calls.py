"""Calls of host functions in a real worker, from the table calls.txt."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from moonbox import Limits, Sandbox
from moonbox.scripts.definition import define_host_functions
from moonbox.values import to_jsonable

if TYPE_CHECKING:
    from collections.abc import Callable

    from moonbox.scripts.hostapi.api import HostApi

CASES = Path(__file__).with_name("calls.txt")
GRANTS = {
    "http": ["127.0.0.1:9", "api.example.com"],
    "env": ["A", "MISSING"],
    "secrets": ["KEY", "SHORT", "UNSET"],
    "read": ["box"],
    "write": ["box"],
}
_SCRIPT = """local ok, value = pcall(function() return {call} end)
if ok then return "->", value end
return "!!", value.code .. ": " .. value.message"""


def folder_for(place: Path) -> None:
    (place / "box/sub/inner").mkdir(parents=True)
    (place / "box/file").write_text("x")
    (place / "box/loop").symlink_to("loop")
    with (place / "box/sparse").open("wb") as file:
        file.truncate(1 << 40)


def test_calls_give_and_refuse_what_the_table_says(make_api: Callable[..., HostApi], tmp_path: Path) -> None:
    folder_for(tmp_path)
    environ = {"A": "1", "KEY": "sk-live-4f9aB7c2D1e8", "SHORT": "12345", "HOME": "/root"}
    options = {"environ": environ, "clock": lambda: 1234.5, "entropy": lambda size: bytes(range(size))}
    lines = [line for line in CASES.read_text().splitlines() if line and not line.startswith("# ")]
    wrong = []
    with Sandbox(limits=Limits(timeout=60, max_tool_calls=1000)) as box, box.repl(check=False) as repl:
        define_host_functions(repl, make_api(GRANTS, **options))
        for call, expected in zip(lines[::2], lines[1::2], strict=True):
            run = repl.run(_SCRIPT.replace("{call}", call))
            kind, value = run.values if run.error is None else ("failed", str(run.error))
            wanted, _, text = expected.strip().partition(" ")
            right = value.startswith(text) if kind == "!!" else to_jsonable(value) == json.loads(text or "null")
            if kind != wanted or not right:
                wrong.append(f"{call}\n  {kind} {value!r}\n  not {expected.strip()}")
    assert not wrong, "\n".join(wrong)
