"""Runs the code of one page of the documentation, with a model on loopback in place of the provider's.

    python tests/adapters/page.py docs/frameworks/langchain.md

Blocks that are a file are written to a folder of their own. What the blocks print is printed.
"""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "examples")]

from wire import Say, Seen, Use, serve  # noqa: E402 - found through the path above

from tests.docs.pages import blocks  # noqa: E402
from tests.docs.running import Page  # noqa: E402

SCRIPT = """
total = 0
for id = 1, 20 do
  for _, item in ipairs(tools.get_expenses{employee_id = id}) do total = total + item.cents end
end
return total
"""


def main(page: Path) -> None:
    with serve(answer) as wire, tempfile.TemporaryDirectory() as folder:
        for name in ("OPENAI_BASE_URL", "OPENAI_API_BASE"):
            os.environ[name] = f"{wire.url}/v1"
        os.environ["ANTHROPIC_BASE_URL"] = os.environ["GOOGLE_GEMINI_BASE_URL"] = wire.url
        for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"):
            os.environ[name] = "loopback"
        os.environ["OPENAI_AGENTS_DISABLE_TRACING"] = "1"
        sys.path.insert(0, folder)
        running = Page(Path(folder), Path(folder))
        for block in blocks(page):
            if block.language == "python":
                running.run(block)
        assert wire.refused == [], wire.refused


def answer(seen: Seen) -> Any:
    """One script for each question, and then what came out."""
    if "final_answer" in seen.tools:  # smolagents: its answers are calls, and results are what the user says
        observed = seen.prompts[-1].partition("Observation:\n")[2]
        return Use("final_answer", {"answer": observed}) if observed else Use("lua_repl", {"source_code": SCRIPT})
    if seen.answered:
        return Say(f"It is {seen.results[-1].text}.")
    return Use("lua_repl", {"source_code": SCRIPT})


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(ROOT / sys.argv[1])
