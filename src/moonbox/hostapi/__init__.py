"""Host functions that scripts may call, each behind a grant."""

from __future__ import annotations

from moonbox.hostapi.api import HostApi
from moonbox.hostapi.arguments import Parameter
from moonbox.hostapi.function import Host, HostFunction, HostModule
from moonbox.hostapi.grants import GRANT_KEYS, Grants, SecretGrant
from moonbox.hostapi.http.options import HttpOptions, Resolver
from moonbox.hostapi.journal import LogRecord
from moonbox.hostapi.limits import HostLimits

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
