"""How often a test tries what chance decides: a few times in every run, and many times where `MOONBOX_LONG` is set.

`make soak` sets it.
"""

from __future__ import annotations

import os

__all__ = ["LONG", "times"]

LONG = bool(os.environ.get("MOONBOX_LONG"))


def times(many: int) -> int:
    """This many in a long run, and a quarter of them in another."""
    return many if LONG else max(many // 4, 1)
