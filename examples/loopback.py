"""Runs an example without a key: a model on loopback answers, in the provider's own wire format.

python examples/loopback.py examples/providers/openai_chat.py
"""

from __future__ import annotations

import os
import runpy
import sys
from typing import TYPE_CHECKING, Any

from wire import Say, Seen, Use, serve

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["answer", "environment"]

SCRIPT = """
total = 0
for id = 1, 20 do
  for _, item in ipairs(tools.get_expenses{employee_id = id}) do total = total + item.cents end
end
return total
"""


def main() -> None:
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    with serve(answer) as wire:
        os.environ.update(environment(wire.url))
        sys.argv[:] = sys.argv[1:]
        runpy.run_path(sys.argv[0], run_name="__main__")
        if wire.refused:
            raise SystemExit(f"the provider would have refused this: {wire.refused}")


def environment(url: str) -> Mapping[str, str]:
    """What leads every client to the server at `url`."""
    return {
        **dict.fromkeys(("OPENAI_BASE_URL", "OPENAI_API_BASE", "MOONBOX_SERVER"), f"{url}/v1"),
        **dict.fromkeys(("ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL"), url),
        **dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"), "loopback"),
        "OPENAI_AGENTS_DISABLE_TRACING": "1",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # no request to the web on import
    }


def answer(seen: Seen) -> Any:
    """The model: it writes one script for each question, and then says what came out."""
    if "final_answer" in seen.tools:  # smolagents: its answers are calls, and results are what the user says
        observed = seen.prompts[-1].partition("Observation:\n")[2]
        return Use("final_answer", {"answer": observed}) if observed else Use("lua_repl", {"source_code": SCRIPT})
    if "execute" in seen.tools and not seen.results:  # FastMCP: tools are looked for first
        return Use("search", {"query": "expenses of an employee"})
    if "execute" in seen.tools and len(seen.results) == 1:
        return Use("execute", {"code": SCRIPT})
    if seen.answered:
        return Say(f"It is {seen.results[-1].text}.")
    return Use("lua_repl", {"source_code": SCRIPT})


if __name__ == "__main__":
    main()
