"""Bytecode as a script: Lua does not check it, so it must never be loaded."""

from __future__ import annotations

from typing import Any

import pytest
from lupa import lua54

from moonbox import Sandbox


def bytecode(source: bytes) -> str:
    dump = lua54.LuaRuntime(encoding=None).execute(b"return string.dump(load(...))", source)
    return bytes(dump).decode("latin-1")


@pytest.mark.parametrize("isolation", ["process", "inline"])
def test_bytecode_is_refused(isolation: Any) -> None:
    with Sandbox(isolation=isolation) as box, box.repl() as repl:
        for prefix in ("", " ", "\n", "#!/usr/bin/lua\n", "return ", "\ufeff"):
            run = repl.run(prefix + bytecode(b"hacked = 1 return 42"))
            assert run.error is not None
            assert run.error.kind == "syntax"
            assert repl.run("return hacked, 1").values == (None, 1)
