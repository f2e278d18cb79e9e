"""`python -m moonbox`: the command line without its script."""

from __future__ import annotations

from moonbox.cli import main

if __name__ == "__main__":
    main()
