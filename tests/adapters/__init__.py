"""Adapters, each driven by its provider's own client or framework against a model on loopback."""

import sys
from pathlib import Path

# The model on loopback is part of the examples, so that they run without a key too.
sys.path.append(str(Path(__file__).resolve().parents[2] / "examples"))
