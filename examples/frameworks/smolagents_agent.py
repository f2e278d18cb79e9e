"""smolagents: a ToolCallingAgent with moonbox's tools.

pip install '.[smolagents]' 'smolagents[openai]'
OPENAI_API_KEY=… python smolagents_agent.py
"""

from __future__ import annotations

from typing import Any

from moonbox.adapters.smolagents import Smolagents  # first: it says what to install

# isort: split
from smolagents import OpenAIModel, ToolCallingAgent

QUESTION = "What did the employees 1 to 20 spend together, in cents?"


def get_expenses(employee_id: int) -> list[dict[str, Any]]:
    """Expense items of one employee (1 to 20)."""
    return [{"item": "train", "cents": 1250 * employee_id}, {"item": "hotel", "cents": 9900}]


def main() -> None:
    with Smolagents([get_expenses]) as box:
        model = OpenAIModel("gpt-5.5")
        agent = ToolCallingAgent(tools=box.tools, model=model, instructions=box.system_prompt, verbosity_level=0)
        print(agent.run(QUESTION))


if __name__ == "__main__":
    main()
