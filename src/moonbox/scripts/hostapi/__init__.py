"""Host functions that scripts may call, each behind a grant."""

from __future__ import annotations

from moonbox.net.addresses import Resolver
from moonbox.scripts.hostapi.api import MODULES, HostApi
from moonbox.scripts.hostapi.functions import Host, HostFunction, HostLimits, HostModule, HttpOptions, Parameter
from moonbox.scripts.hostapi.grants import Grants, SecretGrant

__all__ = [
    "MODULES",
    "Grants",
    "Host",
    "HostApi",
    "HostFunction",
    "HostLimits",
    "HostModule",
    "HttpOptions",
    "Parameter",
    "Resolver",
    "SecretGrant",
]
