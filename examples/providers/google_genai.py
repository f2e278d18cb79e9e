"""Google GenAI: `python examples/providers/google_genai.py`, with GEMINI_API_KEY or without."""

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

from google import genai
from google.genai import types

from moonbox.adapters.google import GoogleGenAI


def main() -> None:
    with endpoint("GEMINI_API_KEY", "gemini-3.8-flash") as api, GoogleGenAI([get_expenses]) as agent:
        client = genai.Client(api_key=api.key, http_options=types.HttpOptions(base_url=api.url))
        for task in TASKS:
            done = agent.run(task.question, client=client, model=api.model)
            show(task, done.text, [reply.run.source for reply in done.replies if reply.run])
        client.close()


if __name__ == "__main__":
    main()
