"""`moonbox audit`, as a person calls it."""

from __future__ import annotations

import datetime as dt
import json
import time
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from moonbox.audit.records import Call, CallError, Run, Usage
from moonbox.audit.sinks import open_sink, open_trail
from moonbox.cli.app import app
from moonbox.errors import ScriptError
from moonbox.values import pack

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from typer.testing import Result

    from .conftest import Moonbox
    from .terminal import Terminal

SOURCE = "-- the sum\nlocal total = 0\nreturn total \x1b[2J"
RUNS = (
    Run(
        "aaaa000011112222",
        SOURCE,
        values=(41250.0,),
        output="hello \x1b]0;title\x07\n",
        calls=(
            Call(1, "get_expenses", {"employee_id": 1}, packed=pack([9.5]), started=1000.0, duration=0.25, bytes_out=5),
            Call(2, "se\x1bnd", {}, "error", error=CallError("bad", "no\nway"), started=1000.3, approval="allowed"),
            Call(3, "slow", {}, "in_flight", started=1000.4, retry_of=2),
            Call(
                4,
                "pay",
                {"n": 1},
                packed=pack(1),
                started=1000.4,
                approval="edited",
                approval_by="bob",
                approval_reason="too much",
                original_arguments={"n": 5},
            ),
        ),
        usage=Usage(wall=0.5, cpu=0.01, operations=1234, peak_memory=65536, bytes_in=10, bytes_out=2000),
        started=1000.0,
        repl="main",
        number=2,
        labels={"user": "ann", "team": "a=b"},
    ),
    Run(
        "aaaa000099992222",
        "return row.name",
        error=ScriptError("runtime", "attempt to index nil", line=1, hint="check row", traceback="1 | return row.name"),
        started=2000.0,
        state_lost=True,
    ),
)


@pytest.fixture(params=["trail.db", "trail.jsonl"])
def trail(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / str(request.param)
    sink = open_sink(path)
    for run in RUNS:
        sink.write(run)
    sink.close()
    return path


def _call(*args: object) -> Result:
    return CliRunner().invoke(app, ["audit", *map(str, args)])


def test_list(trail: Path) -> None:
    result = _call("list", "--db", trail)
    assert result.exit_code == 0
    rows = [line.split() for line in result.output.splitlines() if line.strip()]
    assert rows[0] == ["when", "id", "result", "calls", "time", "script"]
    assert rows[2][2:] == ["aaaa00009", "runtime", "0", "0", "µs", "return", "row.name"]
    assert " ".join(rows[3][2:]) == "aaaa00001 ok 4 (1 failed, 1 in doubt) 500 ms local total = 0"
    assert "\x1b" not in result.output


@pytest.mark.parametrize("columns", [54, 70, 100, 160])
def test_only_the_script_is_cut_off(terminal: Callable[..., Terminal], tmp_path: Path, columns: int) -> None:
    trail = tmp_path / "trail.db"
    sink = open_sink(trail)
    for run in RUNS:
        sink.write(replace(run, source="return " + "long_name + " * 40 + "1"))
    sink.close()
    screen = terminal("audit", "list", "--db", str(trail), columns=columns)
    assert screen.ended() == 0
    lines = screen.text.splitlines()
    assert all(len(line) <= columns for line in lines)
    for id, cells in (("aaaa00009", "runtime 0 0 µs"), ("aaaa00001", "ok 4 (1 failed, 1 in doubt) 500 ms")):
        place, line = next((place, line) for place, line in enumerate(lines) if id in line)
        assert f"{id} {cells}" in " ".join(line.split())
        script = line if columns >= 100 else lines[place + 1]
        assert "1970-01-01 " in script
        assert "return long_name" in script if columns > 54 else "return" in script
        assert script.endswith("…")


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        ([], [RUNS[1].id, RUNS[0].id]),
        (["--limit", "1"], [RUNS[1].id]),
        (["--failed"], [RUNS[1].id]),
        (["--tool", "slow"], [RUNS[0].id]),
        (["--repl", "main"], [RUNS[0].id]),
        (["--since", "1970-01-01T00:30:00+00:00"], [RUNS[1].id]),
        (["--since", "1d"], []),
        (["--label", "user=ann"], [RUNS[0].id]),
        (["--label", "user=ann", "--label", "team=a=b"], [RUNS[0].id]),
        (["--label", "user=ann", "--label", "team=a"], []),
        (["--label", "user=An%"], []),
    ],
)
def test_list_as_json(trail: Path, options: list[str], ids: list[str]) -> None:
    result = _call("list", "--db", trail, "--json", *options)
    assert [run["id"] for run in json.loads(result.output)] == ids


def test_nothing_to_list(trail: Path, tmp_path: Path) -> None:
    assert _call("list", "--db", trail, "--tool", "nothing").output == "no runs match\n"
    open_sink(tmp_path / "new.jsonl").close()
    assert _call("list", "--db", tmp_path / "new.jsonl").output == "no runs in this trail\n"


def test_show(trail: Path) -> None:
    result = _call("show", "aaaa00001", "--db", trail)
    assert result.exit_code == 0
    lines = [line.rstrip() for line in result.output.splitlines()]
    assert lines[0] == "run aaaa000011112222  ok"
    assert lines[1].endswith(", lua, run 2 of Repl main")
    assert lines[2] == "user=ann, team=a=b"
    assert lines[3] == "500 ms (10 ms cpu), 1,234 operations, 65.5 kB of memory, 10 B in, 2 kB out"
    assert "  3 return total \\x1b[2J" in lines
    assert lines[lines.index("returned") + 1] == "41250.0"
    assert lines[lines.index("printed") + 1] == "hello \\x1b]0;title\\x07"
    at = lines.index("calls (4)")
    assert lines[at + 2].split() == ["1", "get_expenses", "█" * lines[at + 2].count("█"), "250", "ms", "✓"]
    assert lines[at + 3].split()[-2:] == ["✗", "bad"]
    assert lines[-4:] == [
        '1 get_expenses {"employee_id":1} → [9.5]',
        "2 se\\x1bnd {} [allowed by a person] → bad: no way",
        "3 slow {} [retry of 2] → in doubt: it may have taken effect",
        '4 pay {"n":1} [edited by bob, was {"n":5}: too much] → 1',
    ]
    assert "\x1b" not in result.output
    assert "\x07" not in result.output


def test_show_a_failure(trail: Path) -> None:
    lines = _call("show", RUNS[1].id, "--db", trail).output.splitlines()
    at = lines.index("error")
    assert [line.rstrip() for line in lines[at + 1 : at + 4]] == [
        "runtime (line 1): attempt to index nil",
        "hint: check row",
        "1 | return row.name",
    ]
    assert lines[-1] == "the state of the Repl was lost with this run"


def test_show_the_latest(trail: Path) -> None:
    latest = max(RUNS, key=lambda run: run.started)
    assert json.loads(_call("show", "--last", "--db", trail, "--json").output)["id"] == latest.id
    for wrong in (["show", "--db", trail], ["show", RUNS[0].id, "--last", "--db", trail]):
        result = _call(*wrong)
        assert result.exit_code == 2
        assert "error: name one run: an id from `moonbox audit list`, or --last" in result.output


def test_show_as_json_is_the_whole_record(trail: Path) -> None:
    result = _call("show", RUNS[0].id, "--db", trail, "--json")
    assert Run.from_json(result.output) == RUNS[0]
    assert "\x1b" not in result.output


def test_stats(trail: Path) -> None:
    result = _call("stats", "--db", trail)
    lines = [" ".join(line.split()) for line in result.output.splitlines() if line.strip()]
    assert lines[0] == "2 runs, 1 failed (1 runtime), 4 calls"
    assert lines[1] == "tool calls failed p50 p95 sent received"
    assert lines[3] == "get_expenses 1 0 250 ms 250 ms 0 B 5 B"
    assert lines[5] == "se\\x1bnd 1 1 0 µs 0 µs 0 B 0 B"
    assert lines[7] == "day (UTC) runs failed calls time"
    assert lines[9] == "1970-01-01 2 1 4 500 ms"
    data = json.loads(_call("stats", "--db", trail, "--json").output)
    assert (data["runs"], data["kinds"], len(data["tools"])) == (2, {"runtime": 1}, 4)
    assert json.loads(_call("stats", "--db", trail, "--json", "--since", "7d").output)["runs"] == 0


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["show", "zzz"], "error: no run has an id that starts with 'zzz'\n"),
        (
            ["show", "aaaa"],
            "error: several runs have an id that starts with 'aaaa': aaaa000011112222, aaaa000099992222\n",
        ),
        (
            ["list", "--since", "soon"],
            "error: invalid time 'soon'; write an age such as 45m, 12h or 7d, or a date such as 2026-01-31\n",
        ),
        (["list", "--label", "ann"], "error: invalid label 'ann'; write a name and a text, such as user=ann\n"),
    ],
)
def test_mistakes_are_told_in_one_line(trail: Path, args: list[str], said: str) -> None:
    result = _call(*args, "--db", trail)
    assert (result.exit_code, sorted(result.stderr), result.stdout) == (2, sorted(said), "")


def test_a_trail_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOONBOX_HOME", str(tmp_path))
    result = _call("list")
    assert result.exit_code == 2
    assert result.stderr == (
        f"error: no audit trail at {tmp_path}/audit.db yet; `moonbox run --audit on` records runs there, "
        "and --db PATH names another file\n"
    )
    result = _call("stats", "--db", tmp_path / "other.db")
    assert result.stderr == f"error: there is no audit trail at {tmp_path}/other.db\n"
    open_sink(tmp_path / "audit.db").close()
    assert _call("list").output == "no runs in this trail\n"


def test_a_file_that_is_no_trail(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_text("not a database at all, but a text of some length " * 30)
    result = _call("list", "--db", tmp_path / "x.db")
    assert (result.exit_code, result.stderr) == (
        1,
        f"error: the audit trail {tmp_path}/x.db is not a SQLite database; choose another file\n",
    )


NOW = time.time()


@pytest.fixture(params=["many.db", "many.jsonl"])
def many(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Five runs, one a day, the latest of them of today."""
    path = tmp_path / str(request.param)
    sink = open_sink(path)
    for days in (3, 0, 4, 1, 2):
        sink.write(Run(f"run-{days}", "return 1", started=NOW - days * 86400 - 60))
    sink.close()
    return path


def ids(path: Path) -> list[str]:
    return [run.id for run in open_trail(path).list()]


@pytest.mark.parametrize(
    ("options", "left"),
    [
        (["--older-than", "2d"], ["run-0", "run-1"]),
        (["--older-than", "36h"], ["run-0", "run-1"]),
        (["--keep", "3"], ["run-0", "run-1", "run-2"]),
        (["--older-than", "4d", "--keep", "4"], ["run-0", "run-1", "run-2", "run-3"]),
        (["--older-than", "1d", "--keep", "4"], ["run-0"]),
        (["--keep", "0"], []),
        (["--older-than", "2020-01-01"], ["run-0", "run-1", "run-2", "run-3", "run-4"]),
    ],
)
def test_prune(many: Path, options: list[str], left: list[str]) -> None:
    gone = 5 - len(left)
    said = f"{gone} run{'s' * (gone != 1)}"
    dry = _call("prune", "--db", many, "--dry-run", *options)
    assert dry.exit_code == 0
    assert dry.output.startswith(f"{said} would be deleted: ")
    assert len(ids(many)) == 5, "a dry run removes nothing"
    done = _call("prune", "--db", many, "--yes", *options)
    assert (done.exit_code, done.output) == (0, f"{said} deleted\n")
    assert ids(many) == left


def test_prune_says_what_it_would_remove(many: Path) -> None:
    border = dt.datetime.fromtimestamp(NOW).strftime("%Y-%m-")
    said = _call("prune", "--db", many, "--dry-run", "--older-than", "1s", "--keep", "2").output
    assert said.startswith(f"5 runs would be deleted: older than {border}")
    assert said.endswith(", and all but the latest 2\n")
    assert _call("prune", "--db", many, "--dry-run", "--keep", "0").output == "5 runs would be deleted: all\n"
    assert _call("prune", "--db", many, "--keep", "9").output == "nothing to delete\n"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "error: name the runs to delete: --older-than 30d, --keep 1000, or both\n"),
        (
            ["--keep", "1"],
            "error: no terminal to ask for confirmation; use --yes to delete the runs, or --dry-run to count them\n",
        ),
        (
            ["--older-than", "2999-01-01"],
            "error: --older-than 2999-01-01 is in the future; use --keep 0 to delete every run\n",
        ),
        (
            ["--older-than", "ages"],
            "error: invalid time 'ages'; write an age such as 45m, 12h or 7d, or a date such as 2026-01-31\n",
        ),
    ],
)
def test_prune_removes_nothing_that_was_not_asked_for(many: Path, options: list[str], said: str) -> None:
    result = _call("prune", "--db", many, *options)
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", said)
    assert len(ids(many)) == 5


@pytest.mark.parametrize(("answer", "status", "left"), [("y", 0, 2), ("n", 1, 5), ("", 1, 5)])
def test_on_a_terminal_prune_asks_first(
    terminal: Callable[..., Terminal], many: Path, answer: str, status: int, left: int
) -> None:
    screen = terminal("audit", "prune", "--db", str(many), "--keep", "2")
    screen.expect("Delete 3 runs (all but the latest 2)? [y/N]: ")
    screen.type(f"{answer}\n", "3 runs deleted" if status == 0 else "nothing was deleted")
    assert screen.ended() == status
    assert len(ids(many)) == left


def test_verify_prints_the_hash_and_names_what_does_not_fit(trail: Path) -> None:
    done = _call("verify", "--db", trail)
    assert done.exit_code == 0
    first, second = done.output.splitlines()
    assert first == "ok: 2 records: 2 complete runs"
    head = second.removeprefix("hash: ")
    assert _call("verify", "--db", trail, "--expect", head).exit_code == 0
    assert _call("verify", "--db", trail, "--expect", "0" * 64).exit_code == 1
    if trail.suffix == ".db":
        import sqlite3

        with sqlite3.connect(trail) as db:
            db.execute("UPDATE runs SET record = replace(record, 'get_expenses', 'get_incomes')")
        db.close()
        problem = "record 1 (run aaaa000011112222): the run was changed"
    else:
        trail.write_text(trail.read_text().replace("get_expenses", "get_incomes"))
        problem = "line 1 (run aaaa000011112222) does not fit the lines before it"
    done = _call("verify", "--db", trail)
    assert (done.exit_code, done.output) == (1, f"not intact: {problem}\n")
    report = json.loads(_call("verify", "--db", trail, "--json").output)
    assert (report["ok"], report["records"], report["problem"]) == (False, 0, problem)


def test_a_run_that_is_its_own_parent_is_shown(moonbox: Moonbox, tmp_path: Path) -> None:
    trail = open_sink(tmp_path / "a.jsonl")
    trail.write(replace(RUNS[0], parent=RUNS[0].id, tool="again"))
    trail.close()
    done = moonbox("audit", "show", RUNS[0].id, "--db", "a.jsonl")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("again  aaaa0000") == 1


def test_the_tree_of_tool_scripts(moonbox: Moonbox, tmp_path: Path) -> None:
    (tmp_path / "moonbox.toml").write_text('[tools]\nfolders = ["scripts"]\n')
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "double.lua").write_text(
        'tool = {parameters = {{name = "n", type = "integer", required = true}}}\n'
        "function tool.execute(params) if params.n > 1 then error('too much') end return params.n * 2 end\n"
        "return tool\n"
    )
    done = moonbox("run", "--audit", "on", "-e", "pcall(tools.double, {n = 2}) return tools.double{n = 1}")
    assert (done.returncode, done.stdout) == (0, "2\n"), done.stderr
    runs = json.loads(moonbox("audit", "list", "--json").stdout)
    titles = ["tool script double", "tool script double", "pcall(tools.double, {n = 2}) return tools.double{n = 1}"]
    assert [run["title"] for run in runs] == titles, "loading is not in the trail"
    shown = moonbox("audit", "show", "--last").stdout
    tree = shown.partition("\ntool scripts\n")[2].splitlines()
    assert [line.split()[:2] for line in tree] == [["├──", "double"], ["└──", "double"]]
    assert [line.split()[3] for line in tree] == ["runtime", "ok"]
    child = moonbox("audit", "show", tree[0].split()[2]).stdout
    assert f"the tool script double, called by run {runs[-1]['id'][:8]}" in child
