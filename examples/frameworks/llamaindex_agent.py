"""LlamaIndex: `python examples/frameworks/llamaindex_agent.py`, with OPENAI_API_KEY or without."""

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

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.llms.openai_like import OpenAILike

from moonbox.adapters.llamaindex import LlamaIndex


async def main() -> None:
    with endpoint("OPENAI_API_KEY", "gpt-5.5") as api, LlamaIndex([get_expenses]) as box:
        llm = OpenAILike(
            model=api.model,
            api_base=api.at("/v1") or "https://api.openai.com/v1",
            api_key=api.key,
            is_chat_model=True,
            is_function_calling_model=True,
            context_window=200_000,
        )
        agent = FunctionAgent(llm=llm, tools=box.tools, system_prompt=box.system_prompt)
        for task in TASKS:
            done = await agent.run(task.question)
            show(task, str(done), [call.tool_kwargs["source_code"] for call in done.tool_calls])


if __name__ == "__main__":
    asyncio.run(main())
