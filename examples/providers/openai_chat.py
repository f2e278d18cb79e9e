"""OpenAI's chat completions: `pip install '.[openai]'`, then `OPENAI_API_KEY=… python openai_chat.py`."""

from __future__ import annotations

from typing import Any

from moonbox.adapters.openai import OpenAIChat

QUESTION = "What did the employees 1 to 20 spend together, in cents?"


def get_expenses(employee_id: int) -> list[dict[str, Any]]:
    """Expense items of one employee (1 to 20)."""
    return [{"item": "train", "cents": 1250 * employee_id}, {"item": "hotel", "cents": 9900}]


def main() -> None:
    with OpenAIChat([get_expenses]) as agent:
        done = agent.run(QUESTION, model="gpt-5.5")
        for reply in done.replies:
            print(reply.run.source if reply.run else reply.text)
        print(done.text)


if __name__ == "__main__":
    main()
