"""No other package: definitions and calls as dicts, requests by `urllib`: `OPENAI_API_KEY=… python plain_dicts.py`."""

from __future__ import annotations

import json
import os
import urllib.request
from typing import Any

from moonbox import CodeMode, Sandbox

QUESTION = "What did the employees 1 to 20 spend together, in cents?"


def get_expenses(employee_id: int) -> list[dict[str, Any]]:
    """Expense items of one employee (1 to 20)."""
    return [{"item": "train", "cents": 1250 * employee_id}, {"item": "hotel", "cents": 9900}]


def main() -> None:
    with Sandbox([get_expenses]) as box, CodeMode(box) as mode:
        messages: list[dict[str, Any]] = [
            {"role": "system", "content": mode.system_prompt},
            {"role": "user", "content": QUESTION},
        ]
        while True:
            answer = post({"model": "gpt-5.5", "messages": messages, "tools": mode.definitions("openai")})
            message = answer["choices"][0]["message"]
            messages.append(message)
            if not message.get("tool_calls"):
                break
            for call in message["tool_calls"]:
                reply = mode.reply(call["function"]["name"], call["function"]["arguments"])
                print(reply.run.source if reply.run else reply.text)
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": reply.text})
        print(message["content"])


def post(body: dict[str, Any]) -> Any:
    if "OPENAI_API_KEY" not in os.environ:
        raise SystemExit("set OPENAI_API_KEY first")
    url = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1")
    headers = {"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{url}/chat/completions", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as response:
        return json.load(response)


if __name__ == "__main__":
    main()
