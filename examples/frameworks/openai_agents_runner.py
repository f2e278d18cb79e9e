"""The OpenAI Agents SDK: a Runner with moonbox's tools.

pip install '.[openai-agents]'
OPENAI_API_KEY=… python openai_agents_runner.py
"""

from __future__ import annotations

import asyncio
from typing import Any

from moonbox.adapters.openai_agents import OpenAIAgents  # first: it says what to install

# isort: split
from agents import Agent, Runner

QUESTION = "What did the employees 1 to 20 spend together, in cents?"


def get_expenses(employee_id: int) -> list[dict[str, Any]]:
    """Expense items of one employee (1 to 20)."""
    return [{"item": "train", "cents": 1250 * employee_id}, {"item": "hotel", "cents": 9900}]


async def main() -> None:
    with OpenAIAgents([get_expenses]) as box:
        agent = Agent("Clerk", instructions=box.system_prompt, model="gpt-5.5", tools=box.tools)
        done = await Runner.run(agent, QUESTION, run_config=box.run_config())
        print(done.final_output)


if __name__ == "__main__":
    asyncio.run(main())
