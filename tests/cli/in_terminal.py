"""`moonbox` as the first process of a session in the terminal that its standard streams are."""

from __future__ import annotations

import os
import runpy
import sys

if __name__ == "__main__":
    os.login_tty(os.dup(0))
    sys.path[0] = os.getcwd()  # noqa: PTH109 - as `python -m` has it
    runpy.run_module("moonbox", run_name="__main__", alter_sys=True)
