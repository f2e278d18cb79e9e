"""Fuzzing of cost: what the host does for a script grows with its input, and no faster."""
