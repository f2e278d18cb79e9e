"""The pictures of terminals in the documentation, made from actual runs: `make screenshots`."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"
_DARK = ("484f58", "ff7b72", "7ee787", "e3b341", "79c0ff", "d2a8ff", "76e3ea", "d0d7de")
_BRIGHT = ("8b949e", "ffa69e", "a3f0ab", "f2cc60", "a5d6ff", "e2c5ff", "b3f0ff", "ffffff")


def main() -> None:
    """Write every picture anew."""
    sys.path.insert(0, str(EXAMPLES))
    import demo

    console = Console(record=True, width=demo.WIDTH, file=io.StringIO(), force_terminal=True, color_system="standard")
    console.print(Text.assemble(("$ ", "dim"), ("make demo", "bold"), "\n"))
    demo.show(console, demo.run())
    theme = TerminalTheme(_rgb("161b22"), _rgb("d0d7de"), [*map(_rgb, _DARK)], [*map(_rgb, _BRIGHT)])
    svg = console.export_svg(title="moonbox", theme=theme, unique_id="demo")
    (HERE / "demo.svg").write_text(_self_contained(svg), encoding="utf-8")


def _rgb(code: str) -> tuple[int, int, int]:
    red, green, blue = bytes.fromhex(code)
    return red, green, blue


def _self_contained(svg: str) -> str:
    """Without the fonts that rich would load from elsewhere: a picture should not call anybody."""
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    return svg.replace("Fira Code", "ui-monospace, SFMono-Regular, Menlo, Consolas, DejaVu Sans Mono")


if __name__ == "__main__":
    main()
