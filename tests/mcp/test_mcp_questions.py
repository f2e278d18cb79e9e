"""Questions to the person behind the client: approvals, and what upstream servers ask back."""

from __future__ import annotations

import asyncio
import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from mcp import MCPError
from mcp_types import CreateMessageResult, ElicitResult, ErrorData, ListRootsResult, Root, TextContent
from pydantic import FileUrl

from tests.mcp import peers
from tests.mcp.mcp_driver import Session, stdio, text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.mcp.mcp_driver import Driver

TOOLS = """
from moonbox import Tool, tool

pick = Tool.from_schema(
    name="pick",
    description="Let the user pick a number.",
    parameters={"type": "object", "properties": {"below": {"type": "integer"}}, "required": ["below"]},
    returns={"type": "integer"},
)
page = Tool.from_schema(name="page", returns={"type": "object", "properties": {"rows": {"type": "array"}}})

@tool(policy="approve")
def delete(name: str, force: bool = False) -> str:
    "Delete something. For good."
    return f"{name} is gone"

@tool(hints={"read_only": True})
def look() -> str:
    "Look around."
    return "nothing here"
"""
CONFIG = """
[mcp.servers.discreet]
command = "<everything>"
questions = false
[codemode]
approvals = true
[serve]
resume_seconds = 0.5
start_wait = 60
[limits]
timeout = 3.0
[mcp.servers.everything]
command = "<everything>"
sampling = true
"""
YES, NO = ElicitResult(action="accept", content={}), ElicitResult(action="decline")
DISMISSED = ElicitResult(action="cancel")
ALWAYS = ElicitResult(action="accept", content={"always": True})


class Person:
    """Answers the client's questions, and remembers them."""

    def __init__(self) -> None:
        self.answers: list[ElicitResult | ErrorData] = []
        self.asked: list[Any] = []
        self.delay = 0.0

    def will(self, *answers: ElicitResult | ErrorData, after: float = 0.0) -> list[Any]:
        """What the next answers are; returns the list to which the questions come."""
        self.answers, self.asked, self.delay = list(answers), [], after
        return self.asked

    async def elicit(self, _: Any, params: Any) -> ElicitResult | ErrorData:
        self.asked.append(params)
        await asyncio.sleep(self.delay)
        return self.answers.pop(0)

    async def sample(self, _: Any, params: Any) -> CreateMessageResult:
        self.asked.append(params)
        return CreateMessageResult(role="assistant", content=TextContent(text="a model's words"), model="test-model")

    async def roots(self, _: Any) -> ListRootsResult:
        return ListRootsResult(roots=[Root(uri=FileUrl("file:///a/project"), name="project")])


@contextmanager
def opened(driver: Driver, folder: Path, config: str, mode: str, **callbacks: Any) -> Iterator[Session]:
    (folder / "kit.py").write_text(TOOLS)
    (folder / "moonbox.toml").write_text(config.replace("<everything>", peers.server("everything")))
    transport = stdio(
        "--config", folder / "moonbox.toml", "--tools", f"{folder}/kit.py", env={"MOONBOX_HOME": str(folder / "home")}
    )
    with driver.session(transport, mode=mode, **callbacks) as session:
        yield session


@pytest.fixture(scope="module")
def person() -> Person:
    return Person()


@pytest.fixture(scope="module", params=["auto", "legacy"])
def able(
    request: pytest.FixtureRequest, driver: Driver, tmp_path_factory: pytest.TempPathFactory, person: Person
) -> Iterator[Session]:
    """A client that can pass every kind of question on."""
    callbacks: dict[str, Any] = {
        "elicitation_callback": person.elicit,
        "sampling_callback": person.sample,
        "list_roots_callback": person.roots,
    }
    with opened(driver, tmp_path_factory.mktemp("able"), CONFIG, request.param, **callbacks) as session:
        yield session


@pytest.fixture(scope="module", params=["auto", "legacy"])
def unable(
    request: pytest.FixtureRequest, driver: Driver, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Session]:
    """A client that can pass none on."""
    with opened(driver, tmp_path_factory.mktemp("unable"), CONFIG, request.param) as session:
        yield session


def test_a_script_waits_for_the_person(able: Session, person: Person) -> None:
    asked = person.will(YES)
    assert list(able.tools()) == ["lua_repl", "page", "pick"]
    assert able.value("local a = tools.delete{name = 'a.txt', force = true} return a .. '!'") == "a.txt is gone!"
    assert asked[0].message == (
        "Allow a call of the tool 'delete'?\nDelete something.\n  name = \"a.txt\"\n  force = true"
    )
    assert list(asked[0].requested_schema["properties"]) == ["always"]


def test_a_person_may_decline(able: Session, person: Person) -> None:
    person.will(NO, DISMISSED)
    declined = able.lua("return tools.delete{name = 'b'}")
    assert declined.is_error
    assert "a person declined this call" in text(declined)
    script = "local ok, problem = pcall(tools.delete, {name = 'c'}) return {problem.code, problem.message}"
    assert able.value(script) == ["approval_denied", "a person declined this call: the question was dismissed"]


def test_a_person_may_allow_a_tool_for_the_conversation(able: Session, person: Person) -> None:
    asked = person.will(ALWAYS, YES)
    meta = {"moonbox/conversation": "trusting"}
    twice = "return tools.delete{name = 'd'} .. ', ' .. tools.delete{name = 'e'}"
    assert able.value(twice, meta=meta) == "d is gone, e is gone"
    assert able.value("return tools.delete{name = 'f'}", meta=meta) == "f is gone"
    assert len(asked) == 1
    able.value("return tools.delete{name = 'g'}")
    assert len(asked) == 2, "another conversation is asked anew"


def test_questions_of_calls_made_together_come_together(able: Session, person: Person) -> None:
    asked = person.will(YES, YES, NO)
    gone = able.value(
        """
        local results = parallel.settle{
          function() return tools.delete{name = "a"} end,
          function() return tools.look{} end,
          function() return tools.delete{name = "b"} end,
          function() return tools.delete{name = "c"} end,
        }
        local gone = 0
        for _, result in ipairs(results) do if result.ok then gone = gone + 1 end end
        return gone
        """
    )
    assert (gone, len(asked)) == (3, 3)


def test_the_clock_stands_still_while_the_person_thinks(able: Session, person: Person) -> None:
    form = ElicitResult(action="accept", content={"name": "Ada", "check": True, "email": "ada@example.com"})
    asked = person.will(YES, form, after=3.2)
    first, second = able.value(
        "return {tools.delete{name = 'a'}, json.encode(tools.everything.trigger_elicitation_request{})}"
    )
    assert first == "a is gone"
    assert "User provided the requested information" in second, "the server's own question went the same way"
    assert "Ada" in second
    assert "name" in asked[1].requested_schema["properties"]
    assert asked[1].message.startswith("The MCP server 'everything' asks: ")


def test_a_person_answers_a_client_side_tool(able: Session, person: Person) -> None:
    four = ElicitResult(action="accept", content={"answer": 4})
    rows = ElicitResult(action="accept", content={"answer": '{"rows": [1, 2]}'})
    asked = person.will(four, NO, rows, YES)
    assert text(able.call("pick", {"below": 9})) == "4"
    assert asked[0].message == "The tool 'pick' is answered by you.\nLet the user pick a number.\n  below = 9"
    assert asked[0].requested_schema["properties"]["answer"]["type"] == "integer"
    assert "a person declined to answer" in text(able.call("pick", {"below": 1}))
    assert able.call("page").structured_content == {"rows": [1, 2]}, "what does not fit into a form is written as JSON"
    assert "the client sent an invalid answer" in text(able.call("pick", {"below": 9}))
    assert "below" in text(able.call("pick", {"below": "x"})) and len(asked) == 4, "nobody is asked a wrong question"
    assert "call the tool 'pick' directly" in text(able.lua("return tools.pick{below = 9}"))


def test_a_client_that_cannot_be_asked_answers_itself(unable: Session) -> None:
    assert "answer the call in your own program" in text(unable.call("pick", {"below": 9}))


def test_an_answer_that_is_an_error_is_a_refusal(able: Session, person: Person) -> None:
    person.will(ErrorData(code=-1, message="the window was closed"))
    if able.version.startswith("2026"):  # there the client itself gives up the call
        with pytest.raises(MCPError, match="the window was closed"):
            able.lua("abandoned = true return tools.delete{name = 'a'}")
        assert able.value("return abandoned") is True, "the conversation goes on without the call that was given up"
    else:
        assert "needs approval: the window was closed" in text(able.lua("tools.delete{name = 'a'}"))


def test_an_upstream_samples_through_us(able: Session, person: Person) -> None:
    asked = person.will()
    said = able.value('return tools.everything.trigger_sampling_request{prompt = "say", maxTokens = 10}')
    assert "a model's words" in json.dumps(said)
    assert asked[0].max_tokens == 10


def test_an_upstream_asks_for_roots_through_us(able: Session) -> None:
    said = json.dumps(able.value("return tools.everything.get_roots_list{}"))
    if able.version.startswith("2025"):
        assert "file:///a/project" in said
    else:  # this server asks outside of any call, which the current protocol does not allow
        assert "roots" in said.lower()


def test_a_server_can_be_kept_from_asking(able: Session) -> None:
    catalog = able.tools()["lua_repl"].description
    assert "everything.trigger_sampling_request" in catalog
    assert "discreet.echo" in catalog
    assert "discreet.trigger_sampling_request" not in catalog


def test_a_paused_call_cannot_be_continued_by_guessing(able: Session) -> None:
    if able.version.startswith("2025"):
        return  # only the current protocol hands out states
    client = able.client.session

    async def call(source: str, **more: Any) -> Any:
        return await client.call_tool("lua_repl", {"source_code": source}, allow_input_required=True, **more)

    source = "return tools.delete{name = 'a'}"
    asked = able.driver.run(call(source))
    [key] = asked.input_requests
    given: dict[str, Any] = {"request_state": asked.request_state, "input_responses": {key: YES}}
    with pytest.raises(MCPError, match="Invalid or expired requestState"):
        able.driver.run(call(source, **{**given, "request_state": "v1.forged"}))
    with pytest.raises(MCPError, match="Invalid or expired requestState"):
        able.driver.run(call("return tools.delete{name = 'something else'}", **given))
    assert text(able.driver.run(call(source, **given))) == "a is gone"
    with pytest.raises(MCPError, match="the call that asked for this input has ended"):
        able.driver.run(call(source, **given))


def test_a_client_that_cannot_ask_is_told_of_the_direct_tool(unable: Session) -> None:
    assert list(unable.tools()) == ["lua_repl", "delete", "page", "pick"]
    refused = unable.lua("return tools.delete{name = 'a'}")
    assert refused.is_error
    assert (
        "the tool 'delete' needs approval, and this client cannot ask for it; "
        "call the tool `delete` directly instead of from a script"
    ) in text(refused)
    assert text(unable.call("delete", {"name": "a"})) == "a is gone"


def test_servers_are_promised_only_what_our_client_can_do(unable: Session) -> None:
    catalog = unable.tools()["lua_repl"].description
    assert "everything}.echo" in catalog
    for name in ("trigger_elicitation_request", "trigger_sampling_request", "get_roots_list"):
        assert f".{name}(" not in catalog


def test_a_direct_call_is_asked_about_where_that_is_possible(driver: Driver, tmp_path: Path) -> None:
    person = Person()
    asked = person.will(NO, YES)
    with opened(driver, tmp_path, "", "auto", elicitation_callback=person.elicit) as session:
        assert list(session.tools()) == ["lua_repl", "delete", "page", "pick"]
        declined = session.call("delete", {"name": "a"})
        assert declined.is_error
        assert text(declined) == "denied (delete, approval_denied): a person declined this call"
        assert text(session.call("delete", {"name": "b"})) == "b is gone"
        assert [list(question.requested_schema["properties"]) for question in asked] == [[], []]


def test_direct_calls_can_be_refused_to_clients_that_cannot_ask(driver: Driver, tmp_path: Path) -> None:
    with opened(driver, tmp_path, "[serve]\ndirect_without_asking = false\n", "legacy") as session:
        refused = session.call("delete", {"name": "a"})
        assert refused.is_error
        assert "this client cannot ask for it; continue without it" in text(refused)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_person_allows_the_script(driver: Driver, tmp_path: Path, person: Person, mode: str) -> None:
    config = CONFIG.partition("[mcp")[0] + '[sandbox]\nscripts = "approve"\n[serve]\ndirect_without_asking = true\n'
    with opened(driver, tmp_path, config, mode, elicitation_callback=person.elicit) as session:
        asked = person.will(YES, NO)
        assert session.value("return tools.look{} .. '!'") == "nothing here!"
        assert asked[0].message == "Run this script?\nreturn tools.look{} .. '!'\ntools that it names: look (reads)"
        declined = session.lua("return 1")
        assert "a person declined this script" in text(declined)
    with opened(driver, tmp_path, config, mode) as session:
        assert "the script needs approval, and this client cannot ask for it" in text(session.lua("return 1"))
