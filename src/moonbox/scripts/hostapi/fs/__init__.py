"""Files for scripts: granted folders, and nothing outside them."""
