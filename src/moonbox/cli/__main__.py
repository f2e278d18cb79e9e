"""`python -m moonbox.cli`: the same as `python -m moonbox`, for client entries that name it."""

from __future__ import annotations

from moonbox.cli import main

if __name__ == "__main__":
    main()
