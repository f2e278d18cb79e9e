"""LangChain: an agent with moonbox's middleware.

pip install '.[langchain]' langchain-openai
OPENAI_API_KEY=… python langchain_agent.py
"""

from __future__ import annotations

from typing import Any

from moonbox.adapters.langchain import LangChain  # first: it says what to install

# isort: split
from langchain.agents import create_agent
from langchain_openai import ChatOpenAI

QUESTION = "What did the employees 1 to 20 spend together, in cents?"


def get_expenses(employee_id: int) -> list[dict[str, Any]]:
    """Expense items of one employee (1 to 20)."""
    return [{"item": "train", "cents": 1250 * employee_id}, {"item": "hotel", "cents": 9900}]


def main() -> None:
    with LangChain([get_expenses]) as box:
        agent = create_agent(ChatOpenAI(model="gpt-5.5"), middleware=[box.middleware])
        done = agent.invoke({"messages": [("user", QUESTION)]})
        for call in (call for message in done["messages"] for call in getattr(message, "tool_calls", ())):
            print(call["args"]["source_code"])
        print(done["messages"][-1].text)


if __name__ == "__main__":
    main()
