"""Anthropic, awaited: `python examples/providers/anthropic_messages.py`, with ANTHROPIC_API_KEY or without."""

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

from anthropic import AsyncAnthropic

from moonbox.adapters.anthropic import AnthropicMessages


async def main() -> None:
    with endpoint("ANTHROPIC_API_KEY", "claude-sonnet-5-5") as api:
        async with (
            AnthropicMessages([get_expenses]) as agent,
            AsyncAnthropic(base_url=api.url, api_key=api.key) as client,
        ):
            for task in TASKS:
                done = await agent.arun(task.question, client=client, model=api.model)
                show(task, done.text, [reply.run.source for reply in done.replies if reply.run])


if __name__ == "__main__":
    asyncio.run(main())
