"""Logins at servers: OAuth by the SDK's providers, with tokens that outlive the process.

`LoginStore` keeps what a login gave: in the system's keyring where there is one, otherwise in files that only the user
can read. `make_auth` gives a connection its tokens; only `moonbox mcp login` can ask a person for new ones.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.client.auth.utils import issuers_match
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthMetadata, OAuthToken
from pydantic import AnyUrl, BaseModel, ValidationError

from moonbox._version import __version__
from moonbox.audit.chain import json_object
from moonbox.audit.sinks import default_path
from moonbox.config.mcp import LoginSettings, ServerSettings
from moonbox.files import write_private_file

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    import httpx2
    from mcp.client.auth.oauth2 import OAuthContext
    from mcp.shared.auth import AuthorizationCodeResult


_SERVICE = "moonbox-mcp"
_MAX_BYTES = 100_000


class LoginRequired(Exception):
    """A person must log in; the message says how."""

    def __init__(self, server: str) -> None:
        super().__init__(f"it requires a login; run `moonbox mcp login {server}`")


@dataclass(frozen=True, slots=True)
class Login:
    """Whether moonbox is logged in at a server, and until when."""

    expires_at: float | None
    """When the access token ends, in seconds since 1970; None if that is not known."""
    renews: bool
    """Whether the login is renewed by itself."""
    scope: str = ""

    @property
    def expired(self) -> bool:
        return not self.renews and self.expires_at is not None and self.expires_at <= time.time()


class LoginRecord(BaseModel):
    """What a login gave."""

    tokens: OAuthToken | None = None
    expires_at: float | None = None
    client: OAuthClientInformationFull | None = None
    metadata: OAuthMetadata | None = None


class LoginStore:
    """What logins gave, one record for each server."""

    def __init__(self, folder: Path | None = None) -> None:
        self._records = Records(folder or default_path().parent / "mcp-logins", _MAX_BYTES)
        self._use_keyring = folder is None and os.environ.get("MOONBOX_KEYRING") != "off"

    @functools.cached_property
    def _keyring(self) -> Any:
        """Looked for at the first use: that takes a while, and most servers have no login."""
        return _find_keyring() if self._use_keyring else None

    @property
    def place(self) -> str:
        return "the system's keyring" if self._keyring is not None else str(self._records.folder)

    def read(self, settings: ServerSettings) -> dict[str, Any]:
        name = _record_name(settings)
        if self._keyring is not None:
            with contextlib.suppress(Exception):  # a locked or broken keyring: as if there were no login
                text = self._keyring.get_password(_SERVICE, name)
                if text is not None:
                    return json_object(text.encode())
        return self._records.read(name)

    def write(self, settings: ServerSettings, data: dict[str, Any]) -> None:
        name = _record_name(settings)
        if self._keyring is not None:
            try:
                self._keyring.set_password(_SERVICE, name, json.dumps(data))
            except Exception:  # noqa: BLE001 - each backend has errors of its own; the file is always there
                self._keyring = None
            else:
                return
        self._records.write(name, data)

    def remove(self, settings: ServerSettings) -> bool:
        """Forget a login; whether there was one."""
        existed, name = bool(self.read(settings)), _record_name(settings)
        if self._keyring is not None:
            with contextlib.suppress(Exception):  # it was not there
                self._keyring.delete_password(_SERVICE, name)
        self._records.remove(name)
        return existed

    def record(self, settings: ServerSettings) -> LoginRecord:
        """The record of a server; empty if there is none that can be used."""
        with contextlib.suppress(ValidationError):
            return LoginRecord.model_validate(self.read(settings))
        return LoginRecord()

    def login(self, settings: ServerSettings) -> Login | None:
        """The login at a server, for people; None if there is none."""
        record = self.record(settings)
        if record.tokens is None or not record.tokens.access_token:
            return None
        return Login(record.expires_at, bool(record.tokens.refresh_token), record.tokens.scope or "")


def _find_keyring() -> Any:
    """The system's keyring; None if there is none that keeps anything."""
    try:
        import keyring
        from keyring.backends import fail, null

        backend = keyring.get_keyring()
    except Exception:  # noqa: BLE001 - not installed, or a backend that fails to load
        return None
    return None if isinstance(backend, fail.Keyring | null.Keyring) or backend.priority <= 0 else keyring


def _record_name(settings: ServerSettings) -> str:
    """Of the name and the address: another server under the same name must not get the tokens."""
    return record_name(settings.name, settings.url)


@dataclass(eq=False)
class _Storage:
    """The SDK's view of one record. `context` is the provider's, whose findings are kept too."""

    _store: LoginStore
    _settings: ServerSettings
    _registered: bool
    context: OAuthContext | None = None

    def restore(self, context: OAuthContext) -> None:
        """Give a new provider what the last one found: where tokens are renewed, and when they end."""
        self.context, kept = context, self._kept()
        context.token_expiry_time, context.oauth_metadata = kept.expires_at, kept.metadata

    def _kept(self) -> LoginRecord:
        """The record; nothing of it if it is the login at another issuer than the configured one."""
        record, oauth = self._store.record(self._settings), self._settings.oauth
        if record.metadata is None or oauth is None or oauth.issuer is None:
            return record
        return record if issuers_match(str(record.metadata.issuer), oauth.issuer) else LoginRecord()

    def _keep(self, **changes: Any) -> None:
        record = self._store.record(self._settings).model_copy(update=changes)
        self._store.write(self._settings, record.model_dump(mode="json", exclude_none=True))

    async def get_tokens(self) -> OAuthToken | None:
        return self._kept().tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        expires_at = None if tokens.expires_in is None else time.time() + tokens.expires_in
        metadata = None if self.context is None else self.context.oauth_metadata
        self._keep(tokens=tokens, expires_at=expires_at, **({"metadata": metadata} if metadata is not None else {}))

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        oauth = self._settings.oauth
        if oauth is not None and oauth.client_id is not None:
            return OAuthClientInformationFull(
                client_id=oauth.client_id,
                client_secret=oauth.client_secret,
                issuer=oauth.issuer,
                redirect_uris=None,
                token_endpoint_auth_method="client_secret_basic" if oauth.client_secret else "none",
            )
        if not self._registered:
            return None  # a new login registers anew: it returns to another address
        return self._kept().client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._keep(client=client_info)
        self._registered = True


@dataclass(frozen=True, slots=True)
class Person:
    """A person who can log in: opens an address, and the browser returns to `redirect_uri`."""

    redirect_uri: str
    open_address: Callable[[str], Awaitable[None]]
    wait_for_return: Callable[[], Awaitable[AuthorizationCodeResult]]


def make_auth(
    settings: ServerSettings,
    store: LoginStore,
    person: Person | None = None,
    *,
    on_required: Callable[[], None] = lambda: None,
) -> OAuthClientProvider | None:
    """What adds tokens to requests; None if there is no login and no person to log in.

    `on_required` is called when a login has ended and no person can begin a new one.
    """
    assert settings.url is not None
    oauth = settings.oauth or LoginSettings()
    if any(name.lower() == "authorization" for name in settings.headers):
        return None
    provider: OAuthClientProvider
    storage = _Storage(store, settings, person is None)
    if oauth.grant == "client_credentials":
        provider = _machine(settings.url, oauth, storage)
    elif person is not None:
        provider = _provider(settings, oauth, storage, person)
    elif store.login(settings) is not None:
        provider = _provider(settings, oauth, storage, _no_person(settings.name, on_required))
    else:
        return None
    storage.restore(provider.context)
    return provider


def _machine(url: str, oauth: LoginSettings, storage: _Storage) -> OAuthClientProvider:
    # Here: it loads a library for signatures, which most servers have no use for.
    from mcp.client.auth.extensions.client_credentials import (
        ClientCredentialsOAuthProvider,
        PrivateKeyJWTOAuthProvider,
        SignedJWTParameters,
    )

    client = oauth.client_id or ""
    more: dict[str, Any] = {"scope": " ".join(oauth.scopes) or None, "issuer": oauth.issuer}
    if oauth.private_key is None:
        return ClientCredentialsOAuthProvider(url, storage, client, oauth.client_secret or "", **more)
    signing = SignedJWTParameters(
        issuer=client, subject=client, signing_key=oauth.private_key, signing_algorithm=oauth.algorithm
    )
    return PrivateKeyJWTOAuthProvider(url, storage, client, signing.create_assertion_provider(), **more)


def _provider(settings: ServerSettings, oauth: LoginSettings, storage: _Storage, person: Person) -> OAuthClientProvider:
    metadata = OAuthClientMetadata(
        client_name="moonbox",
        software_id="moonbox",
        software_version=__version__,
        redirect_uris=[AnyUrl(person.redirect_uri)],
        grant_types=["authorization_code", "refresh_token"],
        response_types=["code"],
    )
    return _IssuerBound(
        settings.url or "",
        metadata,
        storage,
        person.open_address,
        person.wait_for_return,
        client_metadata_url=oauth.client_metadata_url,
    )


class _IssuerBound(OAuthClientProvider):
    """Sends a client's secret only to the token endpoint of the issuer that the client belongs to.

    The SDK compares the issuer with what the server names, and then falls back to the server's own /token where the
    issuer publishes no metadata; it renews tokens by the metadata that was kept.
    """

    async def _exchange_token_authorization_code(self, auth_code: str, code_verifier: str) -> httpx2.Request:
        self._check_issuer()
        return await super()._exchange_token_authorization_code(auth_code, code_verifier)

    async def _refresh_token(self) -> httpx2.Request:
        self._check_issuer()
        return await super()._refresh_token()

    def _select_authorization_server(self, advertised: list[str]) -> str:
        client = self.context.client_info
        issuer = "" if client is None else client.issuer or ""
        return next((server for server in advertised if issuers_match(server, issuer)), advertised[0])

    def _check_issuer(self) -> None:
        client, metadata = self.context.client_info, self.context.oauth_metadata
        if client is None or not client.client_secret or client.issuer is None:
            return
        if metadata is None or not issuers_match(str(metadata.issuer), client.issuer):
            raise OAuthFlowError(f"its login does not lead to the issuer {client.issuer}, to which the secret belongs")


def _no_person(server: str, on_required: Callable[[], None]) -> Person:
    """Where no person can log in: the login has ended, and the message says how to begin a new one."""

    async def refuse(*_: str) -> Any:
        on_required()
        raise LoginRequired(server)

    return Person("http://127.0.0.1/callback", refuse, refuse)


def record_name(*key: Any) -> str:
    """The name of the record of whatever the key describes."""
    return hashlib.sha256(json.dumps(key).encode()).hexdigest()[:32]


class Records:
    """A folder of records, each a file of at most `max_bytes`."""

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self.folder = folder
        self._max_bytes = max_bytes

    def read(self, name: str) -> dict[str, Any]:
        """The record; empty if there is none that can be used."""
        path = self._path(name)
        try:
            return json_object(path.read_bytes()) if path.stat().st_size <= self._max_bytes else {}
        except OSError:
            return {}

    def write(self, name: str, data: dict[str, Any]) -> None:
        """Replace the record at once; one that is too long is not kept."""
        text = json.dumps(data).encode()
        if len(text) > self._max_bytes:
            return
        write_private_file(self._path(name), text)

    def remove(self, name: str) -> None:
        self._path(name).unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.json"
