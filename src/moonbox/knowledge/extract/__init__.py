"""Extraction: the text inside files of different kinds."""
