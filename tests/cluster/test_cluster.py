"""Sandbox(cluster=…) on a real Ray cluster: the same code as without, nodes and actors that are killed."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import moonbox
from moonbox import Limits, Sandbox, tool
from moonbox._version import __version__
from moonbox.audit.metrics import Metrics
from moonbox.cli import main
from moonbox.cluster import ray_process
from moonbox.cluster.membership import Membership
from moonbox.config.sections import ServeSettings
from moonbox.durable import recovering
from moonbox.durable.index import JournalFilter
from moonbox.errors import ToolDefinitionError, WorkerError
from moonbox.mcp.server.limits import ClusterQuotas, TooMany
from tests.cluster import node_tool
from tests.faults.processes import lives
from tests.long import LONG, only_long
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cluster.local_cluster import LocalCluster


@tool
def expenses(employee: int) -> list[dict[str, float]]:
    """The expenses of an employee."""
    return [{"amount": employee * 10.0}, {"amount": 1.0}]


@tool(policy="approve")
def pay(amount: float) -> str:
    """Pay."""
    return f"paid {amount}"


@pytest.fixture(params=["here", "cluster"])
def options(request: pytest.FixtureRequest) -> dict[str, Any]:
    if request.param == "here":
        return {}
    return {"cluster": request.getfixturevalue("cluster").address}


@pytest.fixture
def box(options: dict[str, Any]) -> Iterator[Sandbox]:
    with Sandbox([expenses, pay], approve=lambda call: True, **options) as made:
        yield made


CASES: dict[str, tuple[str, Any]] = {
    "value": ("return 1 + 1", 2),
    "calls": ("local t = 0 for i = 1, 20 do t = t + tools.expenses{employee = i}[1].amount end return t", 2100.0),
    "parallel": ("return #parallel{function() return tools.expenses{employee=1} end, function() return 2 end}", 2),
    "approval": ("return tools.pay{amount = 5}", "paid 5.0"),
    "inputs": ("return rows[2].x", 7),
    "large": ("return #text .. text:sub(1, 1)", "3000000y"),
}


@pytest.mark.parametrize("case", CASES)
def test_the_same_script_gives_the_same(box: Sandbox, case: str) -> None:
    source, value = CASES[case]
    inputs = {"rows": [{"x": 1}, {"x": 7}], "text": "y" * 3_000_000}
    assert box.run(source, inputs=inputs).unwrap() == value
    assert asyncio.run(box.arun(source, inputs=inputs)).unwrap() == value


def test_a_repl_behaves_the_same(box: Sandbox) -> None:
    heard: list[str] = []
    with box.repl() as repl:
        repl.define("twice", lambda x: 2 * x)
        repl.run("x = twice(4); print('hello')", on_output=heard.append).unwrap()
        assert repl.run("return x").value == 8 and heard == ["hello\n"]
        assert repl.globals() == {"x": "number"}
        kinds = [repl.run(bad, limits=limits).error for bad, limits in BAD]
        assert [(error.kind, error.limit) for error in kinds if error] == WRONG
        assert repl.run("return x").value == 8
        handle = repl.submit("progress(1, 2, 'half') return x")
        assert handle.wait(60).value == 8
    assert box.call("expenses", {"employee": 3}).value[0]["amount"] == 30.0
    assert box.docs.answer("search", ["expenses"])[0]["name"] == "expenses"


BAD = [
    ("return 1 +", None),
    ("error('no')", None),
    ("while true do end", Limits(timeout=0.3)),
    ("tools.expenses{}", None),
    ("for i = 1, 9 do tools.expenses{employee = 1} end", Limits(max_tool_calls=2)),
]
WRONG = [("syntax", None), ("runtime", None), ("limit", "time"), ("check", None), ("limit", "calls")]


NODE_TOOLS = [node_tool.where, node_tool.fails, node_tool.big, node_tool.picture, node_tool.unsendable]


def test_a_tool_can_run_on_a_node(cluster: LocalCluster) -> None:
    with Sandbox(NODE_TOOLS, cluster=cluster.address) as box:
        found = box.run("return tools.where{text = 'a'}").unwrap()
        assert found["pid"] != os.getpid() and found["call"] == 1
        assert box.run("return select(2, pcall(tools.fails, {code = 'conflict'})).code").unwrap() == "conflict"
        assert box.run("return #tools.big{size = 2000000}").unwrap() == 2_000_000
        assert box.run("return tools.picture{}").value["type"] == "image/png"
        error = box.run("tools.unsendable{}").error
        assert error is not None and "the result of unsendable cannot be used: result is a module" in error.message
    with Sandbox([node_tool.where]) as box:
        assert box.run("return tools.where{text = 'a'}.pid").unwrap() == os.getpid()
    with pytest.raises(ToolDefinitionError, match="placement 'node' needs a function at the top of a module"):
        tool(placement="node", name="one")(lambda: 1)


def test_status_shows_nodes_and_front_ends(
    cluster: LocalCluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Sandbox([expenses], cluster=cluster.address) as box, box.repl() as repl:
        repl.run("x = 1").unwrap()

        def status(*options: str) -> str:
            monkeypatch.setattr(sys, "argv", ["moonbox", "cluster", "status", "--address", cluster.address, *options])
            with pytest.raises(SystemExit) as ended:
                main()
            assert ended.value.code == 0
            return capsys.readouterr().out

        def seen() -> Any:
            found = json.loads(status("--json"))
            return found if idle in [each["repls"] for each in found["front_ends"]] else None

        idle = {"awake": 1, "asleep": 0, "running": 0}
        found = wait_until(seen)
        assert len(found["nodes"]) == 3 and sum(node["workers"] for node in found["nodes"]) >= 1
        assert [each["workers"]["waiting"] for each in found["front_ends"] if each["repls"] == idle] == [0]
        assert "front end" in status()


def test_ray_is_told_of_workers_and_of_those_that_wait_for_room(cluster: LocalCluster) -> None:
    """Its autoscaler adds nodes for groups that are pending."""
    with Sandbox([node_tool.reserved], cluster=cluster.address, min_workers=0) as box:
        assert box.cluster is not None
        wait_until(lambda: not reserved(box, "CREATED"), "other tests have left something")
        with ExitStack() as repls:
            for _ in range(3):
                repls.enter_context(box.repl()).run("return 1").unwrap()
            units = {"moonbox_repls": 1, "memory": 8 << 20}
            wait_until(
                lambda: sum(n / units[unit] for each in reserved(box, "CREATED") for unit, n in each.items()) == 3,
                "the workers are not told of",
            )
        with ExitStack() as waiting:
            for _ in range(603):  # for 600 there would be room
                waiting.enter_context(box.cluster.one_waits())
            bundle = {"moonbox_repls": 16.0}
            wait_until(lambda: reserved(box, "PENDING") == [bundle] * 37 + [{"moonbox_repls": 11.0}])
        wait_until(lambda: not reserved(box, "PENDING"), "the demand is not withdrawn")
        wait_until(lambda: not reserved(box, "CREATED"), "workers that ended are told of")


def reserved(box: Sandbox, state: str) -> list[dict[str, float]]:
    """What is reserved in Ray, by all front ends."""
    found = box.call("reserved", {}, timeout=60).unwrap()
    return [bundle for each, bundles in found if each == state for bundle in bundles]


def test_limits_of_clients_hold_across_front_ends(cluster: LocalCluster) -> None:
    settings = ServeSettings(max_calls=2, calls_per_minute=4, wait_seconds=0.3)

    async def scenario() -> None:
        async with ClusterQuotas(replace(settings, wait_seconds=60), nodes).acall("first"):
            pass  # the actor has started
        one, other = ClusterQuotas(settings, nodes), ClusterQuotas(settings, nodes)
        async with one.acall("ann"), other.acall("ann"):
            async with other.acall("ben"):
                pass
            with pytest.raises(TooMany, match="may run 2 calls at a time on this cluster"):
                async with one.acall("ann"):
                    pass
        async with other.acall("ann"), one.acall("ann"):
            pass
        with pytest.raises(TooMany, match="may make 4 calls a minute"):
            async with other.acall("ann"):
                pass

    with closing(Membership(cluster.address)) as nodes:
        asyncio.run(scenario())


def test_another_version_of_moonbox_on_the_nodes_is_refused(
    cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_process, "__version__", "0.0.1")
    ray = ray_process.RayProcess(cluster.address)  # not the one that all share
    ray.users = 1
    monkeypatch.setattr(ray_process.RayProcess, "shared", lambda address: ray)
    with Sandbox(cluster=cluster.address, min_workers=0) as box:
        with pytest.raises(WorkerError, match=r"^no node of the cluster can run workers: node \w{8}: ") as refused:
            box.run("return 1")
        assert f": moonbox there is {__version__}, and the front end's is 0.0.1" in str(refused.value)
    ray.end()


@only_long
@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="hiding moonbox from a node needs root")
def test_a_node_without_moonbox_is_named_and_not_used(cluster: LocalCluster) -> None:
    with closing(Membership(cluster.address)) as nodes:
        wait_until(lambda: len(nodes.connections()) == 3)
        with cluster.node_without(Path(moonbox.__file__).parents[1]):
            told = wait_until(lambda: nodes.ray.nodes and nodes.ray.nodes.problems, "no node is refused", seconds=120)
            assert [each.message for each in told] == ["moonbox is not installed there"]
            assert len(nodes.connections()) == 3
        wait_until(lambda: nodes.ray.nodes and not nodes.ray.nodes.problems, "the node is still there", seconds=120)


FRONT_END = """
import sys, time
from moonbox import Sandbox
box = Sandbox(cluster=sys.argv[1])
repl = box.repl()
repl.run("x = 1").unwrap()
print(repl.worker_pid, box.cluster.ray.pid, "ray" in sys.modules, flush=True)
time.sleep(600)
"""


def test_a_front_end_that_is_killed_leaves_nothing(cluster: LocalCluster) -> None:
    """Ray is not loaded into it, its Ray process has none of its secrets, and nothing stays reserved for it."""
    secret = {"MOONBOX_TOKEN": "s3cr3t", "DATABASE_PASSWORD": "s3cr3t"}
    command = [sys.executable, "-c", FRONT_END, cluster.address]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **secret}) as front_end:
        assert front_end.stdout is not None
        worker, ray, loaded = front_end.stdout.readline().split()
        assert loaded == "False"
        assert b"s3cr3t" not in Path(f"/proc/{ray}/environ").read_bytes()
        with Sandbox([node_tool.reserved], cluster=cluster.address, min_workers=0) as box:
            wait_until(lambda: reserved(box, "CREATED"), "nothing is reserved for its worker")
            front_end.kill()
            wait_until(lambda: not lives(int(worker)), "its worker lives on")
            wait_until(lambda: not lives(int(ray)), "its Ray process lives on")
            wait_until(lambda: not reserved(box, "CREATED"), "a node is still reserved for it")


CUT_OFF = """
import sys, time
from moonbox import Sandbox, tool

@tool(hints={"idempotent": True})
def step(n: int) -> int:
    print(n, flush=True)
    time.sleep(600 if n == 2 else 0)
    return n

box = Sandbox([step], cluster=sys.argv[1], journal=sys.argv[2])
box.run("return tools.step{n = 1} + tools.step{n = 2}", labels={"case": "cut off"})
"""


def test_another_front_end_continues_the_runs_of_one_that_is_killed(
    cluster: LocalCluster, postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recovering, "LEASE_SECONDS", 0.5)  # so often it looks
    made: list[int] = []

    @tool(hints={"idempotent": True})
    def step(n: int) -> int:
        made.append(n)
        return n

    with Sandbox([step], cluster=cluster.address, journal=postgres, recover=True) as box:
        command = [sys.executable, "-c", CUT_OFF, cluster.address, postgres]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as front_end:
            assert front_end.stdout is not None
            assert [front_end.stdout.readline() for _ in range(2)] == ["1\n", "2\n"]
            (known,) = box.journal.runs(JournalFilter(labels={"case": "cut off"}))
            assert (known.state, made) == ("running", [])
            front_end.kill()
        wait_until(lambda: box.journal.known(known.id).state == "ok", "it does not go on", seconds=60)
        assert made == [2]
        assert box.replay(known.id).value == 3


def test_every_call_is_made_once_while_nodes_and_actors_are_killed(cluster: LocalCluster, postgres: str) -> None:
    """Every run of the tests does it with 20 Repls, 100 runs and two kills; `make soak` with 200 Repls and 2,000."""
    repls, runs, slowest, most_kills = (200, 10, 3.0, 1000) if LONG else (20, 5, 1.0, 2)
    made: Counter[str] = Counter()
    lock = threading.Lock()
    began = time.monotonic()

    @tool
    def step(key: str) -> int:
        """One step."""
        with lock:
            made[key] += 1
            seconds = cluster.random.uniform(0, slowest)
        threading.Event().wait(seconds)
        return 1

    script = "total = (total or 0) for i = 1, 3 do total = total + tools.step{key = name .. ':' .. i} end return total"
    wrong: list[str] = []
    done = Counter[str]()
    metrics = Metrics()
    options: dict[str, Any] = {"cluster": cluster.address, "journal": postgres, "max_workers": repls + 50}
    with Sandbox([step], metrics=metrics, **options) as box:

        def work(number: int) -> None:
            try:
                with box.repl() as repl:
                    for run_number in range(runs):
                        run = repl.run(script, inputs={"name": f"{number}.{run_number}"}, timeout=120)
                        done["runs"] += 1
                        if run.value != 3 * (run_number + 1):
                            wrong.append(f"{number}.{run_number}: {run.value} {run.error}")
            except Exception as problem:  # noqa: BLE001 - told below
                wrong.append(f"{number}: {problem!r}")

        threads = [threading.Thread(target=work, args=(number,)) for number in range(repls)]
        for thread in threads:
            thread.start()
        wait_until(lambda: done["runs"], seconds=240)
        kills = 0
        while any(thread.is_alive() for thread in threads) and kills < most_kills:
            kills += 1
            cluster.kill_actor() if kills % 3 == 2 else cluster.kill_node()
        for thread in threads:
            thread.join()
    moved = [line for line in metrics.text().decode().splitlines() if line.startswith("moonbox_runs_moved_total")]
    seconds = time.monotonic() - began
    print(f"{done['runs']} runs, {len(made)} calls, {kills} nodes and hosts killed, {seconds:.0f} s, {moved}")
    assert not wrong
    assert done["runs"] == repls * runs
    assert len(made) == repls * runs * 3 and set(made.values()) == {1}
    assert kills
    assert moved or not LONG  # two kills may hit nodes without workers; test_moving kills those that have some


def test_the_loss_of_the_head_leaves_the_front_end_and_its_links(cluster: LocalCluster, tmp_path: Path) -> None:
    """The last test: there is no cluster after it. Ray ends the processes that use it, which the front end does not."""
    tools = [expenses, node_tool.where]
    with Sandbox(tools, cluster=cluster.address, journal=tmp_path / "state.db") as box, box.repl() as repl:
        repl.run("x = tools.expenses{employee = 4}[1].amount").unwrap()
        assert box.cluster is not None
        first = box.cluster.ray.pid
        cluster.kill_head()
        wait_until(lambda: not lives(first), "Ray did not end its process")
        assert repl.run("return x").value == 40.0
        with box.repl() as other:  # on a node that was there before
            assert other.run("return 1 + 1").value == 2
        error = box.run("tools.where{text = 'a'}").error
        assert error is not None and "the cluster cannot be reached now: " in error.message
        assert (error.code, error.retryable) == ("unavailable", True), "the call was not made"
