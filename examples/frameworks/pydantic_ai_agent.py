"""Pydantic AI: `python examples/frameworks/pydantic_ai_agent.py`, with OPENAI_API_KEY or without."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

try:
    from common import TASKS, endpoint, get_expenses, show
except ModuleNotFoundError as problem:
    if problem.name != "common":
        raise
    raise SystemExit("common.py is missing: copy the whole folder 'examples', not one file of it") from None

from pydantic_ai import Agent
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from moonbox.adapters.pydantic_ai import PydanticAI


def main() -> None:
    with endpoint("OPENAI_API_KEY", "gpt-5.5") as api, PydanticAI([get_expenses]) as box:
        model = OpenAIChatModel(api.model, provider=OpenAIProvider(base_url=api.at("/v1"), api_key=api.key))
        agent = Agent(model, toolsets=[box.toolset])
        for task in TASKS:
            done = agent.run_sync(task.question)
            calls = [part for said in done.all_messages() for part in said.parts if isinstance(part, ToolCallPart)]
            show(task, done.output, [call.args_as_dict()["source_code"] for call in calls])


if __name__ == "__main__":
    main()
