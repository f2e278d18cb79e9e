"""Help, versions, suggestions and completion."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from moonbox import __version__
from moonbox.cli.app import COMMANDS, load

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Moonbox


@pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.name)
def test_every_command_loads_and_is_summed_up_as_its_help_begins(entry) -> None:
    assert (load(entry).help or "").partition("\n")[0] == entry.summary


def test_the_list_of_commands(moonbox: Moonbox) -> None:
    done = moonbox("--help")
    assert done.returncode == 0
    for entry in COMMANDS:
        assert f" {entry.name} " in done.stdout
        assert entry.summary in done.stdout
    assert "moonbox run -e '6 * 7'" in done.stdout
    assert re.findall(r"<[a-z][^ ]*>", done.stdout) == []


def test_version(moonbox: Moonbox) -> None:
    for flag in ("--version", "-V"):
        assert moonbox(flag).stdout == f"moonbox {__version__}\n"


def test_every_command_starts_as_a_program(process: Moonbox) -> None:
    for entry in COMMANDS:
        done = process(entry.name, "--help")
        assert (done.returncode, done.stderr) == (0, "")
        assert f"Usage: moonbox {entry.name} " in done.stdout


def test_version_and_help_load_nothing_heavy() -> None:
    script = (
        "import sys; sys.argv = ['moonbox', sys.argv[1]]\n"
        "from moonbox.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(sorted(set(sys.modules) & {'pydantic', 'lupa', 'prompt_toolkit', 'asyncio', 'sqlite3', 'typer'}))"
    )
    for flag, loaded in (("--version", "[]"), ("--help", "['typer']")):
        done = subprocess.run([sys.executable, "-c", script, flag], capture_output=True, text=True, check=True)
        assert done.stdout.splitlines()[-1] == loaded


@pytest.mark.parametrize("given", [["-e", "print(6 * 7) return {a = 1}"], ["script.lua"]])
def test_a_script_alone_loads_only_what_it_needs(tmp_path: Path, given: list[str]) -> None:
    """Nothing that reads options or configuration, or shows anything in colours."""
    (tmp_path / "script.lua").write_text("print(6 * 7) return {a = 1}")
    script = (
        f"import sys; sys.argv = ['moonbox', 'run', *{given!r}]\n"
        "from moonbox.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(*sorted(name for name in sys.modules if name in SLOW or name.startswith('moonbox.')))"
    )
    slow = ["typer", "rich", "pygments", "prompt_toolkit", "tomllib", "asyncio", "ssl"]
    slow += ["pydantic", "jsonschema_rs", "logging", "sqlite3", "lupa.lua54"]
    script = script.replace("SLOW", repr(slow))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path)
    *shown, loaded = done.stdout.splitlines()
    assert shown == ["42", '{"a":1}']
    assert "moonbox.cli.script" in loaded.split()
    slow += ["moonbox.cli.app", "moonbox.cli.options", "moonbox.config.reader", "moonbox.project", "moonbox.mcp"]
    assert [name for name in loaded.split() if name in slow] == []


def test_help_of_a_command_has_examples_and_every_limit(moonbox: Moonbox) -> None:
    from dataclasses import fields

    from moonbox.limits import Limits

    shown = moonbox("run", "--help").stdout
    assert "moonbox run report.lua --tools crm:tools" in shown
    for field in fields(Limits):
        option = "--max-calls" if field.name == "max_tool_calls" else f"--{field.name.replace('_', '-')}"
        assert option in shown


@pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.name)
def test_help_names_sections_of_the_configuration_and_no_python_types(entry, moonbox: Moonbox) -> None:
    for words, command in _with_those_below(load(entry), [entry.name]):
        shown = moonbox(*words, "--help").stdout
        found = re.findall(r"<[a-z][^ ]*>|\[\[|\.\.\.\}", shown)
        assert not found, f"{command.name}: {found}"
        for part in (command, *command.params):
            for section in re.findall(r"\[[a-z.]+\]", part.help or ""):
                assert section in shown, f"{words} {part.name}: {section}"


def _with_those_below(command, words):
    yield words, command
    for name, child in getattr(command, "commands", {}).items():
        yield from _with_those_below(child, [*words, name])


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["rnu"], "No such command 'rnu'. Did you mean 'run'?"),
        (["run", "--timout", "5"], "No such option: --timout (Possible options: "),
        (["audit", "lst"], "No such command 'lst'. Did you mean 'list'?"),
        (["run", "-e", "1", "--timeout", "soon"], "'soon' is not a duration; write for example"),
        (["run", "-e", "1", "--max-memory", "1.5"], "'1.5' is not a number of bytes"),
    ],
)
def test_slips_are_answered_with_what_is_right(moonbox: Moonbox, args: list[str], said: str) -> None:
    done = moonbox(*args)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


COMPLETED = {
    "run --max-o": ["--max-operations", "--max-output"],
    "d": ["doctor"],
    "run --limits u": ["untrusted"],
    "run --language ": ["lua", "rhai", "python"],
    "repl --language r": ["rhai"],
    "check --language l": ["lua"],
    "run --features ": ["coroutines", "metatables"],
    "run --isolation i": ["inline"],
    "run --audit o": ["on", "off"],
    "search --mode ": ["keyword", "semantic", "hybrid"],
    "mcp install --client cu": ["cursor"],
}


def test_shells_complete_commands_options_and_their_values(moonbox: Moonbox) -> None:
    for words, values in COMPLETED.items():
        given = f"moonbox {words}"
        asked = {"_MOONBOX_COMPLETE": "complete_bash", "COMP_WORDS": given, "COMP_CWORD": str(given.count(" "))}
        assert moonbox(env=asked).stdout.split() == values
