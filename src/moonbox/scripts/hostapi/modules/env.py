"""Functions env.get and secret."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moonbox.errors import Denied
from moonbox.scripts.hostapi.arguments import Parameter
from moonbox.scripts.hostapi.function import Host, HostFunction

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["functions"]


def functions(host: Host) -> Sequence[HostFunction]:
    hidden = {secret.name for secret in host.grants.secrets}

    def get(name: str, default: str | None) -> str | None:
        if name in hidden:
            raise Denied(f'{name} is granted as a secret and cannot be read; use secret("{name}")', code="not_granted")
        if name not in host.grants.env:
            raise host.not_granted(f"the environment variable {name}", "env", name)
        return host.environ.get(name, default)

    name = Parameter("name", "string", 'such as "MY_API_KEY"', required=True)
    template = Parameter("template", "string", 'a text with %s where the value goes, such as "Bearer %s"')
    return [
        HostFunction(
            "env.get",
            "The value of a granted environment variable, or the default when it is not set.",
            get,
            (name, Parameter("default", "string")),
            "string or null",
            needs=("env",),
            refuses=True,
        ),
        HostFunction(
            "secret",
            "A handle to the value of a granted environment variable. http accepts it as a header's value (or part of "
            "it) and crypto.hmac_sha256 as a key; the value itself cannot be read, printed or returned.",
            host.vault.issue,
            (name, template),
            "handle",
            needs=("env", "secrets"),
            refuses=True,
        ),
    ]
