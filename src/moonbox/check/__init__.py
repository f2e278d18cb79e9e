"""The checker: what is wrong with a script, found before anything of it runs."""
