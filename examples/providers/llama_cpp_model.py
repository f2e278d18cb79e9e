"""A model in this process: `pip install '.[llama-cpp]'`, then `python llama_cpp_model.py MODEL.gguf`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from moonbox.adapters.local import LlamaCpp

if TYPE_CHECKING:
    from llama_cpp import Llama

QUESTION = "What did the employees 1 to 20 spend together, in cents?"


def get_expenses(employee_id: int) -> list[dict[str, Any]]:
    """Expense items of one employee (1 to 20)."""
    return [{"item": "train", "cents": 1250 * employee_id}, {"item": "hotel", "cents": 9900}]


def main() -> None:
    if len(sys.argv) != 2:
        raise SystemExit("usage: python llama_cpp_model.py MODEL.gguf")
    with LlamaCpp([get_expenses], style="json") as agent:
        from llama_cpp import Llama

        ask(agent, Llama(sys.argv[1], n_ctx=16_384, verbose=False))


def ask(agent: LlamaCpp, llama: Llama, **options: Any) -> None:
    """style="json" works with every model; with one that was trained on tools, style="template" is better."""
    done = agent.run(QUESTION, client=llama, **options)
    llama.close()
    for reply in done.replies:
        print(reply.run.source if reply.run else reply.text)
    print(done.text)


if __name__ == "__main__":
    main()
