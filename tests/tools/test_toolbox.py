"""Tests of toolboxes."""

from __future__ import annotations

import gc
import threading
from typing import TYPE_CHECKING, Any, Unpack

import pytest

from moonbox.errors import ArgumentError, ToolDefinitionError, UsageError
from moonbox.tools.tool import Tool, tool
from moonbox.tools.toolbox import Toolbox
from tests.counting import count_calls

if TYPE_CHECKING:
    from moonbox.tools.hints import HintOptions


def named(name: str, **options: Any) -> Tool:
    return Tool.from_schema(name=name, call=lambda args: name, **options)


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@tool(namespace="maths")
def multiply(a: int, b: int) -> int:
    """Multiply."""
    return a * b


def test_what_a_toolbox_is_made_from() -> None:
    inner = Toolbox([named("inner")])
    box = Toolbox(
        [add, multiply, inner, {"github": [named("create"), {"deep": named("one")}]}, (named("x") for _ in range(1))]
    )
    assert box.paths() == ("add", "maths.multiply", "inner", "github.create", "github.deep.one", "x")
    assert [made.path for made in box] == list(box.paths())
    assert len(box) == 6
    assert "add" in box and multiply in box and "nothing" not in box and 5 not in box
    assert box.get("maths.multiply") is multiply
    assert box.get("nothing") is None
    assert box.namespaces() == ("maths", "github", "github.deep")
    assert repr(Toolbox([add])) == "Toolbox(add)"
    assert Toolbox.of(box) is box
    inner.add(named("later"))
    assert "later" not in box, "it has what the other had then"


@pytest.mark.parametrize("wrong", [5, [5], "add", ["add"], None])
def test_what_it_cannot_be_made_from(wrong: Any) -> None:
    with pytest.raises(ToolDefinitionError, match="is not a tool; give functions, Tools, Toolboxes"):
        Toolbox(wrong)


def test_duplicates_are_refused_and_nothing_changes() -> None:
    box = Toolbox([add])
    with pytest.raises(ToolDefinitionError) as raised:
        box.add(named("other"), named("add"))
    assert str(raised.value) == (
        "there are two tools named 'add'; rename one (name=…), give it a namespace, or add it with replace=True"
    )
    assert box.paths() == ("add",)
    assert box.revision == 1


def test_add_replace_remove() -> None:
    box = Toolbox([add, multiply])
    box.add(named("add"), named("new"), replace=True)
    assert box.paths() == ("add", "maths.multiply", "new")
    assert box["add"].invoke({}) == "add"
    box.remove("add", multiply)
    assert box.paths() == ("new",)
    with pytest.raises(ArgumentError, match="unknown tool 'add'"):
        box.remove("add")


def test_namespaces() -> None:
    box = Toolbox()
    box.namespace("github", [named("create-issue"), multiply])
    assert box.paths() == ("github.create-issue", "github.maths.multiply")
    box.set_namespace("github", [named("close")])
    assert box.paths() == ("github.maths.multiply", "github.close")
    box.merge(Toolbox([add]), namespace="local")
    assert box.resolve("local.add").invoke({"a": 1, "b": 2}) == 3
    with pytest.raises(ToolDefinitionError, match="a namespace must not be empty"):
        box.namespace("", [add])


def test_odd_names_have_aliases() -> None:
    box = Toolbox([named("odd-name"), named("end"), named("odd_name"), named("my server.do")])
    assert box.aliases() == {
        "odd_name": "odd_name",
        "odd-name": "odd_name_2",
        "end": "end_",
        "my server.do": "my_server.do_",
    }
    assert box.resolve("odd-name").path == "odd-name"
    assert box.resolve("odd_name_2").path == "odd-name"
    assert box.resolve("odd_name").path == "odd_name"
    assert box.resolve("my_server.do_").path == "my server.do"
    assert box.alias("end") == "end_"
    assert box.alias(box["odd-name"]) == "odd_name_2"


def test_unknown_tools() -> None:
    box = Toolbox([named("create_issue", namespace="github"), named("close_issue", namespace="github"), add])
    with pytest.raises(ArgumentError) as raised:
        box.resolve("github.creat_issue")
    assert raised.value.code == "unknown_tool"
    assert raised.value.message == ("unknown tool 'github.creat_issue'; did you mean 'github.create_issue'?")
    with pytest.raises(ArgumentError) as raised:
        box.resolve("weather")
    assert raised.value.message == "unknown tool 'weather'; known tools: add, github.close_issue, github.create_issue"
    with pytest.raises(ArgumentError, match=r"^unknown tool 'x'; there are no tools$"):
        Toolbox().resolve("x")
    many = Toolbox([named(f"tool{n}xyzw") for n in range(30)])
    with pytest.raises(ArgumentError, match=r" and 10 more$"):
        many.resolve("q")


def test_changes_are_told_to_listeners() -> None:
    box = Toolbox()
    seen: list[int] = []
    stop = box.subscribe(lambda changed: seen.append(changed.revision))
    box.add(add)
    box.remove("add")
    stop()
    stop()
    box.add(multiply)
    assert seen == [1, 2]
    assert box.revision == 3


def test_following_another_toolbox() -> None:
    server = Toolbox([named("create")])
    box = Toolbox.of([add, {"github": server}])
    assert box.paths() == ("add", "github.create")
    seen: list[tuple[str, ...]] = []
    box.subscribe(lambda changed: seen.append(changed.paths()))
    server.add(named("close"))
    server.remove("create")
    assert box.paths() == ("add", "github.close")
    assert seen == [("add", "github.create", "github.close"), ("add", "github.close")]
    with pytest.raises(
        UsageError, match=r"^tool 'github.close' comes from a toolbox that this one follows; remove it there$"
    ):
        box.remove("github.close")
    with pytest.raises(UsageError, match="cannot follow itself"):
        box.follow(box)


def test_a_followed_toolbox_cannot_take_a_name_away() -> None:
    server = Toolbox()
    box = Toolbox([add]).follow(server)
    own = box["add"]
    server.add(named("add"), named("sub"))
    assert box["add"] is own
    assert box.paths() == ("add", "sub")
    with pytest.raises(ToolDefinitionError, match="two tools named 'add'"):
        Toolbox([add]).follow(Toolbox([named("add")]))


def test_a_follower_that_is_gone_is_forgotten() -> None:
    server, alone = Toolbox(), Toolbox()
    box: Toolbox | None = Toolbox().follow(server)
    for toolbox in (server, alone):
        toolbox.add(add)
    assert box is not None and box.paths() == ("add",)
    box = None
    gc.collect()
    server.remove("add")
    alone.remove("add")
    # A change costs what it costs a toolbox that nobody ever followed.
    assert count_calls(lambda: server.add(add)) == count_calls(lambda: alone.add(add))


def test_tools_that_are_given_together_are_one_change() -> None:
    server = Toolbox([named("create")])
    assert Toolbox.of([named(f"t{number}") for number in range(100)]).revision == 1
    box = Toolbox.of([add, multiply, server, named("t")])
    assert (box.paths(), box.revision) == (("add", "maths.multiply", "create", "t"), 3)


def test_threads_may_change_it_together() -> None:
    server, box = Toolbox(), Toolbox()
    box.follow(server)

    def work(number: int) -> None:
        for step in range(20):
            (server if number % 2 else box).add(named(f"t{number}_{step}"))
            assert len(list(box)) <= 80

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20)
    assert not any(thread.is_alive() for thread in threads)
    assert len(box) == 80
    assert len(set(box.aliases().values())) == 80


def test_only_what_is_allowed_is_there_now_and_later() -> None:
    def named(name: str, **hints: Unpack[HintOptions]) -> Tool:
        return Tool.from_schema(name=name, call=lambda given: None, hints=hints)

    other = Toolbox([named("a"), named("b", risk="high", category="files")])
    box = Toolbox().follow(other).only(lambda tool: tool.hints.risk != "high")
    assert box.paths() == ("a",)
    other.add(named("c", risk="high"), named("d", risk="low"))
    assert box.paths() == ("a", "d")


def test_a_lambda_has_its_key_as_name() -> None:
    box = Toolbox.of({"double": lambda n: 2 * n, "maths": {"half": lambda n: n / 2}})
    assert box.paths() == ("double", "maths.half")
    assert box["double"].call(4) == 8
    with pytest.raises(ToolDefinitionError, match="a lambda has no name; give one with name="):
        Toolbox.of([lambda n: n])


def test_followers_that_are_dropped_leave_no_listener() -> None:
    server = Toolbox()
    for _ in range(300):
        Toolbox().follow(server)
    gc.collect()
    assert server._listeners == []
