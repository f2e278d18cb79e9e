"""Settings for all tests."""

from __future__ import annotations

import os
import signal
from importlib.util import find_spec

import pytest

pytest.register_assert_rewrite("tests.script_cases")

# Tests make their own projects and agree to them; those of the question itself take this away.
os.environ.setdefault("MOONBOX_TRUST", "1")

# How long an example takes says something of the machine, and nothing of the code.
if find_spec("hypothesis"):  # environments of frameworks do without it
    from hypothesis import HealthCheck, settings

    settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("any machine")

# In the background a shell's jobs ignore Ctrl-C, and so would every program that the tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
