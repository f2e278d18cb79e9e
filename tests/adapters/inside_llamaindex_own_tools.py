"""The tools of LlamaIndex agents behind code mode, run in an environment of its own."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import Context

from moonbox.adapters.llamaindex import LlamaIndex
from tests.adapters.inside_llamaindex import model
from tests.adapters.loops import Hiding, awaited, double, fail, guarded, later

pytestmark = pytest.mark.filterwarnings("ignore", "error:::moonbox")


class TestTools(Hiding):
    adapter = LlamaIndex
    explains_unknown = False
    guarded_ends_the_run = True
    taker = r"Toolbox.from_llamaindex\(\[…\]\)"

    def own_tools(self) -> list[Any]:
        tools = [FunctionTool.from_defaults(double), later, FunctionTool.from_defaults(fail)]
        return [*tools, FunctionTool.from_defaults(guarded, return_direct=True)]

    def ask(self, adapter: Any, wire: Any, tools: list[Any], *, conversation: str = "ada") -> None:
        agent = FunctionAgent(llm=model(wire), tools=adapter.hiding(tools), system_prompt=adapter.system_prompt)

        async def ask() -> str:
            context = self.contexts.setdefault((wire.url, conversation), Context(agent))
            return str(await agent.run("Go.", ctx=context))

        awaited(ask())

    contexts: dict[Any, Any] = {}  # noqa: RUF012 - one for each conversation of a test, by its server
