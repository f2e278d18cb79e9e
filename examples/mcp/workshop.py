"""Tools of a small workshop: one that only looks, and one that a person must agree to."""

from __future__ import annotations

from moonbox import tool

PARTS = {"bolt": 40, "nut": 38, "washer": 0, "gear": 3}


@tool(hints={"read_only": True})
def stock() -> dict[str, int]:
    """How many of each part there are."""
    return PARTS


@tool(policy="approve")
def order(part: str, count: int) -> str:
    """Order parts. They are sent at once and cannot be given back."""
    return f"{count} x {part} ordered"
