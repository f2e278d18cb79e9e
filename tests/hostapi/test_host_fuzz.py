"""Random input: URLs read the same by others, secrets found in any surroundings, arguments that never crash."""

from __future__ import annotations

import base64
from typing import Any
from urllib.parse import quote, urlsplit

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moonbox.errors import ToolError
from moonbox.net.addresses import InvalidURL, parse_target
from moonbox.scripts.hostapi.api import HostApi
from moonbox.scripts.hostapi.functions import HostLimits
from moonbox.scripts.hostapi.grants import Grants
from moonbox.secrets import SecretRedactor
from tests.long import times

_TEXTS = (
    " |\t|\n|é|。|http|https|://|:|/|//|\\|@|#|?|[|]|::1|127.0.0.1|example.com|evil|%|%2e|%00|.|..|0x7f|1|80|;|&|-|_|*"
)
_PIECES = st.sampled_from(_TEXTS.split("|"))


@settings(max_examples=times(200), deadline=None)
@given(
    st.lists(_PIECES, max_size=10).map("".join) | st.lists(_PIECES, max_size=8).map(lambda x: "http://" + "".join(x))
)
def test_whatever_is_accepted_means_the_same_to_other_readers(url: str) -> None:
    try:
        target = parse_target(url)
    except InvalidURL:
        return
    standard, other = urlsplit(target.url), httpx.URL(target.url)
    assert (standard.scheme, standard.hostname) == (target.scheme, target.host)
    assert (other.scheme, other.host) == (target.scheme, target.host)
    assert (standard.port or {"http": 80, "https": 443}[target.scheme]) == target.port
    assert standard.username is None
    assert parse_target(target.url) == target
    original = urlsplit(url)
    assert (original.hostname or "").removesuffix(".") in (target.host, f"::ffff:{target.host}")


@settings(max_examples=times(200), deadline=None)
@given(
    st.text(st.characters(min_codepoint=33, max_codepoint=0x2FF), min_size=8, max_size=60),
    st.binary(max_size=7),
    st.binary(max_size=7),
)
def test_a_secret_is_found_in_any_surroundings(secret: str, before: bytes, after: bytes) -> None:
    redact = SecretRedactor()
    redact.add("KEY", secret)
    data = secret.encode()
    for spelled in (
        before + data + after,
        base64.b64encode(before + data + after),
        base64.urlsafe_b64encode(before + data + after),
        quote(before + data + after, safe="").encode(),
        (before + data + after).hex().encode(),
    ):
        assert b"[secret KEY]" in redact(spelled)
        assert redact({"a": [spelled]}) == {"a": [redact(spelled)]}


_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats()
    | st.text(max_size=8)
    | st.binary(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5) | st.integers(0, 9), inner, max_size=3)
    ),
    max_leaves=5,
)
_OPTIONS = st.fixed_dictionaries(
    {},
    optional=dict.fromkeys(("headers", "params", "json", "form", "body", "auth", "header", "delimiter"), _VALUES),
)


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> HostApi:
    base = tmp_path_factory.mktemp("fuzz")
    grants = Grants.from_dict({"http": ["127.0.0.1:9"], "env": ["A"], "read": ["."], "write": ["out"]}, base)
    return HostApi(grants, environ={"A": "abcdefgh"}, limits=HostLimits(max_sleep=0, http_timeout=1))


@settings(max_examples=times(300), deadline=None)
@given(data=st.data())
def test_no_argument_raises_anything_but_tool_errors(api: HostApi, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(api.functions)))
    first = st.just("http://127.0.0.1:9/") | _VALUES if name.startswith("http.") else _VALUES
    args: list[Any] = [data.draw(first), *data.draw(st.lists(_OPTIONS | _VALUES, max_size=3))]
    try:
        api.call(name, args)
    except ToolError as error:
        assert str(error)
