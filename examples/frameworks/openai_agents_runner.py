"""The OpenAI Agents SDK: `python examples/frameworks/openai_agents_runner.py`, with OPENAI_API_KEY or without."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

try:
    from common import TASKS, endpoint, get_expenses, show
except ModuleNotFoundError as problem:
    if problem.name != "common":
        raise
    raise SystemExit("common.py is missing: copy the whole folder 'examples', not one file of it") from None

from agents import Agent, OpenAIResponsesModel, Runner, set_tracing_disabled
from openai import AsyncOpenAI

from moonbox.adapters.openai_agents import OpenAIAgents


async def main() -> None:
    with endpoint("OPENAI_API_KEY", "gpt-5.5") as api, OpenAIAgents([get_expenses]) as box:
        set_tracing_disabled(api.url is not None)  # traces go to OpenAI
        async with AsyncOpenAI(base_url=api.at("/v1"), api_key=api.key) as client:
            model = OpenAIResponsesModel(api.model, openai_client=client)
            agent = Agent("Clerk", instructions=box.system_prompt, model=model, tools=box.tools)
            for task in TASKS:
                done = await Runner.run(agent, task.question, run_config=box.run_config())
                show(task, done.final_output)


if __name__ == "__main__":
    asyncio.run(main())
