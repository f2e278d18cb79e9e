"""A FastMCP server with Lua in its code mode, and a model that uses it.

pip install '.[fastmcp,openai]'
OPENAI_API_KEY=… python fastmcp_server.py    the model asks
python fastmcp_server.py --serve             the server alone, over stdio, for a client of your own
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from moonbox.adapters.fastmcp import LuaCodeMode  # first: it says what to install

# isort: split
from fastmcp import Client, FastMCP

QUESTION = "What did the employees 1 to 20 spend together, in cents?"


def get_expenses(employee_id: int) -> list[dict[str, Any]]:
    """Expense items of one employee (1 to 20)."""
    return [{"item": "train", "cents": 1250 * employee_id}, {"item": "hotel", "cents": 9900}]


server = FastMCP("expenses", transforms=[LuaCodeMode()])
server.tool(get_expenses)


async def main() -> None:
    async with Client(server) as mcp:
        print(await ask(QUESTION, mcp))


async def ask(question: str, mcp: Client[Any]) -> str:
    """A loop as every MCP client has one: offer the server's tools, call what the model asks for."""
    from openai import AsyncOpenAI

    tools: list[Any] = [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": tool.input_schema},
        }
        for tool in await mcp.list_tools()
    ]
    messages: list[Any] = [{"role": "user", "content": question}]
    async with AsyncOpenAI() as openai:
        while True:
            answer = await openai.chat.completions.create(model="gpt-5.5", messages=messages, tools=tools)
            message = answer.choices[0].message
            if not message.tool_calls:
                return message.content or ""
            messages.append(message.model_dump(exclude_none=True))
            for call in message.tool_calls:
                assert call.type == "function"  # no others were offered
                print(call.function.name, call.function.arguments)
                arguments = json.loads(call.function.arguments)
                result = await mcp.call_tool(call.function.name, arguments, raise_on_error=False)
                text = "\n".join(part.text for part in result.content if part.type == "text")
                messages.append({"role": "tool", "tool_call_id": call.id, "content": text})


if __name__ == "__main__":
    if "--serve" in sys.argv:
        server.run()
    else:
        asyncio.run(main())
