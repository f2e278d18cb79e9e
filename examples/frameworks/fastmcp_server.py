"""A FastMCP server with Lua in its code mode, and a model that uses it.

python examples/frameworks/fastmcp_server.py            the model asks, with OPENAI_API_KEY or without
python examples/frameworks/fastmcp_server.py --serve    the server alone, over stdio, for a client of your own
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

try:
    from common import TASKS, endpoint, get_expenses, show
except ModuleNotFoundError as problem:
    if problem.name != "common":
        raise
    raise SystemExit("common.py is missing: copy the whole folder 'examples', not one file of it") from None

from fastmcp import Client, FastMCP
from openai import AsyncOpenAI

from moonbox.adapters.fastmcp import LuaCodeMode

server = FastMCP("expenses", transforms=[LuaCodeMode()])
server.tool(get_expenses.call, name="get_expenses")


async def main() -> None:
    async with Client(server) as mcp:
        with endpoint("OPENAI_API_KEY", "gpt-5.5", search_and_execute) as api:
            async with AsyncOpenAI(base_url=api.at("/v1"), api_key=api.key) as openai:
                for task in TASKS:
                    show(task, await ask(task.question, openai, api.model, mcp))


async def ask(question: str, openai: AsyncOpenAI, model: str, mcp: Client[Any]) -> str:
    """A loop as every MCP client has one: offer the server's tools, call what the model asks for."""
    tools = [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": tool.input_schema},
        }
        for tool in await mcp.list_tools()
    ]
    messages: list[Any] = [{"role": "user", "content": question}]
    while True:
        answer = await openai.chat.completions.create(model=model, messages=messages, tools=tools)  # type: ignore[arg-type]  # plain dicts
        said = answer.choices[0].message
        if not said.tool_calls:
            return said.content or ""
        messages.append(said.model_dump(exclude_none=True))
        for call in said.tool_calls:
            assert call.type == "function"  # no others were offered
            given = json.loads(call.function.arguments)
            result = await mcp.call_tool(call.function.name, given, raise_on_error=False)
            text = "\n".join(part.text for part in result.content if part.type == "text")
            messages.append({"role": "tool", "tool_call_id": call.id, "content": text})


def search_and_execute(seen: Any) -> Any:
    """The model on loopback: it looks for tools, writes one script, and says what came out."""
    from wire import Say, Use

    task = next(task for task in TASKS if task.question == seen.prompts[-1])
    match len(seen.results):
        case 0:
            return Use("search", {"query": "expenses of an employee"})
        case 1:
            return Use("execute", {"code": task.script})
    return Say(f"It is {seen.results[-1].text}.")


if __name__ == "__main__":
    if "--serve" in sys.argv:
        server.run()
    else:
        asyncio.run(main())
