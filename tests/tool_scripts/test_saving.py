"""Saved scripts: runs that become tool scripts, by a command and by a model."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from moonbox.config import Config
from moonbox.errors import ConfigError, UsageError
from moonbox.project.assembly import assemble
from moonbox.project.trust import powers
from moonbox.scripts.authoring import examples_of
from moonbox.scripts.saving import remove_script, save_run
from tests.programs import program
from tests.sandbox.conftest import clock  # noqa: F401 - a fixture

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from moonbox.project.assembly import Assembly
    from tests.sandbox.conftest import Clock

SHOP = '''
from moonbox import tool

@tool(hints={"read_only": True})
def orders(status: str = "open", page: int = 1) -> list[dict]:
    """Orders of the shop."""
    return [{"id": i, "status": status, "total": i * 10} for i in range(1, 4)] if page == 1 else []

@tool(policy="approve")
def refund(order: int) -> str:
    """Pays an order back."""
    return f"refunded {order}"
'''
TOTALS = """local status = "open"
local sum = 0
for _, order in ipairs(tools.orders{status = status}) do sum = sum + order.total end
return {status = status, sum = sum}"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(SHOP)
    (tmp_path / "moonbox.toml").write_text(
        '[tools]\npython = ["shop.py"]\nsaved = "saved"\nmodel_saves = true\n'
        '[codemode]\napprovals = true\n[audit]\npath = "trail.db"\n'
    )
    return tmp_path


@pytest.fixture
def opened(folder: Path) -> Iterator[Callable[..., Assembly]]:
    """Opens the project, as often as it is called: a restart."""
    projects = []

    def start(approve: Any = None) -> Assembly:
        project = assemble(Config.load(folder / "moonbox.toml"), approve=approve)
        projects.append(project)
        return project

    yield start
    for project in projects:
        project.close()


def library(project: Assembly) -> Any:
    assert project.scripts is not None
    return project.scripts


def moonbox(folder: Path, *arguments: str, trusted: str = "1") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        program("-m", "moonbox", *arguments),
        cwd=folder, capture_output=True, text=True, check=False, env={**os.environ, "MOONBOX_TRUST": trusted},
    )  # fmt: skip


def test_one_command_makes_a_run_a_tool_that_is_tested_and_removed(folder: Path) -> None:
    (folder / "totals.lua").write_text(TOTALS)
    trail = ("--db", "trail.db")
    assert moonbox(folder, "trust").returncode == 0
    assert moonbox(folder, "run", "totals.lua", "--audit", "trail.db").returncode == 0
    done = moonbox(
        folder, "script", "save", "--last", *trail, "--name", "totals", "--description", "Sums.", "-p", "status"
    )
    assert (done.returncode, done.stderr) == (0, "")
    text = (folder / "saved" / "totals.lua").read_text()
    assert 'version = "1"' in text
    assert 'uses = { "orders" }' in text
    assert "local status = params.status" in text
    tested = moonbox(folder, "tool", "test", "totals")
    assert tested.stdout == "ok      totals: recorded from a run\n1 example, 0 failed\n"
    real = moonbox(folder, "tool", "test", "totals", "--param", "status=paid")
    assert json.loads(real.stdout) == {"status": "paid", "sum": 60}
    assert "totals" in moonbox(folder, "catalog").stdout
    (folder / "saved" / "totals.lua").write_text(text.replace("sum + order.total", "sum + 1"))
    assert "expected" in moonbox(folder, "tool", "test").stdout
    assert moonbox(folder, "script", "remove", "totals").returncode == 0
    assert [path.name for path in (folder / "saved").rglob("*.*")] == ["totals.1.lua"]


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("local s = 'a--b' -- why", "a--b"),
        ('local s = "http://x--y/;z";', "http://x--y/;z"),
        ("local s = 'a' .. 'b'", None),
        ("local s = {1, 2}", None),
        ("local s = -5 -- why", -5),
        ("local s = true;", True),
    ],
)
def test_the_value_of_a_parameter_is_read_from_its_line(opened: Callable[..., Assembly], line: str, value: Any) -> None:
    project = opened()
    run = project.sandbox.run(f"{line}\nreturn s")
    parameters: list[dict[str, Any]] = [{"name": "s"}]
    if value is None:
        message = r"in the run is unknown: no line `local s = …` sets it to a plain text, .* give it as s=VALUE$"
        with pytest.raises(UsageError, match=message):
            save_run(library(project), run, name="same", parameters=parameters)
        return
    assert save_run(library(project), run, name="same", parameters=parameters).tested
    assert project.sandbox.call("same", {"s": value}).value == value


def test_a_saved_script_survives_a_restart_and_an_edit(folder: Path, opened: Callable[..., Assembly]) -> None:
    first = opened()
    saved = save_run(library(first), first.sandbox.run(TOTALS), name="totals", parameters=[{"name": "status"}])
    second = opened()
    assert second.sandbox.run("return tools.totals{status = 'paid'}").value == {"status": "paid", "sum": 60}
    saved.path.write_text(saved.path.read_text().replace("sum = 0", "sum = 1000"))
    assert second.refresh()
    assert second.sandbox.run("return tools.totals('paid').sum").value == 1060
    found = second.sandbox.run("return docs.search('totals')").value
    assert "totals" in json.dumps(found)
    bad = second.sandbox.run("return tools.totals{status = {1}}")
    assert bad.error is not None
    assert "status: expected string" in bad.error.message


def test_a_model_saves_its_script_and_the_second_solution_is_one_call(opened: Callable[..., Assembly]) -> None:
    asked: list[Any] = []

    def approve(call: Any) -> bool:
        asked.append(call)
        return True

    mode = opened(approve).mode
    code = mode.tool_name
    mode.handle(code, {"source_code": TOTALS}, conversation="a")
    answer = mode.handle(
        code,
        {"source_code": "return tools.save{name = 'totals', description = 'Sums orders.', "
         "parameters = {{name = 'status', type = 'string'}}}"},
        conversation="a",
    )  # fmt: skip
    assert "tools.totals" in answer
    assert asked[0].arguments["source"] == TOTALS  # a person sees what they agree to
    again = mode.handle(code, {"source_code": "tools.totals('paid')"}, conversation="b")
    assert "60" in again
    assert "totals" in json.dumps(mode.definitions("openai"))


def test_calls_of_a_saved_script_keep_their_policy_and_are_in_the_trail(opened: Callable[..., Assembly]) -> None:
    answers = [True, True, False]
    project = opened(lambda call: answers.pop(0))
    run = project.sandbox.run("local order = 7\nreturn tools.refund{order = order}")
    save_run(library(project), run, name="pay_back", parameters=[{"name": "order"}])
    outer = project.sandbox.run("return tools.pay_back(8)")
    assert outer.value == "refunded 8"
    inner = next(item for item in map(project.trail.get, [row.id for row in project.trail.list()]) if item.tool)
    assert (inner.parent, inner.tool) == (outer.id, "pay_back")
    assert [(call.tool, call.approval) for call in inner.calls] == [("refund", "allowed")]
    refused = project.sandbox.run("return tools.pay_back(9)")
    assert refused.error is not None
    assert "declined" in refused.error.message


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("../evil", "invalid name"),
        ("a/b", "invalid name"),
        ("end", "invalid name"),
        ("a\n", "invalid name"),
        ("orders", "there is a tool 'orders' already"),
        ("ORDERS", "there is a tool 'ORDERS' already"),
        ("save", "there is a tool 'save' already"),
    ],
)
def test_a_saved_script_takes_no_name_and_no_place_of_others(
    folder: Path, opened: Callable[..., Assembly], name: str, says: str
) -> None:
    project = opened()
    with pytest.raises(UsageError, match=says):
        save_run(library(project), project.sandbox.run(TOTALS), name=name)
    assert not (folder / "saved").exists()


@pytest.mark.parametrize("source", ["#tools.orders{}", "tools.orders{}[1].total", "tools.orders()"])
def test_a_script_that_is_an_expression_returns_its_value(opened: Callable[..., Assembly], source: str) -> None:
    project = opened()
    run = project.sandbox.run(source)
    save_run(library(project), run, name="value")
    assert project.sandbox.run("return tools.value()").value == run.value


@pytest.mark.parametrize(
    "source",
    ["end tool = {uses = {'refund'}} function tool.execute() return 1", "return 1 --[[", "return {...}", "1 --[["],
)
def test_a_script_cannot_leave_the_function_around_it(opened: Callable[..., Assembly], source: str) -> None:
    project = opened()
    with pytest.raises(UsageError, match=r"syntax error|cannot be a tool"):
        save_run(library(project), project.sandbox.run("return 1"), name="sly", source=source)


def test_a_script_calls_only_what_it_uses(folder: Path, opened: Callable[..., Assembly]) -> None:
    (folder / "saved").mkdir()
    hidden = (
        "tool = {name = 'sly', uses = {'orders'}} function tool.execute() return tools['ref' .. 'und']{order = 1} end"
    )
    (folder / "saved" / "sly.lua").write_text(hidden)
    project = opened(lambda call: True)
    run = project.sandbox.run("return tools.sly()")
    assert run.error is not None
    assert "attempt to call a nil value" in run.error.message


def test_a_run_that_cannot_be_repeated_is_refused(opened: Callable[..., Assembly]) -> None:
    project = opened()
    with project.sandbox.repl() as repl:
        repl.run("factor = 3")
        run = repl.run("return tools.orders()[1].total * factor")
        failed = repl.run("error('no')")
    with pytest.raises(UsageError, match="does not repeat the run"):
        save_run(library(project), run, name="triple")
    with pytest.raises(UsageError, match="only a run that succeeded"):
        save_run(library(project), failed, name="triple")
    rhai = project.sandbox_in("rhai")
    with rhai, pytest.raises(UsageError, match="only runs in Lua"):
        save_run(library(project), rhai.run("1 + 1"), name="two")


def test_versions_and_history(opened: Callable[..., Assembly]) -> None:
    project = opened()
    run = project.sandbox.run(TOTALS)
    assert save_run(library(project), run, name="totals").version == 1
    with pytest.raises(UsageError, match="already"):
        save_run(library(project), run, name="totals")
    saved = save_run(library(project), run, name="totals", replace=True)
    assert saved.version == 2
    assert len(examples_of(saved.path)) == 1
    assert remove_script(library(project), "totals").name == "totals.2.lua"
    assert "totals" not in project.sandbox.toolbox
    assert save_run(library(project), run, name="totals").version == 3


def test_a_person_may_think_longer_than_both_runs_may_take(
    opened: Callable[..., Assembly],
    clock: Clock,  # noqa: F811
) -> None:
    def think(call: Any) -> bool:
        clock.advance(1000)
        return True

    project = opened(think)
    run = project.sandbox.run("return tools.refund{order = 7}")
    save_run(library(project), run, name="pay_back")
    assert project.sandbox.run("return tools.pay_back()", timeout=60).value == "refunded 7"


def test_a_strange_project_needs_trust(folder: Path) -> None:
    lines = powers(Config.load(folder / "moonbox.toml"))
    who = "let the scripts in saved call the tools of the project and let a model add to them, with approval"
    assert who in lines
    (folder / "saved").mkdir()
    (folder / "saved" / "sly.lua").write_text("tool = {} function tool.execute() return 1 end")
    done = moonbox(folder, "run", "-e", "tools.sly()", trusted="")
    assert done.returncode == 2
    assert "let the scripts in saved" in done.stderr


@pytest.mark.parametrize("item", ["null", "[]", "{}", '{"error": null}', '{"result": 1, "error": "x"}'])
def test_an_example_expects_a_result_or_an_error(tmp_path: Path, item: str) -> None:
    (tmp_path / "x.examples.json").write_text(f"[{item}]")
    with pytest.raises(ConfigError, match=r"x\.examples\.json\[0\]: give either result or error"):
        examples_of(tmp_path / "x.lua")
