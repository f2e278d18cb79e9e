"""A local server: `python examples/providers/local_server.py`, with MOONBOX_SERVER=ollama (or vllm, …) or without."""

from __future__ import annotations

import os
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

from moonbox.adapters.local import server
from moonbox.adapters.openai import OpenAIChat


def main() -> None:
    with endpoint("MOONBOX_SERVER", "qwen3") as api, OpenAIChat([get_expenses]) as agent:
        client = OpenAI(**server(api.at("/v1") or os.environ["MOONBOX_SERVER"]))
        for task in TASKS:
            done = agent.run(task.question, client=client, model=api.model)
            show(task, done.text, [reply.run.source for reply in done.replies if reply.run])


if __name__ == "__main__":
    main()
