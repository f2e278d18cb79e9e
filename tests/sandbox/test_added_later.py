"""What is added to a Sandbox after its workers' source was configured: new workers start with it before long."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from moonbox import Limits, Sandbox, Toolbox, tool
from moonbox.errors import WorkerError
from moonbox.worker.sources import ProcessSource
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator


class Source(ProcessSource):
    """Keeps what it was configured with, and fails as often as it is told."""

    def __init__(self) -> None:
        super().__init__(None)
        self.configs: list[dict[str, Any]] = []
        self.failing = 0

    def configure(self, config: dict[str, Any]) -> None:
        if self.failing:
            self.failing -= 1
            raise WorkerError("the zygote does not answer")
        super().configure(config)
        self.configs.append(config)


@tool
def early(text: str) -> str:
    """Known from the start."""
    return f"early {text}"


@tool
def late(text: str) -> str:
    """Added later."""
    return f"late {text}"


SCRIPT = 'return late and late("x") or tools.late and tools.late{text = "y"} or "nothing"'


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture(params=["lua", "rhai"])
def box(source: Source, request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    with Sandbox(Toolbox([early]), isolation=source, language=request.param) as box:
        yield box


def last_environment(source: Source) -> dict[str, Any]:
    environment: dict[str, Any] = source.configs[-1]["environment"]
    return environment


def renew(box: Sandbox, source: Source, script: str, expected: object) -> None:
    """Run one-off scripts until new workers start with what there is, and two more."""
    before = len(source.configs)

    def is_renewed() -> bool:
        assert box.run(script).unwrap() == expected
        return len(source.configs) > before

    wait_until(is_renewed)
    for _ in range(2):
        assert box.run(script).unwrap() == expected


def test_a_tool_that_is_added_later(box: Sandbox, source: Source) -> None:
    assert ["early", "tools.early"] in last_environment(source)["tools"]
    box.toolbox.add(late)
    call = 'return tools.late{text = "y"}' if box.language == "lua" else '#{"text": "y"}; late(#{"text": "y"})'
    renew(box, source, call, "late y")
    assert ["late", "tools.late"] in last_environment(source)["tools"]


def test_earlier_repls_keep_what_they_have(source: Source) -> None:
    with Sandbox([early], isolation=source, check=False) as box, box.repl() as before:
        assert before.run(SCRIPT).unwrap() == "nothing"
        box.define("late", lambda text: f"late {text}")
        renew(box, source, SCRIPT, "late x")
        before.reset()
        assert before.run(SCRIPT).unwrap() == "nothing"
        with box.repl(timeout=5) as after:
            assert after.run(SCRIPT).unwrap() == "late x"


def test_definitions_of_two_repls_are_not_mistaken(source: Source) -> None:
    """Each has been changed once."""
    with Sandbox([early], isolation=source, check=False) as box, box.repl() as own:
        own.define("mine", lambda text: f"own {text}")
        box.define("late", lambda text: f"late {text}")
        renew(box, source, SCRIPT, "late x")
        own.reset()
        assert own.run("return late == nil and mine('x')").unwrap() == "own x"
        box.define("other", 7)
        renew(box, source, "return other", 7)
        own.reset()
        assert own.run("return other").unwrap() is None


def test_repls_with_tools_of_their_own(box: Sandbox, source: Source) -> None:
    """As those of conversations: the tools behind the code tool."""
    call = 'return tools.late{text = "y"}' if box.language == "lua" else 'late(#{"text": "y"})'
    toolbox = Toolbox([late])

    def is_renewed() -> bool:
        with box.repl(toolbox=toolbox) as repl:
            assert repl.run(call).unwrap() == "late y"
        return len(source.configs) > 1

    wait_until(is_renewed)
    assert ["late", "tools.late"] in last_environment(source)["tools"]
    assert (
        box.run('return tools.early{text = "z"}' if box.language == "lua" else 'early(#{"text": "z"})').unwrap()
        == "early z"
    )


def test_a_source_that_fails_is_asked_again(box: Sandbox, source: Source) -> None:
    box.toolbox.add(late)
    source.failing = 1
    call = 'return tools.late{text = "y"}' if box.language == "lua" else 'late(#{"text": "y"})'
    renew(box, source, call, "late y")
    assert not source.failing


def test_limits_of_a_repl_are_its_own(source: Source) -> None:
    with Sandbox([early], isolation=source) as box:
        box.toolbox.add(late)
        renew(box, source, SCRIPT, "late y")
        with box.repl(limits=Limits(max_operations=10_000)) as repl:
            assert repl.run("while true do end").error.limit == "operations"  # type: ignore[union-attr]
        assert box.run("for i = 1, 100000 do end return 1").unwrap() == 1


def test_what_is_added_later_is_not_memory_of_scripts(source: Source) -> None:
    with Sandbox([early], isolation=source) as box:
        box.define("words", ["word"] * 50_000)
        renew(box, source, "return #words", 50_000)
        assert box.run("return #words", limits=Limits(max_memory=2_000_000)).unwrap() == 50_000
