"""The clock of a script: UTC, whatever the machine's time zone is."""

from __future__ import annotations

import time

import pytest

from moonbox import Sandbox


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="the time zone cannot be changed")
@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kolkata", "XYZ-13", "UTC"])
def test_the_time_zone_of_the_host_does_not_matter(zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        with Sandbox(isolation="inline") as box:
            run = box.run(
                """
                local t = os.time{ year = 2024, month = 7, day = 1, hour = 0 }
                return t, os.date("%Y-%m-%d %H:%M", t), os.time(os.date("*t", t)), os.date("%z %Z", 0)
                """
            )
    finally:
        monkeypatch.undo()
        time.tzset()
    assert run.values[:3] == (1719792000, "2024-07-01 00:00", 1719792000)
    assert run.values[3].startswith("+0000")
