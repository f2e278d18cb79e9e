"""A model in this process: `MOONBOX_GGUF=model.gguf python examples/providers/llama_cpp_model.py`.

Without a model file a tiny one is made (that needs the package gguf): the engine and the grammar are real, its answers
are put into its mouth.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

try:
    from common import TASKS, Task, get_expenses, show
except ModuleNotFoundError as problem:
    if problem.name != "common":
        raise
    raise SystemExit("common.py is missing: copy the whole folder 'examples', not one file of it") from None

from llama_cpp import Llama, LogitsProcessorList

from moonbox.adapters.local import LlamaCpp


def main() -> None:
    path = os.environ.get("MOONBOX_GGUF")
    if path and "--loopback" not in sys.argv:
        ask(Llama(path, n_ctx=16_384, verbose=False))
        return
    from tiny_gguf import PLAIN, write

    with tempfile.TemporaryDirectory() as folder:
        ask(
            Llama(str(write(Path(folder) / "tiny.gguf", PLAIN)), n_ctx=16_384, n_batch=2048, verbose=False), taught=True
        )


def ask(llama: Llama, *, taught: bool = False) -> None:
    """style="json" works with every model; with one that was trained on tools, style="template" is better."""
    with LlamaCpp([get_expenses], style="json") as agent:
        for task in TASKS:
            done = agent.run(task.question, client=llama, **(_lesson(llama, task) if taught else {}))
            show(task, done.text, [reply.run.source for reply in done.replies if reply.run])
    llama.close()


def _lesson(llama: Llama, task: Task) -> dict[str, Any]:
    from tiny_gguf import Teacher

    call = json.dumps({"tool": "lua_repl", "arguments": {"source_code": task.script}})
    teacher = Teacher(llama, call, json.dumps({"answer": f"It is {task.expected()}."}))
    return {"logits_processor": LogitsProcessorList([teacher]), "temperature": 0.0}


if __name__ == "__main__":
    main()
