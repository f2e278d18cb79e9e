"""Tools that are tried again: when, how long, what the record says, and where it is refused."""

from __future__ import annotations

import asyncio
import json
import threading
from email.utils import formatdate
from typing import TYPE_CHECKING, Any

import pytest

from moonbox import Call, Context, Limits, Retry, Run, Sandbox, Tool, ToolError, tool
from moonbox.config import Config
from moonbox.config.mcp import ServerSettings
from moonbox.errors import ConfigError, ToolDefinitionError
from moonbox.retry import retry_after
from moonbox.scripts.configured import ToolsSettings
from moonbox.sources.openapi import from_openapi

if TYPE_CHECKING:
    from collections.abc import Callable

SOON = Retry(first=0)


def failing(times: int, code: str = "unavailable", retry: Retry = SOON, **options: Any) -> tuple[Tool, list[str]]:
    """A tool that fails so often before it answers, and the idempotency keys of its calls."""
    keys: list[str] = []

    def ask(context: Context) -> str:
        keys.append(context.idempotency_key)
        if len(keys) <= times:
            raise ToolError(f"no {len(keys)}", code=code, **options)
        return "yes"

    return tool(retry=retry)(ask), keys


def run_blocking(box: Sandbox, source: str) -> Run:
    return box.run(source)


def run_awaited(box: Sandbox, source: str) -> Run:
    return asyncio.run(box.arun(source))


def run_direct(box: Sandbox, _: str) -> Run:
    return box.call("ask")


@pytest.mark.parametrize("way", [run_blocking, run_awaited, run_direct])
def test_the_script_sees_only_the_try_that_worked(way: Callable[[Sandbox, str], Run]) -> None:
    ask, keys = failing(2)
    with Sandbox([ask]) as box:
        run = way(box, "return tools.ask()")
    assert (run.unwrap(), len(run.calls)) == ("yes", 1)
    assert len(keys) == 3
    assert len(set(keys)) == 1
    call = run.calls[0]
    assert [(each.code, each.message) for each in call.tries] == [
        ("unavailable", "no 1"),
        ("unavailable", "no 2"),
        ("", ""),
    ]
    assert call.duration >= sum(each.duration for each in call.tries)
    assert Call.from_dict(json.loads(json.dumps(call.to_dict()))).tries == call.tries


def test_an_async_tool_is_tried_again() -> None:
    tries = []

    @tool(hints={"read_only": True}, retry=SOON)
    async def ask() -> str:
        tries.append(1)
        await asyncio.sleep(0)
        if len(tries) < 3:
            raise ConnectionError("away")
        return "yes"

    with Sandbox([ask]) as box:
        assert box.run("return tools.ask()").unwrap() == "yes"
        tries.clear()
        assert asyncio.run(box.arun("return tools.ask()")).unwrap() == "yes"


def test_the_last_failure_is_the_calls() -> None:
    ask, keys = failing(9, retry=Retry(times=3, first=0))
    with Sandbox([ask]) as box:
        run = box.run("tools.ask()")
    assert run.error is not None
    assert (run.error.code, run.error.message, len(keys)) == ("unavailable", "no 3", 3)
    assert [each.code for each in run.calls[0].tries] == ["unavailable"] * 3


def test_other_failures_are_final() -> None:
    ask, keys = failing(9, "conflict")
    with Sandbox([ask]) as box:
        assert box.run("tools.ask()").calls[0].tries == ()
    assert len(keys) == 1
    ask, keys = failing(1, "conflict", Retry(first=0, on=("conflict",)))
    with Sandbox([ask]) as box:
        assert box.run("return tools.ask()").value == "yes"


def test_results_that_are_failures() -> None:
    given = iter([{"error": "busy", "code": "rate_limited"}, 5])
    ask = Tool.from_schema(
        name="ask", call=lambda _: next(given), hints={"read_only": True}, failures="raise", retry=SOON
    )
    with Sandbox([ask]) as box:
        run = box.run("return tools.ask()")
    assert (run.value, [each.message for each in run.calls[0].tries]) == (5, ["busy", ""])


@pytest.mark.parametrize("way", [run_blocking, run_awaited])
def test_no_wait_that_the_run_has_no_time_for(way: Callable[[Sandbox, str], Run]) -> None:
    ask, keys = failing(1, retry=Retry(first=60))
    with Sandbox([ask], limits=Limits(timeout=20)) as box:
        run = way(box, "local ok, problem = pcall(tools.ask) return problem.message")
    assert (run.value, len(keys)) == ("no 1", 1)
    ask, keys = failing(1, retry_after=3_600.0)
    with Sandbox([ask]) as box:  # as the service asks
        assert way(box, "local ok, problem = pcall(tools.ask) return problem.message").value == "no 1"


@pytest.mark.parametrize("way", ["blocking", "awaited"])
def test_a_run_that_ends_ends_the_wait(way: str) -> None:
    waits = threading.Event()
    ask, keys = failing(9, retry=Retry(first=3_600, longest=3_600))
    ended: list[Run] = []
    with Sandbox([ask], limits=Limits(timeout=None), on_call=lambda entry: waits.set()) as box:
        repl = box.repl()
        if way == "blocking":
            worker = threading.Thread(target=lambda: ended.append(repl.run("tools.ask()")))
        else:
            worker = threading.Thread(target=lambda: ended.append(asyncio.run(repl.arun("tools.ask()"))))
        worker.start()
        assert waits.wait(60)
        repl.close()
        worker.join(60)
    assert not worker.is_alive()
    assert ended[0].error is not None
    assert ended[0].error.kind == "cancelled"
    assert len(keys) <= 1


def test_the_waits() -> None:
    retry, failed = Retry(times=9, first=1, factor=3, longest=20), ToolError("x", code="timeout")
    assert [retry.seconds(tries, failed, 0.0) for tries in range(1, 6)] == [1, 3, 9, 20, 20]
    assert retry.seconds(2, failed, 1.0) == 1.5
    assert retry.seconds(9, failed, 0.0) is None
    assert retry.seconds(1, ToolError("x", code="timeout", retry_after=7), 0.0) == 7
    assert Retry(times=100, factor=1_000, first=86_400, longest=5).seconds(99, failed, 0.0) == 5
    assert retry_after("12", 0) == 12
    assert retry_after(formatdate(1_000_000_000, usegmt=True), 999_999_990) == 10
    assert [retry_after(text, 0) for text in ("", "soon", "-1", "9" * 400)] == [None, None, None, 999_999_999]


def test_a_service_says_how_long() -> None:
    class Answer:
        status_code, headers = 503, {"Retry-After": "4"}

    class Failed(Exception):
        response = Answer()

    def ask() -> None:
        raise Failed

    with Sandbox([tool(ask)]) as box:
        assert box.run("tools.ask()").calls[0].error is not None
    from moonbox.tools.results import to_tool_error

    assert to_tool_error(Failed()).retry_after == 4


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"times": 1}, "retry: times must be a whole number from 2 to 100, not 1"),
        ({"factor": 0.5}, "retry: factor must be a number from 1 to 1000, not 0.5"),
        ({"first": float("nan")}, "retry: first must be a number from 0 to 86400, not nan"),
        (
            {"on": ("denied",)},
            "retry: on must have codes of unavailable, rate_limited, timeout, conflict, tool_error; not 'denied'",
        ),
    ],
)
def test_invalid_retries(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ToolDefinitionError) as caught:
        Retry(**given)
    assert str(caught.value) == message


def test_refused_where_a_second_call_may_do_harm() -> None:
    def pay(cents: int) -> None: ...

    with pytest.raises(ToolDefinitionError) as caught:
        tool(retry=SOON)(pay)
    assert str(caught.value) == (
        "tool 'pay': retry needs a tool that may be called twice: say so with "
        'hints={"read_only": True} or {"idempotent": True}, or take a Context and pass on its idempotency_key'
    )
    assert tool(retry=SOON, hints={"idempotent": True})(pay).is_repeatable
    assert not tool(pay).is_repeatable


def test_settings_of_a_server() -> None:
    pytest.importorskip("mcp")
    from mcp import types

    from moonbox.mcp.upstreams.tools import convert_tools

    reads = types.ToolAnnotations(read_only_hint=True)
    listed = [
        types.Tool(name=name, input_schema={"type": "object"}, annotations=hints)
        for name, hints in (("find", reads), ("pay", None), ("drop", None))
    ]
    given = {"command": "x", "retry": {"times": 3}, "tools": {"drop": {"retry": {"on": ["timeout"]}}}}
    found, problems = convert_tools(listed, ServerSettings.from_dict("shop", given), None)  # type: ignore[arg-type]  # no call
    assert {each.name: each.retry for each in found} == {"find": Retry(times=3), "pay": None}
    assert problems[0].startswith("tool 'drop': retry needs a tool that may be called twice")


def test_settings_of_a_specification() -> None:
    paths = {"/a": {"get": {"operationId": "read"}, "post": {"operationId": "make"}}}
    spec = {"openapi": "3.1.0", "info": {"title": "x", "version": "1"}, "paths": paths}
    box = from_openapi(spec, base_url="http://127.0.0.1:9", retry={"times": 4})
    assert {each.name: each.retry for each in box} == {"read": Retry(times=4), "make": None}


def test_settings_of_one_tool() -> None:
    @tool(hints={"read_only": True})
    def find() -> None: ...

    @tool
    def pay() -> None: ...

    def settings(name: str) -> ToolsSettings:
        return ToolsSettings.from_config(Config(data={"tools": {name: {"retry": {"times": 3}}}}))

    adapted = settings("shop.find").adapted(find.with_(namespace="shop"))
    assert isinstance(adapted, Tool)
    assert adapted.retry == Retry(times=3)
    with pytest.raises(ConfigError) as caught:
        settings("pay").adapted(pay)
    assert str(caught.value).startswith("[tools.pay.retry] tool 'pay': retry needs a tool that may be called twice")
    with pytest.raises(ConfigError, match=r"unknown key 'tries'"):
        ToolsSettings.from_config(Config(data={"tools": {"pay": {"retry": {"tries": 3}}}}))
