"""JavaScript blocks of a page: run together in Node as one module, in a project that has the npm package.

`expression; // → value` is compared with what Node's `util.inspect` shows. Imports may be repeated from block to block.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import TYPE_CHECKING

from .pages import ROOT, Block

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_IMPORT = re.compile(r"^import (?:\{(?P<names>[^}]*)\}|\* as \w+|\w+) from \"(?P<module>[^\"]+)\";$")
_SHOWN = re.compile(r"^(?P<code>\S.*?);?\s+// → (?P<value>.*)$")
_FIRST = """
import { inspect as __inspect } from "node:util";
const __show = (value, wanted, where) => {
  const shown = __inspect(value, { depth: 8, breakLength: Infinity, compact: true });
  if (shown !== wanted) throw new Error(`${where} is ${shown}, not ${wanted}`);
};
"""


def why_not_run() -> str:
    """Why JavaScript cannot be run here; empty when it can."""
    if shutil.which("node") is None:
        return "Node is not installed"
    return "" if (ROOT / "js" / "dist" / "index.js").exists() else "the npm package is not built; run: make js"


def run_javascript(blocks: Sequence[Block], folder: Path) -> int:
    """Run them; returns how many values were shown."""
    imports: dict[str, dict[str, None]] = {}
    body: list[str] = []
    shown = 0
    for block in blocks:
        for at, line in enumerate(block.text.splitlines()):
            where = f"{block.where.rpartition(':')[0]}:{block.line + at + 1}"
            if (given := _IMPORT.match(line)) and given["names"] is not None:
                names = (name.strip() for name in given["names"].split(","))
                imports.setdefault(given["module"], {}).update(dict.fromkeys(name for name in names if name))
            elif found := _SHOWN.match(line):
                shown += 1
                body.append(f"__show(({found['code']}), String.raw`{found['value']}`, `{where}`);")
            else:
                body.append(line)
    head = [f'import {{ {", ".join(names)} }} from "{module}";' for module, names in imports.items()]
    folder.mkdir(exist_ok=True)
    (folder / "node_modules").mkdir(exist_ok=True)
    (folder / "node_modules" / "moonbox").symlink_to(ROOT / "js")
    program = folder / "page.mjs"
    program.write_text("\n".join([*head, _FIRST, *body]) + "\n", encoding="utf-8")
    done = subprocess.run(
        ["node", program.name], cwd=folder, capture_output=True, text=True, encoding="utf-8", timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    return shown
