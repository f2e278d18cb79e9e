"""LiteLLM: `python examples/providers/litellm_any.py`, with OPENAI_API_KEY or without."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # no request to the web on import

try:
    from common import TASKS, endpoint, get_expenses, show
except ModuleNotFoundError as problem:
    if problem.name != "common":
        raise
    raise SystemExit("common.py is missing: copy the whole folder 'examples', not one file of it") from None

from moonbox.adapters.litellm import LiteLLM


def main() -> None:
    with endpoint("OPENAI_API_KEY", "gpt-5.5") as api, LiteLLM([get_expenses]) as agent:
        where: dict[str, Any] = {} if api.url is None else {"api_base": api.at("/v1"), "api_key": api.key}
        for task in TASKS:
            done = agent.run(task.question, model=f"openai/{api.model}", **where)
            show(task, done.text, [reply.run.source for reply in done.replies if reply.run])


if __name__ == "__main__":
    main()
