"""Runs a copy of the example of llama.cpp with a tiny model file whose answers are put into its mouth."""

from __future__ import annotations

import json
import runpy
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "examples")]

from llama_cpp import Llama, LogitsProcessorList  # noqa: E402 - found through the path above
from loopback import SCRIPT  # noqa: E402

from moonbox.adapters.local import LlamaCpp  # noqa: E402
from tests.adapters.tiny_gguf import PLAIN, Teacher, write  # noqa: E402

if __name__ == "__main__":
    example = runpy.run_path(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder, LlamaCpp([example["get_expenses"]], style="json") as agent:
        model = Llama(str(write(Path(folder) / "tiny.gguf", PLAIN)), n_ctx=16_384, n_batch=2048, verbose=False)
        call = json.dumps({"tool": "lua_repl", "arguments": {"source_code": SCRIPT}})
        teacher = Teacher(model, call, json.dumps({"answer": "It is 460500."}))
        example["ask"](agent, model, logits_processor=LogitsProcessorList([teacher]), temperature=0.0)
