"""Google GenAI: `pip install '.[google]'`, then `GEMINI_API_KEY=… python google_genai.py`."""

from __future__ import annotations

from typing import Any

from moonbox.adapters.google import GoogleGenAI

QUESTION = "What did the employees 1 to 20 spend together, in cents?"


def get_expenses(employee_id: int) -> list[dict[str, Any]]:
    """Expense items of one employee (1 to 20)."""
    return [{"item": "train", "cents": 1250 * employee_id}, {"item": "hotel", "cents": 9900}]


def main() -> None:
    with GoogleGenAI([get_expenses]) as agent:
        done = agent.run(QUESTION, model="gemini-3.8-flash")
        for reply in done.replies:
            print(reply.run.source if reply.run else reply.text)
        print(done.text)


if __name__ == "__main__":
    main()
