"""Environment variables and secrets: functions env.get and secret, and the rules for where a secret may be sent."""

from __future__ import annotations

from collections.abc import Sequence
from secrets import token_hex
from typing import Any, NamedTuple, NoReturn

from moonbox.errors import ArgumentError, Denied, ToolError
from moonbox.net.addresses import Target, why_refused
from moonbox.scripts.hostapi.functions import Host, HostFunction, Parameter, Wrong
from moonbox.scripts.hostapi.grants import SecretGrant, grant_text
from moonbox.secrets import MIN_SECRET

HANDLE_KEY = "$secret"


def functions(host: Host) -> Sequence[HostFunction]:
    hidden = {secret.name for secret in host.grants.secrets}

    def get(name: str, default: str | None) -> str | None:
        if name in hidden:
            raise Denied(f'{name} is granted as a secret and cannot be read; use secret("{name}")', code="not_granted")
        if name not in host.grants.env:
            raise host.not_granted(f"the environment variable {name}", "env", name)
        return host.environ.get(name, default)

    name = Parameter("name", "string", 'such as "MY_API_KEY"', required=True)
    template = Parameter("template", "string", 'a text with %s in place of the value, such as "Bearer %s"', most=200)
    default, issue = Parameter("default", "string"), host.secrets.issue
    reading = "The value of a granted environment variable, or the default when it is not set."
    hiding = (
        "A handle to the value of a granted environment variable. http accepts it as a header's value (or part of "
        "it) and crypto.hmac_sha256 as a key; the value itself cannot be read, printed or returned."
    )
    either = ("env", "secrets")
    return [
        HostFunction("env.get", reading, get, (name, default), "string or null", needs=("env",), refuses=True),
        HostFunction("secret", hiding, issue, (name, template), "handle", needs=either, refuses=True),
    ]


class SecretStore:
    """The secrets of one HostApi. Scripts hold handles to them, which are random and worth nothing elsewhere."""

    def __init__(self, host: Host) -> None:
        self._host, self._grants = host, host.grants
        self._issued: dict[str, _Secret] = {}
        self._handles: dict[_Secret, str] = {}
        for secret in host.grants.secrets:
            host.redact.add(secret.name, _trimmed(host.environ.get(secret.name, "")))

    def issue(self, name: str, template: str | None) -> dict[str, str]:
        """A handle to a granted variable; `template` contains %s in place of the value."""
        grant = self._grants.secret(name)
        if grant is None:
            key = "secrets" if self._grants.secrets or not self._grants.env else "env"
            raise self._host.not_granted(f"the secret {name}", key, name)
        if template is not None and template.count("%s") != 1:
            raise Wrong('template must contain %s exactly once, such as "Bearer %s"')
        value = _trimmed(self._host.environ.get(name, ""))
        if not value:
            raise ToolError(f"the environment variable {name} is not set", code="not_found")
        if len(value) < MIN_SECRET:
            message = f"the value of {name} has fewer than {MIN_SECRET} characters, too few to be used as a secret"
            raise ToolError(message, code="weak_secret")
        self._host.redact.add(name, value)
        secret = _Secret(grant, value, template or "%s")
        token = self._handles.setdefault(secret, token_hex(16))
        self._issued[token] = secret
        return {HANDLE_KEY: token}

    def key(self, handle: dict[str, Any]) -> bytes:
        """The bytes of a secret as a key for a keyed hash, whose output does not tell them."""
        return self._find(handle).text().encode()

    def reveal(self, handle: dict[str, Any], place: str, to: Target) -> str:
        """The real value for one place in one request; raises Denied where it must not go."""
        secret = self._find(handle)
        name = secret.grant.name
        if place not in secret.grant.places:
            allowed = ", ".join(secret.grant.places)
            _refuse(f"the secret {name} may not be used in the {place} of a request, only in: {allowed}")
        if not self._may_go(secret.grant, to):
            where = grant_text(to.host, to.port)
            line = f'secrets = {{ {name} = ["{where}"] }}'
            _refuse(f"the secret {name} may not be sent to {where}; add {line} under [{self._host.section}]")
        local = to.address is not None and why_refused(to.address)
        if to.scheme != "https" and not local:
            _refuse(f"the secret {name} is sent over https only, not to http://{to.host}")
        return secret.text()

    def _may_go(self, grant: SecretGrant, to: Target) -> bool:
        # "*" in http is for reading the web; it does not mean that a secret may go anywhere.
        patterns = grant.patterns or [pattern for pattern in self._grants.patterns if pattern.name != "*"]
        return any(pattern.allows(to.host, to.address, to.port) for pattern in patterns)

    def _find(self, handle: dict[str, Any]) -> _Secret:
        secret = self._issued.get(str(handle.get(HANDLE_KEY)))
        if secret is None:
            raise ArgumentError("invalid secret handle; get one with secret(name)")
        return secret


def is_handle(value: Any) -> bool:
    return isinstance(value, dict) and HANDLE_KEY in value


def contains_handle(value: Any) -> bool:
    """Whether there is a handle anywhere inside a plain value."""
    if isinstance(value, dict):
        return HANDLE_KEY in value or any(contains_handle(item) for item in value.values())
    return isinstance(value, list) and any(contains_handle(item) for item in value)


class _Secret(NamedTuple):
    grant: SecretGrant
    value: str
    template: str

    def text(self) -> str:
        return self.template.replace("%s", self.value)

    def __repr__(self) -> str:
        return f"_Secret({self.grant.name})"  # a traceback must not show the value


def _trimmed(value: str) -> str:
    """Variables filled from files often end with a line break, which is not part of the secret."""
    return value.rstrip("\r\n")


def _refuse(message: str) -> NoReturn:
    raise Denied(message, code="secret_refused")
