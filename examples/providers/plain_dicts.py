"""No package at all: definitions and calls as dicts, requests by `urllib`, with OPENAI_API_KEY or without."""

from __future__ import annotations

import json
import sys
import urllib.request
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

try:
    from common import TASKS, endpoint, get_expenses, show
except ModuleNotFoundError as problem:
    if problem.name != "common":
        raise
    raise SystemExit("common.py is missing: copy the whole folder 'examples', not one file of it") from None

from moonbox import CodeMode, Sandbox


def main() -> None:
    with endpoint("OPENAI_API_KEY", "gpt-5.5") as api, Sandbox([get_expenses]) as box, CodeMode(box) as mode:
        url = api.at("/v1/chat/completions") or "https://api.openai.com/v1/chat/completions"
        for task in TASKS:
            messages: list[dict[str, Any]] = [
                {"role": "system", "content": mode.system_prompt},
                {"role": "user", "content": task.question},
            ]
            scripts = []
            while True:
                answer = post(
                    url, api.key, {"model": api.model, "messages": messages, "tools": mode.definitions("openai")}
                )
                message = answer["choices"][0]["message"]
                messages.append(message)
                if not message.get("tool_calls"):
                    break
                for call in message["tool_calls"]:
                    reply = mode.reply(call["function"]["name"], call["function"]["arguments"])
                    messages.append({"role": "tool", "tool_call_id": call["id"], "content": reply.text})
                    scripts += [reply.run.source] if reply.run else []
            show(task, message["content"], scripts)


def post(url: str, key: str, body: dict[str, Any]) -> Any:
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)) as response:
        return json.load(response)


if __name__ == "__main__":
    main()
