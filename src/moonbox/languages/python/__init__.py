"""Python, the third language: run by Monty, an interpreter in a process of its own beside the worker."""
