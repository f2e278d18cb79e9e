"""What a redactor hides, and where."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moonbox.audit.records import Call, CallError, Observation, Run
from moonbox.audit.redaction import Redactor
from moonbox.errors import Frame, ScriptError, UsageError
from moonbox.findings import Finding
from moonbox.values import pack
from tests.long import times

GONE = "[redacted]"


@pytest.mark.parametrize(
    ("field", "value", "kept"),
    [
        ("password", {"password": "x"}, {"password": GONE}),
        ("password", {"a": [{"b": {"PassWord": "x", "c": 1}}]}, {"a": [{"b": {"PassWord": GONE, "c": 1}}]}),
        (
            "api_key",
            {"apiKey": 1, "API-KEY": 2, "api key": 3, "key": 4},
            {"apiKey": GONE, "API-KEY": GONE, "api key": GONE, "key": 4},
        ),
        (
            "*_token",
            {"access_token": "x", "token": "y", "tokens": 3},
            {"access_token": GONE, "token": GONE, "tokens": 3},
        ),
        ("pin?", {"pin1": 1, "pin": 2}, {"pin1": GONE, "pin": 2}),
        ("password", {"password": {"old": "x", "new": ["y"]}}, {"password": GONE}),
        ("password", {"password": None}, {"password": None}),
        ("password", ["password", "x"], ["password", "x"]),
        ("user.name", {"user": {"name": "x"}, "name": "y"}, {"user": {"name": GONE}, "name": "y"}),
        ("user.name", {"user": [{"name": "x"}]}, {"user": [{"name": GONE}]}),
        ("user.name", {"user": {"inner": {"name": "x"}}}, {"user": {"inner": {"name": "x"}}}),
        ("login.pin", {"pin": 1, "deep": {"pin": 2}}, {"pin": GONE, "deep": {"pin": 2}}),
        ("*.pin", {"pin": 1, "deep": {"pin": 2}}, {"pin": GONE, "deep": {"pin": GONE}}),
        ("logout.pin", {"pin": 1}, {"pin": 1}),
        ("7", {7: "x", 8: "y"}, {7: GONE, 8: "y"}),
        ("password", '{"password": "x", "n": [1]}', '{"password": "[redacted]", "n": [1]}'),
        ("password", '[{"other": 1}]  ', '[{"other": 1}]  '),
        ("password", '{"password": broken', '{"password": [redacted]'),
    ],
)
def test_fields(field: str, value: Any, kept: Any) -> None:
    assert Redactor([field]).value(value, "api", "login") == kept


def test_a_run_is_searched_everywhere() -> None:
    secret = "hunter-22"
    run = Run(
        "a",
        f'tools.login{{password = "{secret}"}}',
        values=({"password": secret, "echo": f"<{secret}>"}, secret.encode() + b"\xff"),
        output=f"{secret}\n",
        calls=(
            Call(1, "login", {"password": secret}, packed=pack(json.dumps({"sent": secret}))),
            Call(
                2,
                "other",
                {secret: 1},
                "error",
                error=CallError(
                    f"bad_{secret}", f"got {secret}", data={"was": [secret]}, detail=f"Traceback: {secret}"
                ),
                approval_by=secret,
                approval_reason=secret,
                spent={"account": secret},
            ),
        ),
        error=ScriptError(
            "tool",
            f"got {secret}",
            hint=f"not {secret}",
            traceback=f"1 | {secret}",
            code=secret,
            tool=secret,
            data={"password": secret, "x": secret},
            frames=(Frame(1, secret, f"x = {secret}"),),
        ),
        notes=(Finding("note", f"no {secret}", 1, hint=f"not {secret}", tool=secret),),
        labels={"for": secret},
        observations=(Observation("time", 1.0),),
    )
    kept = Redactor(["password"]).redact(run)
    assert secret not in kept.to_json()
    assert kept.source == 'tools.login{password = "[redacted]"}'
    assert kept.values == ({"password": GONE, "echo": "<[redacted]>"}, b"[redacted]\xff")
    assert kept.calls[0].result == '{"sent": "[redacted]"}'
    assert kept.calls[1].arguments == {GONE: 1}
    assert kept.error is not None
    assert kept.error.message == "got [redacted]"
    assert secret in run.to_json(), "the run itself is as it was"
    assert run.redacted(Redactor(["password"])) == kept


def test_the_name_of_a_called_tool_stays_where_a_hidden_argument_repeats_it() -> None:
    run = Run("a", "", calls=(Call(1, "delete_all", {"password": "delete_all"}),))
    (call,) = Redactor(["password"]).redact(run).calls
    assert (call.tool, call.arguments) == ("delete_all", {"password": GONE})


def test_secrets_are_hidden_whatever_their_field() -> None:
    run = Run("a", "return 1", output="s3 s3cr3t", calls=(Call(1, "t", {"a": ["s3cr3t!", 12345]}),))
    kept = Redactor(secrets=["s3cr3t", "12345"], replacement="***").redact(run)
    assert (kept.output, kept.calls[0].arguments) == ("s3 ***", {"a": ["***!", "***"]})


def test_a_secret_is_found_in_its_escaped_forms_and_inside_a_longer_one() -> None:
    calls = (Call(1, "t", {"pw": 'pa"ssé', "PW": 'pa"ssé-long'}),)
    run = Run("a", 'x = "pa\\"ss\\u00e9"', output='pa"ssé and pa"ssé-long', calls=calls)
    kept = Redactor(["pw"]).redact(run)
    assert (kept.source, kept.output) == ('x = "[redacted]"', "[redacted] and [redacted]")


def test_short_values_are_hidden_in_their_field_alone() -> None:
    run = Run("a", "for i = 1, 10 do end", calls=(Call(1, "t", {"pin": 10, "flag": True, "n": 10}),))
    kept = Redactor(["pin", "flag"]).redact(run)
    assert kept.source == run.source
    assert kept.calls[0].arguments == {"pin": GONE, "flag": GONE, "n": 10}


LITERALS = {
    # in a script: literals alone
    'tools.pay{cvv = "123", n = 123}': 'tools.pay{cvv = "[redacted]", n = 123}',
    "tools.pay{cvv=123}": "tools.pay{cvv=[redacted]}",
    "card.CVV = -1.5e3 return 1": "card.CVV = -[redacted] return 1",
    "t['cvv'] = '1'": "t['cvv'] = '[redacted]'",
    't["cvv"]=[==[1]2]==] x = [[1]]': 't["cvv"]=[==[[redacted]]==] x = [[1]]',
    "let card = #{cvv: `1`, ok: `1`};": "let card = #{cvv: `[redacted]`, ok: `1`};",
    'json.decode("{\\"cvv\\": 12}")': 'json.decode("{\\"cvv\\": [redacted]}")',
    "if cvv == '1' or cvv ~= 2 then end": "if cvv == '[redacted]' or cvv ~= [redacted] then end",
    'note = "cvv=12"': 'note = "cvv=[redacted]"',
    "cvv = code  cvv = read(x, 12)  cvv:lower()": "cvv = code  cvv = read(x, [redacted])  cvv:lower()",
    'cvv = get{"a", {"b"}} x = "c"': 'cvv = get{"[redacted]", {"[redacted]"}} x = "c"',
    'a, cvv, b = "a", "b", "c" d = "d"': 'a, cvv, b = "[redacted]", "[redacted]", "[redacted]" d = "d"',
    'f(a, cvv == "1", "2")': 'f(a, cvv == "[redacted]", "2")',
    'cvv:gsub("a", "b")  -- the cvv: ab': 'cvv:gsub("a", "b")  -- the cvv: [redacted]',
    'cvv = ""  x = cvv .. 12': 'cvv = ""  x = cvv .. 12',
}
TEXTS = {
    # in everything else: words too
    "cvv=123&n=123": "cvv=[redacted]&n=123",
    "the Cvv: 12a, zip: 12a": "the Cvv: [redacted], zip: 12a",
    '{"cvv":"1","n":"1"': '{"cvv":"[redacted]","n":"1"',
    "cvv\t123\nzip\t123": "cvv\t[redacted]\nzip\t123",
    '<<"cvv" => "1">>': '<<"cvv" => "[redacted]">>',
    "api key: ab  API-Key = cd  key: ef": "api key: [redacted]  API-Key = [redacted]  key: ef",
    "api_key: Bearer ab": "api_key: Bearer [redacted]",
    'cvv="12': 'cvv="[redacted]',
}


@pytest.mark.parametrize("text", [*LITERALS, *TEXTS])
def test_what_follows_the_name_of_a_field_is_hidden_however_short_it_is(text: str) -> None:
    redactor = Redactor(["cvv", "api_key"])
    if text in LITERALS:
        assert redactor.redact(Run("a", text)).source == LITERALS[text]
        return
    error = ScriptError("runtime", text, traceback=text, hint=text)
    call = Call(1, "t", {"note": text}, "error", error=CallError("bad", text, detail=text))
    run = redactor.redact(Run("a", "x", output=text, values=([text],), calls=(call,), error=error))
    assert (run.output, run.values, run.calls[0].arguments) == (TEXTS[text], ([TEXTS[text]],), {"note": TEXTS[text]})
    assert run.error is not None and run.calls[0].error is not None
    hidden = (run.error.message, run.error.traceback, run.error.hint, run.calls[0].error.detail)
    assert hidden == (TEXTS[text],) * 4


def test_a_field_of_one_tool_is_hidden_in_texts_of_runs_that_call_the_tool() -> None:
    redactor = Redactor(["login.pin"])
    source = "tools.login{pin = 12}"
    assert redactor.redact(Run("a", source)).source == source
    kept = redactor.redact(Run("a", source, output="pin: 12", calls=(Call(1, "login", {"pin": 12}),)))
    assert (kept.source, kept.output) == ("tools.login{pin = [redacted]}", "pin: [redacted]")


@pytest.mark.parametrize(
    "piece",
    [
        "cvv=",
        "cvv=[[",
        'cvv="',
        "cvv ",
        "=",
        " ",
        "cvv=[=",
        "cvv='\\",
        "a",
        "cvv: x ",
        "cvv={",
        'cvv=("',
        "{",
        "cvv,",
        "a,",
        ")",
        "x[",
        "--[=[",
        "/*",
        '#"',
        "cvv=function()",
        "cvv=if ",
    ],
)
def test_texts_that_are_made_to_be_slow_are_not(piece: str) -> None:
    """A search that took the square of the length would run into the time limit of a test."""
    text = piece * (times(400_000) // len(piece))
    kept = Redactor(["cvv"]).redact(Run("a", "", output=text))
    for language in ("lua", "rhai", "python"):
        Redactor(["cvv"]).redact(Run("a", text[: times(100_000)], language=language))
    assert ("[redacted]" in kept.output) == (piece.startswith("cvv") and piece not in ("cvv ", "cvv,"))


def test_thousands_of_hidden_values_are_still_found() -> None:
    """One search for each of them in each text would run into the time limit of a test."""
    rows = [{"id": n, "token": f"tok-{n:06}" + "x" * (n % 30)} for n in range(times(20_000))]
    run = Run(
        "a",
        "x",
        output="tok-000000, <tok-000001x> and tok-003000.tok-003000",
        calls=(Call(1, "t", {}, packed=pack(rows)),),
    )
    kept = Redactor(["token"]).redact(run)
    assert kept.output == "[redacted], <[redacted]> and [redacted].[redacted]"
    assert "tok-" not in kept.to_json()


def test_secrets_that_are_made_to_be_slow_end_in_hiding_all() -> None:
    bombs = ["a" * length + "b" for length in range(4, 1500)]
    run = Run("a", "return 1", output="a" * 60_000, calls=(Call(1, "t", {"pw": bombs}),))
    kept = Redactor(["pw"]).redact(run)
    assert (kept.source, kept.output) == ("return 1", GONE)


def test_nothing_named_changes_nothing() -> None:
    run = Run("a", "return 1", values=([1, {"a": "b"}],), calls=(Call(1, "t", {"password": "x"}),))
    assert Redactor().redact(run) == run


def test_wrong_use_is_refused() -> None:
    with pytest.raises(
        UsageError, match=r"^Redactor fields must be a list of strings, not one string: \['password'\]$"
    ):
        Redactor("password")
    with pytest.raises(UsageError, match=r"^Redactor secrets must be non-empty strings, not ''$"):
        Redactor(secrets=[""])


nested = st.recursive(st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))


@given(nested, st.text(min_size=4), st.booleans())
def test_what_a_named_field_held_is_nowhere_in_the_record(around: Any, secret: str, many: bool) -> None:
    others = [f"{number:05}-other" for number in range(100)] if many else []
    calls = (Call(1, "t", {"pw": [secret, *others], "x": [around]}),)
    run = Run("a", secret, values=([around, secret],), output=f"<{secret}>", calls=calls)
    kept = Redactor(["pw"], replacement="").redact(run)
    assert not any(secret in text for text in _texts(kept.to_dict()))


def _texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for key, item in value.items() for text in (key, *_texts(item)) if key not in _RECORD]
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)]
    return [value] if isinstance(value, str) else []


_RECORD = {*Run("", "").to_dict(), *Call(1, "", {}).to_dict()} - {"source", "values", "output", "calls", "arguments"}
