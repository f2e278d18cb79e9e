"""From Rhai text to a syntax tree."""
