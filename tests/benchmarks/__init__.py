"""Tests of the benchmarks' own arithmetic, none of which needs a network."""
