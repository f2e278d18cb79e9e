"""LlamaIndex: a FunctionAgent with moonbox's tools.

pip install '.[llamaindex]' llama-index-llms-openai-like
OPENAI_API_KEY=… python llamaindex_agent.py
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

from moonbox.adapters.llamaindex import LlamaIndex  # first: it says what to install

# isort: split
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.llms.openai_like import OpenAILike

QUESTION = "What did the employees 1 to 20 spend together, in cents?"


def get_expenses(employee_id: int) -> list[dict[str, Any]]:
    """Expense items of one employee (1 to 20)."""
    return [{"item": "train", "cents": 1250 * employee_id}, {"item": "hotel", "cents": 9900}]


async def main() -> None:
    llm = OpenAILike(
        model="gpt-5.5",
        api_base=os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1"),
        api_key=os.environ["OPENAI_API_KEY"],
        is_chat_model=True,
        is_function_calling_model=True,
        context_window=200_000,
    )
    with LlamaIndex([get_expenses]) as box:
        agent = FunctionAgent(llm=llm, tools=box.tools, system_prompt=box.system_prompt)
        done = await agent.run(QUESTION)
        for call in done.tool_calls:
            print(call.tool_kwargs["source_code"])
        print(done)


if __name__ == "__main__":
    asyncio.run(main())
