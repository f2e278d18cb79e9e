"""Tests of a project: references to Python tools."""
