"""The HTTP API: tools, scripts and runs over plain HTTP and JSON."""
