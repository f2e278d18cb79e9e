"""A run: its state machine, its record, its calls, and the three drivers that move it."""
