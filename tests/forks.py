"""Work done in a forked process."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def in_a_fork(work: Callable[[], str]) -> str:
    """What some work returns when it is done in another process."""
    mine, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            answer = work()
        except BaseException as error:  # noqa: BLE001 - for the test to see
            answer = repr(error)
        os.write(theirs, answer.encode())
        os._exit(0)
    os.close(theirs)
    with os.fdopen(mine) as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return answer
