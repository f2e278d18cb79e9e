"""Settings for all tests."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("script_cases")
