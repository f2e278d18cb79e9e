"""What tests do in every run, and what only where `MOONBOX_LONG` is set: many tries of what chance decides, long cases.

`make soak` sets it.
"""

from __future__ import annotations

import os

__all__ = ["LONG", "times"]

LONG = bool(os.environ.get("MOONBOX_LONG"))


def times(many: int) -> int:
    """This many in a long run, and a quarter of them in another."""
    return many if LONG else max(many // 4, 1)
