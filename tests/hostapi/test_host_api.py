"""HostApi: which functions a script has, how strangers add some, and what surrounds each call."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from moonbox.errors import Denied, ToolError
from moonbox.scripts.hostapi.api import MODULES, HostApi
from moonbox.scripts.hostapi.functions import Host, HostFunction, Parameter
from moonbox.scripts.hostapi.grants import Grants
from tests.hostapi.conftest import refused

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    MakeApi = Callable[..., HostApi]

HARMLESS = {
    *(f"base64.{name}" for name in ("decode", "encode")),
    *(f"crypto.{name}" for name in ("hmac_sha256", "random_bytes", "sha256", "uuid")),
    *(f"csv.{name}" for name in ("encode", "parse")),
    *(f"log.{name}" for name in ("debug", "error", "info", "warn")),
    *(f"regex.{name}" for name in ("find_all", "match", "replace", "split")),
    *(f"time.{name}" for name in ("format", "now", "parse")),
    *(f"url.{name}" for name in ("build", "decode", "encode", "parse")),
    "sleep",
}
BY_GRANT = {
    "http": {f"http.{name}" for name in ("delete", "get", "patch", "post", "put", "request")},
    "read": {f"fs.{name}" for name in ("exists", "list", "read", "stat")},
    "write": {f"fs.{name}" for name in ("append", "mkdir", "remove", "write")},
    "env": {"env.get", "secret"},
    "secrets": {"secret"},
}


def test_without_grants_only_harmless_functions_are_there(make_api: MakeApi) -> None:
    api = make_api()
    assert set(api.functions) == HARMLESS
    assert set(api.absent) == set().union(*BY_GRANT.values())


@pytest.mark.parametrize(
    "grants", [{"http": ["a.b"]}, {"read": ["."]}, {"write": ["."]}, {"env": ["A"]}, {"secrets": ["A"]}]
)
def test_each_grant_brings_its_functions(make_api: MakeApi, grants: dict[str, Any]) -> None:
    api = make_api(grants)
    assert set(api.functions) - HARMLESS == BY_GRANT[next(iter(grants))]
    assert not set(api.functions) & set(api.absent)


def test_every_function_is_documented(make_api: MakeApi) -> None:
    api = make_api({"http": ["a.b"], "read": ["."], "write": ["."], "env": ["A"]})
    assert set(api.docs) == set(api.functions)
    for name, doc in api.docs.items():
        first, summary, *_ = doc.splitlines()
        assert first.startswith(f"{name}(")
        assert " -> " in first
        assert summary.endswith((".", "…"))
    assert api.docs["fs.write"].splitlines()[2:] == [
        '  path (string): such as "data/notes.txt", relative to the configuration file',
        "  data (string): text or binary",
    ]


def test_unknown_functions_are_named(make_api: MakeApi) -> None:
    error = refused(make_api(), "time.formt")
    assert (str(error), error.code) == ("unknown host function 'time.formt'; did you mean 'time.format'?", "not_found")


class Stranger:
    """A module as a stranger would write it."""

    def functions(self, host: Host) -> Sequence[HostFunction]:
        def greet(name: str, options: dict[str, Any]) -> str:
            return f"{options['word']} {name}, it is {host.clock():g}"

        def reach() -> str:
            return "reached"

        options = Parameter("options", "options", options=(Parameter("word", "string", default="hello"),))
        return [
            HostFunction("greet.now", "Greet someone.", greet, (Parameter("name", "string", required=True), options)),
            HostFunction("greet.web", "Reach out.", reach, needs=("http",)),
        ]


def test_a_stranger_adds_functions(make_api: MakeApi) -> None:
    api = make_api(modules=(*MODULES, Stranger()), clock=lambda: 5.0)
    assert api.call("greet.now", ["Ann", {"word": "hi"}]) == "hi Ann, it is 5"
    assert api.docs["greet.now"].startswith("greet.now(name, options)\nGreet someone.\n")
    denied = refused(api, "greet.web")
    line = 'add http = ["api.example.com"] under [tools.script.weather]'
    assert (type(denied), str(denied)) == (Denied, f"greet.web is not granted; {line}")
    assert make_api({"http": ["a.b"]}, modules=[Stranger()]).call("greet.web") == "reached"


def test_secrets_are_redacted_from_whatever_a_function_gives(make_api: MakeApi) -> None:
    class Leaky:
        def functions(self, host: Host) -> Sequence[HostFunction]:
            def give() -> Any:
                return {"a": ["top secret value"]}

            def fail() -> Any:
                raise ToolError("top secret value", data=["top secret value"], detail="top secret value")

            return [HostFunction("leak.give", "Give.", give), HostFunction("leak.fail", "Fail.", fail)]

    api = make_api({"secrets": ["KEY"]}, environ={"KEY": "top secret value"}, modules=[Leaky()])
    assert api.call("leak.give") == {"a": ["[secret KEY]"]}
    assert api.functions["leak.give"]() == {"a": ["[secret KEY]"]}
    with pytest.raises(ToolError) as caught:
        api.functions["leak.fail"]()
    error = caught.value
    hidden = "[secret KEY]"
    assert (str(error), error.message, error.data, error.detail) == (hidden, hidden, [hidden], hidden)


def test_closed_means_closed(make_api: MakeApi) -> None:
    api = make_api()
    with api:
        assert api.call("url.encode", ["x"]) == "x"
    error = refused(api, "url.encode", "x")
    assert (str(error), error.code) == ("the host is closing", "cancelled")


def test_the_environment_is_read_when_a_call_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    with HostApi(Grants(env=("MOONBOX_TEST",))) as api:
        monkeypatch.setenv("MOONBOX_TEST", "now")
        assert api.call("env.get", ["MOONBOX_TEST"]) == "now"


def test_heavy_libraries_load_on_first_use() -> None:
    code = (
        "import sys; from moonbox.scripts.hostapi.api import HostApi; "
        "from moonbox.scripts.hostapi.grants import Grants; api = HostApi(Grants(http=('a.b',)), name='x'); "
        "print([name for name in ('httpcore', 'ssl', 'h11', 're2', 'httpx') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_missing_package_is_named(make_api: MakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)
    monkeypatch.setitem(sys.modules, "httpcore", None)
    monkeypatch.delitem(sys.modules, "moonbox.net.connections", raising=False)
    api = make_api({"http": ["127.0.0.1:9"]})
    for name, args, package in (
        ("regex.match", ["a", "a"], "google-re2"),
        ("http.get", ["http://127.0.0.1:9/"], "httpcore"),
    ):
        error = refused(api, name, *args)
        assert error.code == "missing_package"
        assert f"needs the package '{package}'; install it with: pip install" in str(error)
