"""Host modules: one small file for each group of functions, all of one shape."""
