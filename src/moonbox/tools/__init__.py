"""Tools: named functions of the host, their schemas, and sets of them."""
