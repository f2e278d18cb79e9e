"""Http for scripts: requests that reach granted hosts alone."""
