"""The built-in host modules, in the order in which they are documented."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moonbox.scripts.hostapi.fs import module as fs
from moonbox.scripts.hostapi.http import module as http
from moonbox.scripts.hostapi.modules import base64, crypto, csv, env, log, regex, sleep, time, url

if TYPE_CHECKING:
    from moonbox.scripts.hostapi.function import HostModule

__all__ = ["MODULES"]

MODULES: tuple[HostModule, ...] = (http, fs, env, log, time, sleep, url, csv, base64, crypto, regex)
