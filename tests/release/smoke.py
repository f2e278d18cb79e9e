"""What must work in any environment in which moonbox is installed: run by that environment's Python, without pytest."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata, resources
from pathlib import Path

import moonbox
from moonbox import Limits, Sandbox, tool


@tool
def double(n: int) -> int:
    """Twice a number."""
    return n * 2


def command(*arguments: str) -> str:
    program = str(Path(sys.executable).with_name("moonbox"))
    done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def main() -> None:
    assert "site-packages" in str(moonbox.__file__), moonbox.__file__
    assert moonbox.__version__ == metadata.version("moonbox")
    assert moonbox.run("return 6 * 7").value == 42
    assert moonbox.run("let x = 40; x + 2", language="rhai").value == 42
    with Sandbox(tools=[double], limits=Limits.quick()) as box:
        run = box.run("return tools.double{n = 21}, json.encode({1, 2})")
        assert run.values == (42, "[1,2]"), run.error
        bad = box.run("return tools.double{m = 1}").error
        assert bad is not None and bad.code == "invalid"

    assert command("--version") == f"moonbox {moonbox.__version__}"
    assert command("run", "-e", "6 * 7") == "42"
    assert command("run", "--language", "rhai", "-e", "6 * 7") == "42"
    assert "seccomp" in command("doctor", "--json")
    assert command("tool", "init", "greet") and command("tool", "test", "tools/greet.lua", "--param", "name=moon")

    package = resources.files("moonbox")
    for name in (
        "py.typed",
        "languages/lua/prelude/main.lua",
        "languages/rhai/compiler/compile.lua",
        "languages/rhai/runtime/core.lua",
        "languages/lua/docs.toml",
        "languages/lua/texts.toml",
        "languages/rhai/texts.toml",
        "scripts/files/tool.lua",
    ):
        assert package.joinpath(*name.split("/")).is_file(), name
    print("all is well")


if __name__ == "__main__":
    main()
