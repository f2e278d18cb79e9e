"""Engines: the virtual machine that runs a script, and the languages it runs."""
