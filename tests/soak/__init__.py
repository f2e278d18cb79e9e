"""Tests that let many things go wrong at once."""
