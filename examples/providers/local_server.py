"""A local server: `pip install '.[openai]'`, then `MOONBOX_SERVER=ollama python local_server.py`."""

from __future__ import annotations

import os
from typing import Any

from moonbox.adapters.local import server
from moonbox.adapters.openai import OpenAIChat

QUESTION = "What did the employees 1 to 20 spend together, in cents?"


def get_expenses(employee_id: int) -> list[dict[str, Any]]:
    """Expense items of one employee (1 to 20)."""
    return [{"item": "train", "cents": 1250 * employee_id}, {"item": "hotel", "cents": 9900}]


def main() -> None:
    with OpenAIChat([get_expenses]) as agent:
        from openai import OpenAI

        client = OpenAI(**server(os.environ.get("MOONBOX_SERVER", "ollama")))
        done = agent.run(QUESTION, client=client, model=os.environ.get("MOONBOX_MODEL", "qwen3"))
        client.close()
        for reply in done.replies:
            print(reply.run.source if reply.run else reply.text)
        print(done.text)


if __name__ == "__main__":
    main()
