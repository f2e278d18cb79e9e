"""The vault: secret values that scripts hold only handles to, and the rules for where they may go."""

from __future__ import annotations

from secrets import token_hex
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Protocol

from moonbox.errors import ArgumentError, Denied, ToolError
from moonbox.net.addresses import why_refused
from moonbox.scripts.hostapi.grants import not_granted
from moonbox.scripts.hostapi.patterns import grant_text
from moonbox.scripts.hostapi.scrub import MIN_SECRET, Scrubber

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moonbox.net.addresses import Address
    from moonbox.scripts.hostapi.grants import Grants, SecretGrant

__all__ = ["HANDLE_KEY", "Destination", "Vault", "is_handle", "mentions_handle"]

HANDLE_KEY = "$secret"
_MAX_TEMPLATE = 200


class Destination(Protocol):
    """Where a secret is about to be sent."""

    @property
    def scheme(self) -> str: ...
    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def address(self) -> Address | None: ...


class Vault:
    """The secrets of one HostApi. Handles are random, and worth nothing in any other."""

    def __init__(self, grants: Grants, environ: Mapping[str, str], section: str, *, plain_http: bool = False) -> None:
        self._grants, self._environ, self._section, self._plain_http = grants, environ, section, plain_http
        self._issued: dict[str, _Secret] = {}
        self.scrub = Scrubber()
        for secret in grants.secrets:
            self.scrub.add(secret.name, _trimmed(environ.get(secret.name, "")))

    def issue(self, name: str, template: str | None) -> dict[str, str]:
        """A new handle to a granted variable; `template` holds one %s where the value goes."""
        grant = self._grants.secret(name)
        if grant is None:
            key = "secrets" if self._grants.secrets or not self._grants.env else "env"
            raise not_granted(f"the secret {name}", key, name, self._grants, self._section)
        if template is not None and template.count("%s") != 1:
            raise ArgumentError('secret(name, template): template must hold %s exactly once, such as "Bearer %s"')
        if template is not None and len(template) > _MAX_TEMPLATE:
            raise ArgumentError(f"secret(name, template): template has more than {_MAX_TEMPLATE} characters")
        value = _trimmed(self._environ.get(name, ""))
        if not value:
            raise ToolError(f"the environment variable {name} is not set", code="not_found")
        if len(value) < MIN_SECRET:
            raise ToolError(
                f"the value of {name} has fewer than {MIN_SECRET} characters, too few to be kept secret",
                code="weak_secret",
            )
        self.scrub.add(name, value)
        secret = _Secret(grant, value, template or "%s")
        token = next((token for token, known in self._issued.items() if known == secret), None) or token_hex(16)
        self._issued[token] = secret
        return {HANDLE_KEY: token}

    def key(self, handle: dict[str, Any]) -> bytes:
        """The bytes of a secret as a key for a keyed hash, whose output does not tell them."""
        return self._find(handle).text().encode()

    def reveal(self, handle: dict[str, Any], place: str, to: Destination) -> str:
        """The real value for one place in one request; raises Denied where it must not go."""
        secret = self._find(handle)
        name = secret.grant.name
        if place not in secret.grant.places:
            allowed = ", ".join(secret.grant.places)
            _refuse(f"the secret {name} may not stand in the {place} of a request, only in: {allowed}")
        if not self._may_go(secret.grant, to):
            where = grant_text(to.host, to.port)
            advice = f'secrets = {{ {name} = ["{where}"] }} under [{self._section}] would allow it'
            _refuse(f"the secret {name} may not be sent to {where}; {advice}")
        local = to.address is not None and why_refused(to.address)
        if to.scheme != "https" and not local and not self._plain_http:
            _refuse(f"the secret {name} is sent over https only, not to http://{to.host}")
        return secret.text()

    def _may_go(self, grant: SecretGrant, to: Destination) -> bool:
        # "*" in http is for reading the web; it does not mean that a secret may go anywhere.
        patterns = grant.patterns or [pattern for pattern in self._grants.patterns if pattern.kind != "any"]
        return any(pattern.allows(to.host, to.address, to.port) for pattern in patterns)

    def _find(self, handle: dict[str, Any]) -> _Secret:
        secret = self._issued.get(str(handle.get(HANDLE_KEY)))
        if secret is None:
            raise ArgumentError("this is not a secret handle of this script; get one with secret(name)")
        return secret


def is_handle(value: Any) -> bool:
    return isinstance(value, dict) and HANDLE_KEY in value


def mentions_handle(value: Any) -> bool:
    """Whether a handle stands anywhere inside a plain value."""
    if isinstance(value, dict):
        return HANDLE_KEY in value or any(mentions_handle(item) for item in value.values())
    return isinstance(value, list) and any(mentions_handle(item) for item in value)


class _Secret(NamedTuple):
    grant: SecretGrant
    value: str
    template: str

    def text(self) -> str:
        return self.template.replace("%s", self.value)

    def __repr__(self) -> str:
        return f"_Secret({self.grant.name})"  # a traceback must not show the value


def _trimmed(value: str) -> str:
    """Variables filled from files often end with a line break, which is no part of the secret."""
    return value.rstrip("\r\n")


def _refuse(message: str) -> NoReturn:
    raise Denied(message, code="secret_refused")
