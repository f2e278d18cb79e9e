"""Secrets: usable in requests, and kept from the script on every channel that we know of."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import logging
import ssl
import traceback
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
import trustme

from moonbox.audit.records import Call, CallError, Run
from moonbox.errors import ArgumentError, Denied, Frame, ScriptError, ToolError
from moonbox.secrets import SecretRedactor
from moonbox.values import pack
from tests.hostapi.conftest import refused
from tests.loopback_servers import Answer, Request, Server

if TYPE_CHECKING:
    from collections.abc import Callable

    from moonbox.scripts.hostapi.api import HostApi

    Serve = Callable[..., Server]
    MakeApi = Callable[..., HostApi]

SECRET = 's3cr3t/Kéy+with=odd "chars"&more'
PLAIN = "sk-live-4f9aB7c2D1e8"


def api_for(make_api: MakeApi, server: Server, **grants: Any) -> HostApi:
    return make_api({"http": [server.grant], "secrets": ["KEY"], **grants}, environ={"KEY": PLAIN})


@pytest.fixture
def api(make_api: MakeApi) -> HostApi:
    """It has the secret, and nothing else."""
    return make_api({"secrets": ["KEY"]}, environ={"KEY": PLAIN})


def get(api: HostApi, url: str, **headers: Any) -> Any:
    """A request with the secret in a header, and in others that are given."""
    return api.call("http.get", [f"{url}/", {"headers": {"X-Key": api.call("secret", ["KEY"]), **headers}}])


def test_a_handle_says_nothing_about_the_value(api: HostApi, make_api: MakeApi) -> None:
    handle = api.call("secret", ["KEY"])
    assert list(handle) == ["$secret"]
    assert len(handle["$secret"]) == 32
    assert api.call("secret", ["KEY"]) == handle
    assert api.call("secret", ["KEY", "Bearer %s"]) != handle
    other = make_api({"secrets": ["KEY"]}, environ={"KEY": PLAIN})
    assert other.call("secret", ["KEY"]) != handle


def test_http_puts_secrets_into_headers(serve: Serve, make_api: MakeApi) -> None:
    server = serve({"/": lambda _: Answer(body=b"fine")})
    api = api_for(make_api, server)
    key = api.call("secret", ["KEY"])
    headers = {"X-Key": key, "Authorization": ["Bearer ", key], "X-Made": api.call("secret", ["KEY", "a-%s-b"])}
    assert api.call("http.get", [f"{server.url}/", {"headers": headers}])["body"] == "fine"
    sent = server.requests[0].headers
    assert (sent["x-key"], sent["authorization"], sent["x-made"]) == (PLAIN, f"Bearer {PLAIN}", f"a-{PLAIN}-b")
    api.call("http.get", [f"{server.url}/", {"auth": ["me", key]}])
    assert server.requests[1].headers["authorization"] == "Basic " + base64.b64encode(f"me:{PLAIN}".encode()).decode()


def test_a_variable_of_env_can_be_read_and_used_as_a_secret(serve: Serve, make_api: MakeApi) -> None:
    server = serve({"/": lambda _: Answer()})
    api = make_api({"http": [server.grant], "env": ["KEY"]}, environ={"KEY": PLAIN + "\n"})
    assert api.call("env.get", ["KEY"]) == PLAIN + "\n"
    get(api, server.url)
    assert server.requests[0].headers["x-key"] == PLAIN
    # Once it is used as a secret, it is one.
    assert api.call("env.get", ["KEY"]) == "[secret KEY]\n"


@pytest.mark.parametrize(
    ("grants", "advice"),
    [
        ({}, 'add secrets = ["KEY"] under [tools.script.weather]'),
        ({"env": ["A"]}, 'add "KEY" to env under [tools.script.weather]'),
        ({"secrets": ["A"]}, 'add "KEY" to secrets under [tools.script.weather]'),
    ],
)
def test_a_secret_that_is_not_granted(make_api: MakeApi, grants: dict[str, Any], advice: str) -> None:
    error = refused(make_api(grants, environ={"KEY": PLAIN}), "secret", "KEY")
    assert (type(error), str(error)) == (Denied, f"the secret KEY is not granted; {advice}")


ECHOES: dict[str, Callable[[str], bytes]] = {
    "as it is": lambda s: s.encode(),
    "upper case": lambda s: s.upper().encode() if s.isascii() else s.encode(),
    "in base64": lambda s: base64.b64encode(s.encode()),
    "in base64 after one byte": lambda s: base64.b64encode(b"x" + s.encode() + b"yz"),
    "in base64 after two bytes": lambda s: base64.b64encode(b"xy" + s.encode() + b"z"),
    "in base64url": lambda s: base64.urlsafe_b64encode(b"user:" + s.encode()).rstrip(b"="),
    "percent-encoded": lambda s: quote(s, safe="").encode(),
    "percent-encoded in lower case": lambda s: quote(s, safe="").lower().encode(),
    "percent-encoded twice": lambda s: quote(quote(s, safe=""), safe="").encode(),
    "every byte percent-encoded": lambda s: "".join(f"%{byte:02X}" for byte in s.encode()).encode(),
    "JSON-escaped": lambda s: json.dumps(s).encode(),
    "JSON-escaped slashes": lambda s: json.dumps(s).replace("/", "\\/").encode(),
    "escaped by code points": lambda s: "".join(f"\\u{ord(char):04x}" for char in s).encode(),
    "HTML-escaped": lambda s: s.replace("&", "&amp;").replace('"', "&quot;").encode(),
    "in hexadecimal": lambda s: s.encode().hex().upper().encode(),
    "backwards": lambda s: s.encode()[::-1],
    "in UTF-16": lambda s: s.encode("utf-16"),
}


@pytest.mark.parametrize("secret", [PLAIN, SECRET], ids=["plain", "odd"])
@pytest.mark.parametrize("echo", ECHOES.values(), ids=list(ECHOES))
def test_an_echo_in_the_body_is_redacted(
    serve: Serve, make_api: MakeApi, secret: str, echo: Callable[[str], bytes]
) -> None:
    spelled = echo(secret)
    server = serve({"/": lambda _: Answer(body=b"before " + spelled + b" after")})
    api = make_api({"http": [server.grant], "secrets": ["KEY"]}, environ={"KEY": secret})
    body = get(api, server.url)["body"]
    data = body if isinstance(body, bytes) else body.encode()
    assert data.startswith(b"before ") and b"[secret KEY]" in data and data.endswith(b" after")
    for start in range(len(spelled) - 8):  # nothing of it is left, at no place
        assert spelled[start : start + 8] not in data


def test_an_echo_in_headers_status_url_and_json_is_redacted(serve: Serve, make_api: MakeApi) -> None:
    def echo(request: Request) -> Answer:
        key = request.headers["x-key"]
        tricky = "".join(f"\\u{ord(char):04X}" if number % 2 else char for number, char in enumerate(key))
        body = f'{{"direct": "{key}", "{key}": [1], "tricky": "{tricky}", "nested": [{{"a": "x{key}y"}}]}}'
        headers = {"content-type": "application/json", "x-echo": key, f"x-{key}": "1", "set-cookie": f"a={key}"}
        return Answer(200, body.encode(), headers)

    server = serve({"/": echo})
    api = api_for(make_api, server)
    answer = get(api, server.url)
    assert answer["json"] == {
        "direct": "[secret KEY]",
        "[secret KEY]": [1],
        "tricky": "[secret KEY]",
        "nested": [{"a": "x[secret KEY]y"}],
    }
    assert json.loads(answer["body"]) == answer["json"]
    assert answer["headers"]["x-echo"] == "[secret KEY]"
    assert answer["headers"]["x-[secret KEY]"] == "1"
    assert PLAIN.lower() not in repr(answer).lower()


def test_a_secret_of_digits_is_redacted_from_numbers(serve: Serve, make_api: MakeApi) -> None:
    server = serve({"/": lambda _: Answer.json({"n": 31415926, "f": 31415926.0, "other": 31415927})})
    api = make_api({"http": [server.grant], "secrets": ["PIN"]}, environ={"PIN": "31415926"})
    answer = api.call("http.get", [f"{server.url}/"])
    assert answer["json"] == {"n": "[secret PIN]", "f": "[secret PIN]", "other": 31415927}


def test_an_echo_in_an_error_is_redacted(serve: Serve, make_api: MakeApi) -> None:
    server = serve({"/": lambda request: Answer.redirect(f"https://evil.test/{request.headers['x-key']}")})
    api = api_for(make_api, server, http=[server.grant, "127.0.0.1"])
    with pytest.raises(Denied) as denied:
        get(api, server.url)
    assert PLAIN not in str(denied.value)
    bad = serve({"/": lambda request: Answer.redirect(f"ftp://{request.headers['x-key']}/")})
    api = api_for(make_api, bad)
    with pytest.raises(ToolError) as caught:
        get(api, bad.url)
    assert "[secret KEY]" in str(caught.value)
    assert PLAIN not in f"{caught.value!r} {caught.value.args} {caught.value.message}"


def test_a_redirect_to_another_origin_gets_no_secret(serve: Serve, make_api: MakeApi) -> None:
    other = serve({"/": lambda _: Answer()})
    server = serve({"/": lambda _: Answer.redirect(f"{other.url}/"), "/same": lambda _: Answer.redirect("/there")})
    api = api_for(make_api, server, http=[server.grant, other.grant])
    key = api.call("secret", ["KEY"])
    get(api, server.url, **{"Accept-Language": key, "Accept": key})
    assert PLAIN not in repr(other.requests[0])
    api.call("http.get", [f"{server.url}/same", {"headers": {"X-Key": key}}])
    assert server.requests[-1].headers["x-key"] == PLAIN


def test_a_secret_goes_only_to_the_hosts_it_is_bound_to(serve: Serve, make_api: MakeApi) -> None:
    mine, other = serve({"/": lambda _: Answer()}), serve({"/": lambda _: Answer()})
    grants = {"http": [mine.grant, other.grant], "secrets": {"KEY": [mine.grant]}}
    api = make_api(grants, environ={"KEY": PLAIN})
    assert get(api, mine.url)["ok"]
    with pytest.raises(Denied) as caught:
        get(api, other.url)
    assert str(caught.value) == (
        f"the secret KEY may not be sent to {other.grant}; "
        f'add secrets = {{ KEY = ["{other.grant}"] }} under [tools.script.weather]'
    )
    assert other.requests == []


def test_the_whole_web_is_no_place_for_a_secret(make_api: MakeApi) -> None:
    api = make_api({"http": ["*"], "secrets": ["KEY"]}, environ={"KEY": PLAIN})
    with pytest.raises(Denied, match=r"the secret KEY may not be sent to evil\.example"):
        get(api, "https://evil.example")


def test_secrets_go_over_tls_except_to_local_addresses(serve: Serve, make_api: MakeApi) -> None:
    authority = trustme.CA()
    context, trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert("api.test").configure_cert(context)
    authority.configure_trust(trusting)
    plain, secure = serve({"/": lambda _: Answer()}), serve({"/": lambda _: Answer()}, tls=context)
    names = [f"api.test:{plain.port}", f"api.test:{secure.port}"]
    http = {"resolver": lambda *_: ["127.0.0.1"], "ssl_context": trusting}
    grants = {"http": [*names, plain.grant, secure.grant], "secrets": ["KEY"]}
    api = make_api(grants, environ={"KEY": PLAIN}, **http)
    assert get(api, f"https://api.test:{secure.port}")["ok"]
    with pytest.raises(Denied) as caught:
        get(api, f"http://api.test:{plain.port}")
    assert str(caught.value) == "the secret KEY is sent over https only, not to http://api.test"
    assert plain.requests == []


@pytest.mark.parametrize(
    ("filled", "place"),
    [
        (lambda key: {"params": {"key": key}}, "query"),
        (lambda key: {"json": {"a": [{"key": key}]}}, "body"),
        (lambda key: {"form": {"key": key}}, "body"),
    ],
)
def test_other_places_need_a_grant(
    serve: Serve, make_api: MakeApi, filled: Callable[[Any], dict[str, Any]], place: str
) -> None:
    server = serve({"/": lambda request: Answer(body=request.path.encode() + request.body)})
    api = api_for(make_api, server)
    with pytest.raises(Denied) as caught:
        api.call("http.post", [f"{server.url}/", filled(api.call("secret", ["KEY"]))])
    assert str(caught.value) == f"the secret KEY may not be used in the {place} of a request, only in: header"
    assert server.requests == []

    api = api_for(make_api, server, secrets={"KEY": {"hosts": [server.grant], "places": [place]}})
    answer = api.call("http.post", [f"{server.url}/", filled(api.call("secret", ["KEY"]))])
    assert PLAIN in repr(server.requests[0])
    assert PLAIN not in repr(answer)
    assert "[secret KEY]" in answer["body"]


def test_a_body_with_a_secret_does_not_follow_a_redirect(serve: Serve, make_api: MakeApi) -> None:
    other = serve({"/": lambda _: Answer()})
    server = serve({"/": lambda _: Answer.redirect(f"{other.url}/", 307)})
    api = api_for(make_api, server, http=[server.grant, other.grant], secrets={"KEY": {"places": ["body"]}})
    with pytest.raises(Denied, match=r"the server redirects a body with a secret to 127\.0\.0\.1"):
        api.call("http.post", [f"{server.url}/", {"json": api.call("secret", ["KEY"])}])
    assert other.requests == []


def test_handles_are_values_of_no_other_function(make_api: MakeApi) -> None:
    api = make_api({"secrets": ["KEY"], "write": ["out"]}, environ={"KEY": PLAIN})
    handle = api.call("secret", ["KEY"])
    for name in ("base64.encode", "url.encode", "crypto.sha256", "csv.parse", "log.info", "time.parse"):
        try:
            given = api.call(name, [handle])
        except ArgumentError:
            continue
        assert PLAIN not in str(given)


def test_a_secret_signs(api: HostApi) -> None:
    expected = hmac.new(PLAIN.encode(), b"message", hashlib.sha256).hexdigest()
    assert api.call("crypto.hmac_sha256", [api.call("secret", ["KEY"]), "message"]) == expected


def test_logs_hold_no_secret(api: HostApi, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "moonbox.script.weather"):
        api.call("log.warn", [f"the key is {PLAIN}", {"deep": [{PLAIN: base64.b64encode(PLAIN.encode()).decode()}]}])
        api.call("log.info", ["used", {"key": api.call("secret", ["KEY"])}])
    assert caplog.messages[0] == 'the key is [secret KEY] {"deep": [{"[secret KEY]": "[secret KEY]="}]}'
    assert PLAIN not in caplog.text


def test_files_that_hold_the_secret_are_redacted(make_api: MakeApi, tmp_path: Any) -> None:
    (tmp_path / "notes.txt").write_text(f"key={PLAIN}\n")
    api = make_api({"read": ["."], "secrets": ["KEY"]}, environ={"KEY": PLAIN})
    assert api.call("fs.read", ["notes.txt"]) == "key=[secret KEY]\n"


def test_redaction_cleans_what_a_run_gives_back(api: HostApi) -> None:
    value = {"a": [1, None, True, 2.5, PLAIN.encode(), {"b": PLAIN}]}
    assert api.redact(value) == {"a": [1, None, True, 2.5, b"[secret KEY]", {"b": "[secret KEY]"}]}
    untouched = {"a": ["x", {"y": b"z"}]}
    assert api.redact(untouched) is untouched


def test_redact_run_cleans_the_whole_record(api: HostApi, make_api: MakeApi) -> None:
    failed = CallError("x", f"no {PLAIN}", data={"k": PLAIN}, detail=f"Traceback {PLAIN}")
    run = Run(
        "1",
        "return 1",
        values=(PLAIN, {"a": [PLAIN.encode()]}),
        output=f"key: {PLAIN}\n",
        calls=(Call(1, "a", {"x": PLAIN}, packed=pack([PLAIN])), Call(2, "b", [], "error", error=failed)),
        error=ScriptError(
            "tool", f"no {PLAIN}", line=3, traceback=f"at {PLAIN}", data=[PLAIN], frames=(Frame(1, "f"),)
        ),
    )
    clean = api.redact_run(run)
    assert PLAIN in run.to_json()
    assert PLAIN not in clean.to_json()
    assert clean.values == ("[secret KEY]", {"a": [b"[secret KEY]"]})
    assert clean.error is not None
    assert (clean.error.line, clean.error.frames) == (3, (Frame(1, "f"),))
    assert clean.calls[1].error == CallError(
        "x", "no [secret KEY]", data={"k": "[secret KEY]"}, detail="Traceback [secret KEY]"
    )
    assert make_api().redact_run(run) == run


def test_no_repr_and_no_traceback_shows_a_secret(make_api: MakeApi) -> None:
    """Not even a traceback that shows the values of local variables."""
    api = make_api({"http": ["a.test", "b.test"], "secrets": {"KEY": ["a.test"]}}, environ={"KEY": PLAIN})
    handle = api.call("secret", ["KEY"])
    with pytest.raises(Denied) as caught:
        api.call("http.get", ["https://b.test/", {"headers": {"X": handle}}])
    lines = "".join(traceback.TracebackException.from_exception(caught.value, capture_locals=True).format())
    assert "SecretStore" in lines
    assert PLAIN not in lines


def test_a_secret_that_no_header_can_hold(serve: Serve, make_api: MakeApi) -> None:
    server = serve({"/": lambda _: Answer()})
    api = make_api({"http": [server.grant], "secrets": ["PEM"]}, environ={"PEM": "first line\nsecond line"})
    with pytest.raises(ArgumentError) as caught:
        api.call("http.get", [f"{server.url}/", {"headers": {"X": api.call("secret", ["PEM"])}}])
    assert str(caught.value) == "the value of the header X contains a line break or another control character"


def test_overlapping_secrets_leave_nothing() -> None:
    redact = SecretRedactor()
    redact.add("LONG", "abcdefghij")
    redact.add("PART", "fghijklmno")
    assert redact("x abcdefghijklmno y") == "x [secret LONG] y"
    redact.add("SHORT", "12345")
    assert redact("12345") == "12345"


def test_a_secret_of_zeros_leaves_numbers_alone() -> None:
    redact = SecretRedactor({"PIN": "000000"})
    assert redact([0, 0.5, 2**70, 1e300, "pin 000000"]) == [0, 0.5, 2**70, 1e300, "pin [secret PIN]"]
