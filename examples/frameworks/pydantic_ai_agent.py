"""Pydantic AI: an Agent with moonbox's toolset.

pip install '.[pydantic-ai]' 'pydantic-ai-slim[openai]'
OPENAI_API_KEY=… python pydantic_ai_agent.py
"""

from __future__ import annotations

from typing import Any

from moonbox.adapters.pydantic_ai import PydanticAI  # first: it says what to install

# isort: split
from pydantic_ai import Agent
from pydantic_ai.messages import ToolCallPart

QUESTION = "What did the employees 1 to 20 spend together, in cents?"


def get_expenses(employee_id: int) -> list[dict[str, Any]]:
    """Expense items of one employee (1 to 20)."""
    return [{"item": "train", "cents": 1250 * employee_id}, {"item": "hotel", "cents": 9900}]


def main() -> None:
    with PydanticAI([get_expenses]) as box:
        agent = Agent("openai-chat:gpt-5.5", toolsets=[box.toolset])
        done = agent.run_sync(QUESTION)
        for part in (part for message in done.all_messages() for part in message.parts):
            if isinstance(part, ToolCallPart):
                print(part.args_as_dict()["source_code"])
        print(done.output)


if __name__ == "__main__":
    main()
