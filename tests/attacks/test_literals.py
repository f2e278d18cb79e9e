"""Secrets in scripts that are refused or never make their call: what stands beside a redacted name is not recorded."""

from __future__ import annotations

import random
from typing import Any

import pytest

from moonbox import Sandbox, tool
from moonbox.audit.records import Run
from moonbox.audit.redaction import Redactor
from tests.long import times

SECRET = "hunter-22"
STRINGS = {
    "lua": ('"{}"', "'{}'", "[[{}]]", "[==[a]]{}]==]", '"\\z\n  {}"', '"a\\"{}"', '"\\\n{}"'),
    "rhai": ('"{}"', "`{}`", '##"a"#{}"##', '"a\\"{}"', "`a${{1}}{}`", '"a\n{}"'),
    "python": ('"{}"', "'{}'", '"""a"\n{}"""', "f'{{1}}{}'", "rb'{}'", "'''{}'''", "f'{{x[\"a\"]}}{}'"),
}
VALUES = {
    "lua": (
        "{{{}}}", "({})", "{{a = {{b = {}}}}}", "x or {}", "'a' .. {}", "f({})", "f{}", "f{{x, {}}}", "not {}",
        "string.format('%s', {})", "function() if x then return {} end end", "--[[ a ]] {}", "-- a\n {}",
        "{{\n  x,\n  {},\n}}",
    ),
    "rhai": (
        "[{}]", "({})", "#{{a: #{{b: {}}}}}", "'a' + {}", "f({})", "if x {{ 1 }} else {{ {} }}",
        "/* a /* b */ */ {}", "// a\n {}",
        "|x| x + {}", "[\n  x,\n  {},\n]", "!{}", "switch x {{ 1 => {}, _ => 2 }}",
    ),
    "python": (
        "[{}]", "({})", "{{'a': {{'b': {}}}}}", "x or {}", "'a' + {}", "f({})", "'a' if x else {}",
        "(  # a\n  {})", "[\n  x,\n  {},\n]",
        "'a' {}", "\\\n {}", "{{{}}}", "(lambda: {})()", "(await f(x), {})",
    ),
}  # fmt: skip
PLACES = {
    "lua": (
        "tools.login{{password = {}}}", "local password = {}", "t.password = {}", "t['password'] = {}",
        "t[password] = {}",
        "tools.login{{user = 'a', ['password'] = {}, n = 1}}", "local user, password = 'a', {}",
        "if password == {} then end",
        "tools.login{{Pass_Word = {}", "function f() password = {} end", "x = 1 password={}", "a.password, b = {}, 1",
    ),
    "rhai": (
        "tools.login(#{{password: {}}});", "let password = {};", "t.password = {};", 't["password"] = {};',
        "if password == {} {{ f() }}",
        'let x = #{{user: 1, "password": {}}};', "tools.login(#{{password: {}", "fn f() {{ password = {}; }}",
        "const PASSWORD = {};",
    ),
    "python": (
        "tools.login(password={})", "password = {}", "x['password'] = {}", "y = {{'password': {}}}",
        "if password == {}:\n  f()",
        "password: str = {}", "user, password = 1, {}", "for password in {}:\n  f()", "tools.login(1, password={}",
        "a = password = {}",
    ),
}  # fmt: skip


@pytest.mark.parametrize("language", STRINGS)
def test_a_literal_beside_a_redacted_name_is_hidden_whatever_its_shape(language: str) -> None:
    redactor = Redactor(["password"])
    rng = random.Random(20261118)
    for value in VALUES[language]:
        for place in PLACES[language]:
            for string in STRINGS[language]:
                source = place.format(value.format(string.format(SECRET)))
                before, after = rng.choice(("", "f('it''s')\n", "x = 1\n")), rng.choice(("", "\nreturn 'kept'"))
                kept = redactor.redact(Run("a", before + source + after, language=language))
                assert SECRET not in kept.source, source
                if source.count("{") == source.count("}") and source.count("(") == source.count(")"):
                    assert ("kept" in kept.source) == bool(after), source


FRAGMENTS = (
    "password", "password", "=", ":", "==", "(", ")", "{", "}", "[", "]", "[[", "]]", "--", "#", "//", "/*", "*/",
    '"', "'", "`", "\\",
    '"""', "\n", " ", ",", ";", "function", "end", "if", "else", "in", "x", "12", "..", "f", '#"', '"#', "${", "[=[",
)  # fmt: skip


@pytest.mark.parametrize("language", STRINGS)
def test_any_text_is_read_to_its_end(language: str) -> None:
    """Without hidden names, any text comes out as it went in, and what follows a hidden one cannot bring it back."""
    rng = random.Random(20261119)
    for _ in range(times(2_000)):
        source = "".join(rng.choice(FRAGMENTS) for _ in range(rng.randrange(40)))
        assert Redactor(["nothing_here"]).redact(Run("a", source, language=language)).source == source
        kept = Redactor(["password"]).redact(Run("a", f'password = {{"{SECRET}"}};\n{source}', language=language))
        assert SECRET not in kept.source


@tool
def login(password: str) -> str:
    """Log in."""
    return password


SCRIPTS = {
    "lua": 'local a = 1\nreturn tools.login{password = {"hunter-22"}}',
    "rhai": 'let a = 1;\ntools.login(#{password: ["hunter-22"]})',
    "python": "a = 1\nlogin(password=['hunter-22'])",
}


@pytest.mark.parametrize("language", SCRIPTS)
@pytest.mark.parametrize("broken", ["", " )("])
def test_a_refused_script_is_recorded_without_the_password(language: str, broken: str) -> None:
    records: list[Any] = []

    class _Kept:
        def write(self, run: Run) -> None:
            records.append(run)

        def close(self) -> None:
            """Nothing to close."""

    with Sandbox([login], language=language, audit=_Kept(), redact=["password"]) as box:
        run = box.run(SCRIPTS[language] + broken)
    assert run.error is not None
    assert records
    assert all(SECRET not in record.to_json() for record in records)
