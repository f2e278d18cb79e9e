"""Connectors: the places that documents come from."""
