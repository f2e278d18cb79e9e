"""smolagents: `python examples/frameworks/smolagents_agent.py`, with OPENAI_API_KEY or without."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

try:
    from common import TASKS, endpoint, get_expenses, pretend, show
except ModuleNotFoundError as problem:
    if problem.name != "common":
        raise
    raise SystemExit("common.py is missing: copy the whole folder 'examples', not one file of it") from None

from smolagents import OpenAIModel, ToolCallingAgent

from moonbox.adapters.smolagents import Smolagents


def main() -> None:
    with endpoint("OPENAI_API_KEY", "gpt-5.5", finally_answer) as api, Smolagents([get_expenses]) as box:
        model = OpenAIModel(api.model, api_base=api.at("/v1"), api_key=api.key)
        for task in TASKS:
            agent = ToolCallingAgent(tools=box.tools, model=model, instructions=box.system_prompt, verbosity_level=0)
            show(task, str(agent.run(task.question)))


def finally_answer(seen: Any) -> Any:
    """The model on loopback: smolagents tells it results as a user would, and wants its answer as a call."""
    from wire import Use

    result = seen.prompts[-1].partition("Observation:\n")[2]
    return Use("final_answer", {"answer": f"It is {result}."}) if result else pretend(seen)


if __name__ == "__main__":
    main()
