"""Runs an example that dies by SIGKILL when its script is about to get its nth answers: python killed.py N EXAMPLE"""

from __future__ import annotations

import os
import runpy
import signal
import sys
from typing import Any

from moonbox import Pause

left = int(sys.argv[1])
resume = Pause.resume


def resume_or_die(self: Pause, answers: Any = None) -> Any:
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return resume(self, answers)


Pause.resume = resume_or_die  # type: ignore[method-assign]  # the one place that every batch passes
runpy.run_path(sys.argv[2], run_name="__main__")
