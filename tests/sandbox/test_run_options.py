"""What is given for one run: limits, context, labels and callbacks, over those of the Repl and the Sandbox."""

from __future__ import annotations

import asyncio
import gc
import json
from typing import TYPE_CHECKING, Any

import pytest

import moonbox
from moonbox import CodeMode, Context, Limits, Middleware, Run, Sandbox, ToolCall, tool
from moonbox.audit.sinks import MemorySink
from moonbox.errors import UsageError, WorkerError
from tests.runs import DRIVES, error_of, stepped

from ..faults.processes import lives, nothing_leaks
from ..waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FIVE_CALLS = "for i = 1, 5 do tools.add{a = i} end return 1"
USER = "return tools.user()"


@tool
def add(a: int) -> int:
    """Add one."""
    return a + 1


@tool
def user(context: Context) -> Any:
    """For whom the script runs."""
    return dict(context.extra)


@tool
def labels(context: Context) -> Any:
    """The labels of the run."""
    return dict(context.labels)


@tool(policy="approve")
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


def one_off(box: Sandbox, source: str, **options: Any) -> Run:
    return box.run(source, **options)


def one_off_awaited(box: Sandbox, source: str, **options: Any) -> Run:
    return asyncio.run(box.arun(source, **options))


def handled(box: Sandbox, source: str, **options: Any) -> Run:
    with CodeMode(box) as mode:
        return run_of(mode.reply("lua_repl", {"source_code": source}, **options))


def handled_awaited(box: Sandbox, source: str, **options: Any) -> Run:
    with CodeMode(box) as mode:
        return run_of(asyncio.run(mode.areply("lua_repl", {"source_code": source}, **options)))


def run_of(reply: Any) -> Run:
    assert isinstance(reply.run, Run)
    return reply.run


def in_repl(drive: Callable[..., Run]) -> Callable[..., Run]:
    def run(box: Sandbox, source: str, **options: Any) -> Run:
        with box.repl() as repl:
            return drive(repl, source, **options)

    return run


WAYS = [one_off, one_off_awaited, *map(in_repl, DRIVES), handled, handled_awaited]


# Limits


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("options", [{"limits": Limits(timeout=21)}, {"timeout": 21}])
def test_limits_of_one_run_change_what_is_given(way: Callable[..., Run], options: dict[str, Any]) -> None:
    with Sandbox([add], limits=Limits(timeout=20, max_tool_calls=3)) as box:
        run = way(box, FIVE_CALLS, **options)
        assert error_of(run).limit == "calls"
        assert run.limits == Limits(timeout=21, max_tool_calls=3)
        assert way(box, "return 1").limits == box.limits


def test_limits_of_a_repl_are_between() -> None:
    with (
        Sandbox([add], limits=Limits(timeout=20, max_tool_calls=3)) as box,
        box.repl(limits=Limits(max_depth=9)) as repl,
    ):
        assert repl.run("return 1").limits == Limits(timeout=20, max_tool_calls=3, max_depth=9)
        run = repl.run("return 1", limits=Limits(max_tool_calls=1), timeout=19)
        assert run.limits == Limits(timeout=19, max_tool_calls=1, max_depth=9)
        assert repl.run("return 1", limits=Limits.quick()).limits == Limits.quick(max_depth=9)


def test_limits_of_moonbox_run() -> None:
    assert moonbox.run("return 1", timeout=7).limits == Limits(timeout=7)
    assert moonbox.run("return 1", limits=Limits(max_depth=9), timeout=7).limits == Limits(timeout=7, max_depth=9)
    run = moonbox.run("return tools.add{a = 1}", [add], limits=Limits(max_depth=9), timeout=7)
    assert run.unwrap() == 2
    assert run.limits == Limits(timeout=7, max_depth=9)


# The life of a Sandbox


def test_a_repl_keeps_its_sandbox() -> None:
    repl = Sandbox([add]).repl()
    gc.collect()
    assert repl.run("return tools.add{a = 1}").unwrap() == 2
    pid = repl.worker_pid
    assert pid is not None
    del repl
    gc.collect()
    wait_until(lambda: not lives(pid))


# Wrong options


def nothing(*_: object) -> None: ...


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"limits": {"timeout": 5}}, "limits must be a Limits value"),
        ({"language": "ruby"}, "unknown language 'ruby'; known languages: lua"),
        ({"isolation": "docker"}, 'isolation must be "process" or "inline", not \'docker\''),
        ({"lua_features": "coroutines"}, "lua_features must be a set of"),
        ({"lua_features": {"debug"}}, "lua_features: unknown feature 'debug'"),
        ({"min_workers": -1}, "min_workers must be a whole number of at least 0, not -1"),
        ({"max_workers": 0}, "max_workers must be a whole number of at least 1, not 0"),
        ({"max_workers": True}, "max_workers must be a whole number of at least 1, not True"),
        ({"min_workers": 3, "max_workers": 2}, "min_workers (3) must not be more than max_workers (2)"),
        ({"globals": {"a b": 1}}, "'a b' is not a name that a script can write"),
        ({"approval_seconds": 0}, "approval_seconds must be a positive number, not 0"),
        ({"failures": "throw"}, "failures must be 'return' or 'raise', not 'throw'"),
        ({"sleep_after": 1}, "sleep_after needs a journal"),
        ({"require": ["secomp"]}, "unknown layer 'secomp'; did you mean 'seccomp'?"),
        ({"require": "seccomp"}, "require must be a list of layers, such as ['seccomp'], not 'seccomp'"),
        ({"require": 5}, "require must be a list of layers, such as ['seccomp'], not 5"),
        (
            {"require": ["seccomp"], "isolation": "inline"},
            'isolation="inline" has no jail: no layer can be required of',
        ),
        ({"approve": 5}, "approve must be a function, not 5"),
        ({"on_call": "x"}, "on_call must be a function, not 'x'"),
        ({"on_output": []}, "on_output must be a function, not []"),
        ({"middleware": Middleware()}, "middleware must be a list of Middleware values, not Middleware("),
        ({"middleware": [nothing]}, "middleware must be a list of Middleware values, not [<function"),
        ({"middleware": [Middleware(before=5)]}, "before of a Middleware must be a function, not 5"),  # type: ignore[arg-type]
        ({"middleware": [Middleware(after="x")]}, "after of a Middleware must be a function, not 'x'"),  # type: ignore[arg-type]
        ({"audit": 5}, "audit must be a path that ends in .db or .jsonl, or a Sink with a method `write`, not 5"),
        ({"context": 5}, "context must be a mapping from names to values, not 5"),
        ({"globals": 5}, "globals must be a mapping from names to values, not 5"),
        ({"lua_features": 5}, "lua_features must be a set of"),
        ({"metrics": 5}, "metrics must be a Metrics value, not 5"),
        ({"telemetry": 5}, "telemetry must be True or a Telemetry value, not 5"),
        ({"redact": 5}, "redact must be a list of names or a Redactor, not 5"),
        ({"secrets": {"key": 5}}, "secrets must be a mapping from names to strings"),
        ({"secrets": "sk-123456"}, "secrets must be a mapping from names to strings"),
        ({"approval_seconds": True}, "approval_seconds must be a positive number, not True"),
        ({"cluster": "auto", "isolation": "inline"}, "on a cluster, isolation must be 'process', not 'inline'"),
        ({"audit": "trail.txt"}, "unknown audit sink 'trail.txt'"),
        ({"journal": 5}, "journal must be a path or a postgresql:// address, not 5"),
    ],
)
def test_wrong_options_of_a_sandbox(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    """Whatever is wrong, neither the journal nor the trail stays open."""
    files = {"journal": tmp_path / "state.db", "audit": tmp_path / "trail.db"}
    if "sleep_after" in options:
        del files["journal"]
    with nothing_leaks(), pytest.raises(UsageError) as caught:
        Sandbox([add], **{**files, **options})
    assert str(caught.value).startswith(message)
    assert "sk-123456" not in str(caught.value)


def test_a_sandbox_that_does_not_start_closes_what_it_has_opened(tmp_path: Path) -> None:
    with nothing_leaks(), pytest.raises(WorkerError, match="required layer of the jail missing: 'cpu-limit'"):
        Sandbox(journal=tmp_path / "state.db", audit=tmp_path / "trail.db", require=["cpu-limit"])


def test_a_sandbox_that_does_not_start_leaves_the_callers_sink_open() -> None:
    closed = []

    class Sink(MemorySink):
        def close(self) -> None:
            closed.append(self)

    with pytest.raises(UsageError, match="journal must be"):
        Sandbox(audit=Sink(), journal=5)  # type: ignore[arg-type]
    assert not closed


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"limits": 5}, "limits must be a Limits value, for example Limits(timeout=10); not 5"),
    ({"timeout": "soon"}, "Limits.timeout must be a number of seconds, not 'soon'"),
    ({"on_call": 5}, "on_call must be a function, not 5"),
    ({"on_output": 5}, "on_output must be a function, not 5"),
    ({"context": [1]}, "context must be a mapping from names to values, not [1]"),
    ({"context": {1: 2}}, "context must have strings as names, not 1"),
    ({"labels": [1]}, "labels must be a mapping from strings to strings, not [1]"),
    ({"labels": {"user": 5}}, "the label 'user' must be a string, not 5"),
    ({"labels": {"a b": "c"}}, "the name of a label must be 1 to 64 letters, digits or any of _ . - /, not 'a b'"),
    ({"labels": {"user": "x" * 257}}, "the label 'user' has 257 characters; at most 256 are possible"),
    ({"labels": {f"k{n}": "" for n in range(17)}}, "there are 17 labels; at most 16 are possible"),
    ({"labels": {"user": "a\nb"}}, "the label 'user' must be one line of printable text"),
    ({"label": {}}, "unknown option 'label'; did you mean 'labels'?"),
]


@pytest.mark.parametrize("way", WAYS)
def test_wrong_options_of_a_run(way: Callable[..., Run]) -> None:
    with Sandbox([add]) as box:
        for options, message in WRONG:
            with pytest.raises(UsageError) as caught:
                way(box, "return 1", **options)
            assert str(caught.value).startswith(message)
        assert way(box, "return 1").ok


# For whom


@pytest.mark.parametrize("way", WAYS)
def test_context_and_labels(way: Callable[..., Run]) -> None:
    with Sandbox([user, labels], context={"db": 1, "user": "host"}) as box:
        run = way(box, "return {tools.user(), tools.labels()}", context={"user": "ann"}, labels={"user": "ann"})
        assert run.unwrap() == [{"db": 1, "user": "ann"}, {"user": "ann"}]
        assert run.labels == {"user": "ann"}
        assert json.loads(run.to_json())["labels"] == {"user": "ann"}
        assert Run.from_json(run.to_json()) == run
        assert way(box, USER).unwrap() == {"db": 1, "user": "host"}


def test_context_and_labels_of_a_repl() -> None:
    with Sandbox([user]) as box, box.repl(context={"user": "ann", "team": 1}, labels={"user": "ann", "a": "b"}) as repl:
        run = repl.run(USER, context={"user": "bob"}, labels={"user": "bob"})
        assert (run.unwrap(), run.labels) == ({"user": "bob", "team": 1}, {"user": "bob", "a": "b"})
        assert repl.run(USER).labels == {"user": "ann", "a": "b"}


def test_context_and_labels_of_a_conversation() -> None:
    with Sandbox([user], context={"db": 1}) as box, CodeMode(box, keep_visible=["user"]) as mode:
        talk = mode.conversation("c1", context={"user": "ann"}, labels={"user": "ann"})
        code = run_of(talk.reply("lua_repl", {"source_code": USER}))
        other = run_of(mode.reply("lua_repl", {"source_code": USER}, conversation="c2"))
        direct = run_of(talk.reply("user", {}, context={"team": 1}, labels={"team": "x"}))
        assert (code.unwrap(), code.labels) == ({"db": 1, "user": "ann"}, {"conversation": "c1", "user": "ann"})
        assert (other.unwrap(), other.labels) == ({"db": 1}, {"conversation": "c2"})
        assert (direct.unwrap(), direct.labels) == (
            {"db": 1, "user": "ann", "team": 1},
            {"conversation": "c1", "user": "ann", "team": "x"},
        )
        assert talk.handle("lua_repl", {"source_code": "n = 1 return tools.user().user"}) == "ann"
        again = {"source_code": "return n, tools.user().user"}
        assert asyncio.run(talk.ahandle("lua_repl", again, context={"user": "bob"})) == '2 values:\n1: 1\n2: "bob"'
        assert (mode.conversations, talk.end(), mode.conversations) == (("c2", "c1"), True, ("c2",))


@pytest.mark.parametrize("name", ["a\nb", "x" * 300])
def test_a_conversation_whose_name_cannot_be_a_label(name: str) -> None:
    with Sandbox() as box, CodeMode(box) as mode:
        runs = [mode.reply("lua_repl", {"source_code": "return 1"}, conversation=key).run for key in (name, name, "z")]
        first, again, other = (run.labels["conversation"] for run in runs if run is not None)
        assert first == again and len(first) == 16 and other == "z"


def test_labels_beside_that_of_the_conversation() -> None:
    most = {f"k{n}": "" for n in range(16)}
    with Sandbox() as box, CodeMode(box) as mode:
        script = {"source_code": "return 1"}
        run = run_of(mode.reply("lua_repl", script, conversation="c", labels=most))
        own = run_of(mode.reply("lua_repl", script, conversation="c", labels={"conversation": "T-1"}))
        assert (run.labels, own.labels) == ({"conversation": "c", **most}, {"conversation": "T-1"})


def test_middleware_and_approvers_know_for_whom() -> None:
    seen: list[ToolCall] = []

    def look(call: ToolCall) -> bool:
        seen.append(call)
        return True

    with Sandbox([pay], approve=look, context={"db": 1}) as box:
        assert box.run("return tools.pay{amount = 1}", context={"user": "ann"}, labels={"user": "ann"}).ok
    assert [(call.context, call.labels) for call in seen] == [({"db": 1, "user": "ann"}, {"user": "ann"})]


def test_context_is_not_in_the_trail(tmp_path: Path) -> None:
    path = tmp_path / "trail.jsonl"
    with Sandbox([add], audit=path) as box:
        box.run("return tools.add{a = 1}", context={"token": "s3cr3t-value"}, labels={"tenant": "acme"})
    text = path.read_text()
    assert "s3cr3t-value" not in text
    assert '"labels":{"tenant":"acme"}' in text


@pytest.mark.parametrize("way", WAYS)
def test_callbacks_of_one_run(way: Callable[..., Run]) -> None:
    calls: list[tuple[str, str]] = []
    printed: list[str] = []
    general: list[Any] = []
    with Sandbox([add], on_call=general.append, on_output=general.append) as box:
        source = "print('hi') return tools.add{a = 1}"
        run = way(box, source, on_call=lambda entry: calls.append((entry.tool, entry.status)), on_output=printed.append)
        assert run.unwrap() == 2
        assert calls == [("add", "in_flight"), ("add", "ok")]
        assert printed == ["hi\n"]
        assert general == []
        way(box, source)
        assert len(general) == 3


def test_callbacks_of_a_direct_call() -> None:
    calls: list[tuple[str, str]] = []
    with Sandbox([add]) as box, CodeMode(box, keep_visible=["add"]) as mode:
        on_call = lambda entry: calls.append((entry.tool, entry.status))  # noqa: E731
        assert mode.handle("add", {"a": 1}, on_call=on_call) == "2"
        assert asyncio.run(mode.ahandle("add", {"a": 1}, on_call=on_call)) == "2"
    assert calls == 2 * [("add", "in_flight"), ("add", "ok")]


# `show` is not a call of a tool


@pytest.mark.parametrize("way", [one_off, one_off_awaited, in_repl(stepped)])
@pytest.mark.parametrize("isolation", ["process", "inline"])
def test_show_is_not_a_call(way: Callable[..., Run], isolation: Any) -> None:
    seen: list[Any] = []
    with Sandbox([add], limits=Limits(max_tool_calls=1), isolation=isolation) as box:
        run = way(box, "for i = 1, 5 do show(i) end return tools.add{a = 1}", on_output=seen.append)
        assert run.unwrap() == 2
        assert run.output == "1\n2\n3\n4\n5\n"
        assert "".join(seen) == run.output
        assert run.usage.calls == 1
        assert [call.tool for call in run.calls] == ["add"]
