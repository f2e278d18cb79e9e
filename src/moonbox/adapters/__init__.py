"""Adapters: code mode in the types of each provider and framework. Each module imports its package only when used."""
