"""OpenAI's responses, streamed: `python examples/providers/openai_responses.py`, with OPENAI_API_KEY or without."""

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

from openai import OpenAI

from moonbox.adapters.openai import OpenAIResponses


def main() -> None:
    with endpoint("OPENAI_API_KEY", "gpt-5.5") as api, OpenAIResponses([get_expenses]) as agent:
        client = OpenAI(base_url=api.at("/v1"), api_key=api.key)
        for task in TASKS:
            print("> ", end="")
            done = agent.run(
                task.question,
                client=client,
                model=api.model,
                on_text=lambda text: print(text, end="", flush=True),
            )
            print()
            show(task, done.text, [reply.run.source for reply in done.replies if reply.run])


if __name__ == "__main__":
    main()
