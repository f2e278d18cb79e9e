"""LangChain: `python examples/frameworks/langchain_agent.py`, with OPENAI_API_KEY or without."""

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

from langchain.agents import create_agent
from langchain_openai import ChatOpenAI

from moonbox.adapters.langchain import LangChain


def main() -> None:
    with endpoint("OPENAI_API_KEY", "gpt-5.5") as api, LangChain([get_expenses]) as box:
        model = ChatOpenAI(model=api.model, base_url=api.at("/v1"), api_key=api.key)
        agent = create_agent(model, middleware=[box.middleware])
        for task in TASKS:
            done = agent.invoke({"messages": [("user", task.question)]})
            calls = [call for said in done["messages"] for call in getattr(said, "tool_calls", ())]
            show(task, done["messages"][-1].text, [call["args"]["source_code"] for call in calls])


if __name__ == "__main__":
    main()
