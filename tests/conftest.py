"""Settings for all tests."""

from __future__ import annotations

import signal

import pytest

pytest.register_assert_rewrite("script_cases")

# In the background a shell's jobs ignore Ctrl-C, and so would every program that the tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
