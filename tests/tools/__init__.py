"""Tests of the host's tools."""
