"""A client that passes moonbox's questions on to the person at the terminal.

pip install '.[mcp]'
python approvals.py          answer the question yourself
python approvals.py --yes    have it answered

The script below looks at the stock and orders what is short. It waits, in its worker, until the person has decided.
This file is the client, and its two tools are served by the moonbox that it starts.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from moonbox import tool

if TYPE_CHECKING:
    from mcp.client import ClientRequestContext
    from mcp_types import ElicitRequestParams, ElicitResult

PARTS = {"bolt": 40, "nut": 38, "washer": 0, "gear": 3}

CONFIG = """
[codemode]
approvals = true

[audit]
enabled = false
"""

SCRIPT = """
local ordered = {}
for part, count in pairs(tools.stock{}) do
  if count < 10 then ordered[part] = tools.order{part = part, count = 50 - count} end
end
return ordered
"""


@tool(hints={"read_only": True})
def stock() -> dict[str, int]:
    """How many of each part there are."""
    return PARTS


@tool(policy="approve")
def order(part: str, count: int) -> str:
    """Order parts. They are sent at once and cannot be given back."""
    return f"{count} x {part} ordered"


async def ask(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
    from mcp_types import ElicitResult

    print(params.message)
    if "--yes" in sys.argv:
        return ElicitResult(action="accept", content={})
    answer = (await asyncio.to_thread(input, "[y]es, [a]lways, [n]o: ")).strip().lower()
    if answer in ("y", "a"):
        return ElicitResult(action="accept", content={"always": answer == "a"})
    return ElicitResult(action="decline")


async def main() -> None:
    try:
        from mcp import Client, StdioServerParameters
    except ModuleNotFoundError:
        raise SystemExit("this needs the package 'mcp'; install it with: pip install '.[mcp]'") from None
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "moonbox.toml"
        config.write_text(CONFIG, encoding="utf-8")
        moonbox = StdioServerParameters(
            command=sys.executable,
            args=["-m", "moonbox", "serve", "--config", str(config), "--tools", __file__],
        )
        async with Client(moonbox, elicitation_callback=ask) as client:
            result = await client.call_tool("lua_repl", {"source_code": SCRIPT})
            print("\n".join(part.text for part in result.content if part.type == "text"))


if __name__ == "__main__":
    asyncio.run(main())
