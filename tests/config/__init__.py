"""Tests of the configuration file, its reader and its settings."""
