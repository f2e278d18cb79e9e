"""What tests do in every run, and what only where `MOONBOX_LONG` is set: many tries of what chance decides, long cases.

`make soak` sets it.
"""

from __future__ import annotations

import os

import pytest

__all__ = ["LONG", "only_long", "times"]

LONG = bool(os.environ.get("MOONBOX_LONG"))
only_long = pytest.mark.skipif(not LONG, reason="takes long and rarely fails; MOONBOX_LONG=1 runs it")


def times(many: int) -> int:
    """This many in a long run, and a quarter of them in another."""
    return many if LONG else max(many // 4, 1)
