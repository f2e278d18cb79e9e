"""Another module of chores, for the test of the zygote that all modules share."""

from __future__ import annotations

import os

CHORES = {"parent": lambda _: os.getppid()}
