"""Anthropic, awaited: `pip install '.[anthropic]'`, then `ANTHROPIC_API_KEY=… python anthropic_messages.py`."""

from __future__ import annotations

import asyncio
from typing import Any

from moonbox.adapters.anthropic import AnthropicMessages

QUESTION = "What did the employees 1 to 20 spend together, in cents?"


def get_expenses(employee_id: int) -> list[dict[str, Any]]:
    """Expense items of one employee (1 to 20)."""
    return [{"item": "train", "cents": 1250 * employee_id}, {"item": "hotel", "cents": 9900}]


async def main() -> None:
    async with AnthropicMessages([get_expenses]) as agent:
        done = await agent.arun(QUESTION, model="claude-sonnet-5-5")
        for reply in done.replies:
            print(reply.run.source if reply.run else reply.text)
        print(done.text)


if __name__ == "__main__":
    asyncio.run(main())
