"""Worker processes: protocol, zygote, child, jail and pool."""
