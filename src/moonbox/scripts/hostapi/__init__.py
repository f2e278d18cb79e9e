"""Host functions that scripts may call, each behind a grant."""

from __future__ import annotations

from moonbox.scripts.hostapi.api import HostApi
from moonbox.scripts.hostapi.arguments import Parameter
from moonbox.scripts.hostapi.function import Host, HostFunction, HostModule
from moonbox.scripts.hostapi.grants import GRANT_KEYS, Grants, SecretGrant
from moonbox.scripts.hostapi.http.options import HttpOptions, Resolver
from moonbox.scripts.hostapi.journal import LogRecord
from moonbox.scripts.hostapi.limits import HostLimits

__all__ = [
    "GRANT_KEYS",
    "Grants",
    "Host",
    "HostApi",
    "HostFunction",
    "HostLimits",
    "HostModule",
    "HttpOptions",
    "LogRecord",
    "Parameter",
    "Resolver",
    "SecretGrant",
]
