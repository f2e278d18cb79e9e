"""A project: everything that one configuration describes, made, tied together, and served."""
