"""A model for llama.cpp of a few kilobytes: real file, real engine, a tokenizer of bytes, weights at random.

What it would say is nonsense; a Teacher says it instead, token by token, through the sampler of the engine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from gguf import GGUFWriter, TokenType

if TYPE_CHECKING:
    from pathlib import Path

PLAIN = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n"
)

WITH_TOOLS = """{% if tools %}<|im_start|>tools
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}<|im_end|>
{% endif %}{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}{% if m.tool_calls %}{% for call in m.tool_calls %}
<tool_call>{{ call.function | tojson }}</tool_call>{% endfor %}{% endif %}<|im_end|>
{% endfor %}<|im_start|>assistant
"""

_WIDTH, _HEADS, _INNER = 16, 2, 32


def write(path: Path, template: str) -> Path:
    """The file."""
    tokens = [*_bytes_as_characters(), "th", "<|im_start|>", "<|im_end|>"]
    writer = GGUFWriter(str(path), "llama")
    writer.add_context_length(65536)
    writer.add_embedding_length(_WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(_INNER)
    writer.add_head_count(_HEADS)
    writer.add_head_count_kv(_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(_WIDTH // _HEADS)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([TokenType.NORMAL] * 257 + [TokenType.CONTROL] * 2)
    writer.add_token_merges(["t h"])
    writer.add_bos_token_id(257)
    writer.add_eos_token_id(258)
    writer.add_add_bos_token(False)
    writer.add_chat_template(template)
    _add_weights(writer, len(tokens))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


class Teacher:
    """A logits processor that lets only its own answers through, one for each generation."""

    def __init__(self, llama: Any, *answers: str) -> None:
        self.llama = llama
        self.answers = list(answers)
        self.prompts: list[str] = []
        """What the model was given, as text."""
        self._length = -1
        self._left: list[int] = []

    def __call__(self, ids: Any, scores: Any) -> Any:
        if len(ids) != self._length + 1:  # not the token after the last one: another generation
            self.prompts.append(self.llama.detokenize([int(item) for item in ids], special=True).decode())
            answer = self.llama.tokenize(self.answers.pop(0).encode(), add_bos=False, special=False)
            self._left = [*answer, self.llama.token_eos()]
        self._length = len(ids)
        scores[:] = -1e9
        scores[self._left.pop(0)] = 1e9
        return scores


def _add_weights(writer: GGUFWriter, vocabulary: int) -> None:
    random = np.random.default_rng(1)

    def add(name: str, *shape: int) -> None:
        writer.add_tensor(name, (random.standard_normal(shape) * 0.1).astype(np.float32))

    ones = np.ones(_WIDTH, np.float32)
    add("token_embd.weight", vocabulary, _WIDTH)
    add("output.weight", vocabulary, _WIDTH)
    writer.add_tensor("output_norm.weight", ones)
    for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
        add(f"blk.0.{part}.weight", _WIDTH, _WIDTH)
    add("blk.0.ffn_gate.weight", _INNER, _WIDTH)
    add("blk.0.ffn_up.weight", _INNER, _WIDTH)
    add("blk.0.ffn_down.weight", _WIDTH, _INNER)
    writer.add_tensor("blk.0.attn_norm.weight", ones)
    writer.add_tensor("blk.0.ffn_norm.weight", ones)


def _bytes_as_characters() -> list[str]:
    """GPT-2's way of writing each byte as a character that can be printed."""
    printable = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = iter(range(256, 512))
    return [chr(byte) if byte in printable else chr(next(others)) for byte in range(256)]
