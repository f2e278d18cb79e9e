"""A client that passes moonbox's questions on to the person at the terminal.

python examples/mcp/approvals.py          answer the question yourself
python examples/mcp/approvals.py --yes    have it answered

The script below looks at the stock and orders what is short. It waits, in its worker, until the person has decided.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mcp import Client, StdioServerParameters
from mcp_types import ElicitRequestParams, ElicitResult

if TYPE_CHECKING:
    from mcp.client import ClientRequestContext

HERE = Path(__file__).resolve().parent

SCRIPT = """
local ordered = {}
for part, count in pairs(tools.stock{}) do
  if count < 10 then ordered[part] = tools.order{part = part, count = 50 - count} end
end
return ordered
"""


async def ask(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
    print(params.message)
    if "--yes" in sys.argv:
        return ElicitResult(action="accept", content={})
    answer = (await asyncio.to_thread(input, "[y]es, [a]lways, [n]o: ")).strip().lower()
    if answer in ("y", "a"):
        return ElicitResult(action="accept", content={"always": answer == "a"})
    return ElicitResult(action="decline")


async def main() -> None:
    moonbox = StdioServerParameters(
        command=sys.executable,
        args=["-m", "moonbox", "serve", "--config", f"{HERE}/approvals.toml", "--tools", f"{HERE}/workshop.py"],
    )
    async with Client(moonbox, elicitation_callback=ask) as client:
        result = await client.call_tool("lua_repl", {"source_code": SCRIPT})
        print("\n".join(part.text for part in result.content if part.type == "text"))


if __name__ == "__main__":
    asyncio.run(main())
