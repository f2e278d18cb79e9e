"""What a model reads before it can act: the definitions of the reference servers' tools, against moonbox's code tool.

    python benchmarks/mcp_tokens.py            print the table
    python benchmarks/mcp_tokens.py --write    put it into docs/mcp.md

Both sides are counted in the form in which providers take tools: name, description and input schema as compact JSON.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from tokenizer import NAME, token_counter  # noqa: E402 - found only from here on

from moonbox import CodeMode, Sandbox, Tool  # noqa: E402 - after the paths
from moonbox.codemode.definitions import Definition, from_tool, in_format, provider_names  # noqa: E402 - the same
from moonbox.config.mcp import ServerSettings  # noqa: E402 - the same
from moonbox.mcp.upstreams.manager import Upstreams  # noqa: E402 - the same
from tests.mcp import peers  # noqa: E402 - the same

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

PAGE = ROOT / "docs" / "mcp.md"
BEGIN, END = "<!-- made by benchmarks/mcp_tokens.py -->", "<!-- end -->"


def servers(folder: Path) -> list[ServerSettings]:
    subprocess.run(["git", "init", "-q", str(folder / "repo")], check=True)
    args = {"filesystem": (str(folder),), "git": ("--repository", str(folder / "repo"))}
    env = {"memory": {"MEMORY_FILE_PATH": str(folder / "memory.jsonl")}}
    names = ("everything", "fetch", "filesystem", "git", "memory", "sequential-thinking", "time")
    return [
        ServerSettings(name=name, command=peers.server(name), args=args.get(name, ()), env=env.get(name, {}))
        for name in names
    ]


def table(count: Callable[[str], int]) -> str:
    """The table as Markdown."""

    def cost(definitions: Sequence[Definition]) -> int:
        return count(json.dumps(in_format(definitions, "anthropic"), ensure_ascii=False, separators=(",", ":")))

    with tempfile.TemporaryDirectory() as folder, Upstreams(servers(Path(folder))) as upstreams:
        if not upstreams.wait(60) or any(status.state != "ready" for status in upstreams.statuses()):
            raise SystemExit([status.to_dict() for status in upstreams.statuses()])
        rows = []
        for server in upstreams.statuses():
            tools = [tool for tool in upstreams.toolbox if tool.namespace == server.name]
            rows.append((server.name, len(tools), cost([from_tool(item, name) for name, item in _named(tools)])))
        everything = cost([from_tool(item, name) for name, item in _named(list(upstreams.toolbox))])
        with Sandbox(upstreams.toolbox) as box, CodeMode(box, count_tokens=count) as mode:
            code, *direct = mode.neutral_definitions()
            alone, beside = cost([code]), cost(direct)
            together = cost([code, *direct])
        small = {}
        for budget in (400,):
            with Sandbox(upstreams.toolbox) as box, CodeMode(box, count_tokens=count, catalog_tokens=budget) as mode:
                small[mode.catalog.detail] = cost(mode.neutral_definitions()), budget
    lines = ["| what the model reads | tools | tokens |", "|---|---:|---:|"]
    lines += [f"| server `{name}`, direct | {tools} | {tokens:,} |" for name, tools, tokens in rows]
    total = sum(tools for _, tools, _ in rows)
    lines += [
        f"| **all seven, direct** | **{total}** | **{everything:,}** |",
        f"| moonbox's code tool, with the catalog of {total - len(direct)} tools | 1 | {alone:,} |",
        f"| the destructive tools, which stay direct | {len(direct)} | {beside:,} |",
        f"| **moonbox, together** | **{1 + len(direct)}** | **{together:,}** |",
    ]
    lines += [
        f"| the same with `catalog_tokens = {budget}` (catalog: {detail}) | {1 + len(direct)} | {tokens:,} |"
        for detail, (tokens, budget) in small.items()
    ]
    saved = 100 * (1 - together / everything)
    lines += ["", f"{saved:.0f} % fewer tokens, counted with {NAME}."]
    return "\n".join(lines)


def _named(tools: Sequence[Tool]) -> list[tuple[str, Tool]]:
    return list(provider_names(tools, ()).items())


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--write", action="store_true", help="put the table into docs/mcp.md")
    given = options.parse_args()
    peers.install()
    made = table(token_counter())
    print(made)
    if given.write:
        text = PAGE.read_text(encoding="utf-8")
        before, _, rest = text.partition(BEGIN)
        _, _, after = rest.partition(END)
        PAGE.write_text(f"{before}{BEGIN}\n\n{made}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
