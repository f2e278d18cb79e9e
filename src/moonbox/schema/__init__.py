"""JSON Schema: read once, and what is made of it."""
