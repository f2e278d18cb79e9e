"""Scripts that try to get out of their language, or to hit what Lua cannot do."""

from __future__ import annotations

import json

import pytest

from tests.long import LONG, times

from .fuzz import Fuzzer, Trouble, inputs, own_scripts
from .machine import CASES, Machine, NoScript

_LUA_WORDS = (
    "and break do else elseif end false for function goto if in local nil not or repeat return then true until while"
)
_RHAI_WORDS = {"break", "do", "else", "false", "for", "if", "in", "return", "true", "while", "until", "goto", "nil"}
_OUR_NAMES = "R S K U E F C V c d this_ X1 t1_1 v1 S1 over deep pcall copy _ENV _G self print_ string table"


@pytest.fixture(scope="module")
def machine() -> Machine:
    return Machine({"max_operations": 10_000_000, "max_array": 100_000, "max_string": 1_000_000})


@pytest.mark.parametrize("name", [*sorted(set(_LUA_WORDS.split()) - _RHAI_WORDS), *_OUR_NAMES.split()])
def test_words_of_lua_and_of_ours_are_ordinary_names(machine: Machine, name: str) -> None:
    machine.state = machine.runtime.new_state()
    script = f"""
        fn {name}({name}) {{ let f = || {name} + 1; f.call() + {name} }}
        let {name} = 1;
        for {name} in 5..6 {{ {name}; }}
        let m = #{{{name}: {name}({name})}};
        m.{name} += 1;
        try {{ throw 7; }} catch ({name}) {{ m.{name} += {name}; }}
        [{name}, m.{name}]
    """
    assert machine.run(script).display == "[1, 11]"
    assert machine.run(f"{name}({name})").raw == 3


@pytest.mark.parametrize("text", CASES["payloads"])
def test_text_stays_text(machine: Machine, text: str) -> None:
    quoted = json.dumps(text).replace("\\u001b", "\\x1b").replace("\\u0000", "\\x00")
    assert machine.run(quoted).raw == text
    assert machine.exported(machine.run(f"#{{{quoted}: {quoted}}}")) == {text: text}
    assert machine.exported(machine.run(f"let m = #{{}}; m[{quoted}] = 1; m")) == {text: 1}
    assert machine.run(f"switch {quoted} {{ {quoted} => 1, _ => 2 }}").raw == 1
    assert machine.run(f"`<${{{quoted}}}>`").raw == f"<{text}>"
    assert machine.run(f"throw {quoted};").text.startswith(f"Runtime error: {text}")
    if "`" not in text and "$" not in text:
        assert machine.run(f"`-{text}`").raw == "-" + text.replace("\r\n", "\n")


@pytest.mark.parametrize("name", ["__index", "__newindex", "__gc", "__metatable", "__eq", "__name", "n", "true", "len"])
def test_names_of_metamethods_are_keys_like_any_other(machine: Machine, name: str) -> None:
    assert machine.run(f'let m = #{{"{name}": 1}}; m["{name}"] += 1; m["{name}"]').raw == 2
    assert machine.run(f'let m = #{{}}; m["{name}"] == ()').raw is True
    assert machine.run(f'let m = #{{"{name}": 1}}; let c = m; c == m && c.keys() == ["{name}"]').raw is True


@pytest.mark.parametrize("base", ['"abc"', "5", "1.5", "true", "'c'", "()", "[1]", "#{}", "0..3", "|| 1", "blob(1)"])
@pytest.mark.parametrize("name", ["__index", "upper", "rep", "format", "dump", "byte", "pack", "gsub"])
def test_nothing_of_lua_shows_through_values(machine: Machine, base: str, name: str) -> None:
    got = machine.run(f"let v = {base}; v.{name}")
    if base == "#{}":
        assert got.display == ""
    else:
        assert got.error in ("ErrorDotExpr", "ErrorPropertyNotFound", "ErrorFunctionNotFound"), got.text
    assert machine.run(f'let v = {base}; v["{name}"]').kind in ("value", "runtime")
    assert machine.run(f"let v = {base}; v.{name}()").error == "ErrorFunctionNotFound"


def test_many_locals_arguments_and_closures(machine: Machine) -> None:
    names = [f"a{n}" for n in range(300)]
    body = "".join(f"let {name} = {at};" for at, name in enumerate(names))
    total = sum(range(300))
    adding = "".join(f"sum += {name};" for name in names)
    assert machine.run(f"fn f() {{ {body} let sum = 0; {adding} sum }} f()").raw == total
    assert machine.run(f"{body} let sum = 0; {adding} sum").raw == total
    params = ",".join(names[:50])
    adds = "+".join(f"({'+'.join(names[at : at + 10])})" for at in range(0, 50, 10))
    assert machine.run(f"fn many({params}) {{ {adds} }} many({','.join(map(str, range(50)))})").raw == sum(range(50))
    closures = "".join(f"let f{n} = |x| x + a{n};" for n in range(100))
    assert machine.run(f"{body} {closures} f99.call(1)").raw == 100


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("fn f(" + ",".join(f"a{n}" for n in range(51)) + ") {}", "Too many parameters: a function takes at most 50"),
        ("f(" + "1," * 51 + ")", "Too many arguments: a function takes at most 50"),
        ("a" + "::a" * 20, "Module path is too long"),
        ("let x = 1; " + " + ".join(["x"] * 80), "Expression exceeds maximum complexity"),
    ],
)
def test_our_own_limits_are_told(machine: Machine, script: str, message: str) -> None:
    with pytest.raises(NoScript) as caught:
        machine.compile(script)
    assert caught.value.message == message
    assert caught.value.line == 1


@pytest.mark.parametrize(
    "piece", ["(", "[", "{", "#{a:", "!", "- ", "if true {", "`${", "x.", "f(", "|| ", "1 + ", "{ let x = "]
)
def test_nesting_without_end(machine: Machine, piece: str) -> None:
    with pytest.raises(NoScript):
        machine.compile(piece * 5_000)


_NESTED = (
    *(
        "if x == 1 { @ } else { 1 }",
        "if x == 2 { 1 } else { @ }",
        "{ @ }",
        "loop { @; break; }",
        "for i in 0..2 { @; }",
    ),
    *("try { @; } catch (e) { 1 }", "try { throw 1; } catch (e) { @; }", "switch x { 1 => { @ }, _ => 2 }", "(@)"),
    *("1 + @", "x == 1 && (@) == 1", "() ?? @", "[@]", "#{a: @}", "f(@)", "`a${@}`", "(|| @).call()", "[1].map(|v| @)"),
)


@pytest.mark.parametrize("outer", _NESTED)
def test_as_deep_as_the_parser_lets_it_lua_takes_it(machine: Machine, outer: str) -> None:
    for inner in _NESTED if LONG else _NESTED[_NESTED.index(outer) % 4 :: 4]:
        script, deepest = "1", None
        for level in range(70):
            script = (outer if level % 2 else inner).replace("@", script)
            try:
                machine.compile(f"fn g(x) {{ {script} }} g(1)")
            except NoScript:
                break
            deepest = script
        assert deepest is not None
        outcome = machine.run(f"fn g(x) {{ {deepest} }} g(1)")
        assert outcome.kind in ("value", "runtime", "limit"), outcome.text


@pytest.mark.parametrize("script", CASES["growing"])
def test_growth_meets_a_limit(script: str) -> None:
    limits = {"max_operations": 1_000_000, "max_array": 10_000, "max_string": 10_000, "max_map": 10_000}
    outcome = Machine(limits).run(f"try {{ {script} }} catch {{ }}" if not script.startswith("fn") else script)
    assert outcome.kind == "limit"


@pytest.mark.parametrize("script", CASES["long_searches"])
@pytest.mark.timeout(300)  # the square of these texts would take hours
def test_no_search_takes_the_square_of_its_text(machine: Machine, script: str) -> None:
    assert machine.run(script).raw is False


@pytest.mark.parametrize(("script", "debug"), CASES["changed_by_callbacks"])
def test_callbacks_that_change_what_is_gone_through(machine: Machine, script: str, debug: str) -> None:
    assert machine.run(script).debug == debug


@pytest.mark.parametrize(
    "name", ["eval", "import", "load", "require", "dofile", "os", "io", "debug_", "package", "sleep", "exec"]
)
def test_nothing_of_the_host_is_there(machine: Machine, name: str) -> None:
    call = f'{name} "x" as y;' if name == "import" else f'{name}("x")'
    try:
        outcome = machine.run(call)
    except NoScript:
        return
    assert outcome.kind == "runtime"


@pytest.mark.parametrize("seed", range(times(4)))
def test_twisted_scripts_end_in_ways_we_know(seed: int) -> None:
    fuzzer, source = Fuzzer(), inputs(own_scripts(), seed)
    for _ in range(750):
        script = next(source)
        try:
            fuzzer.feed(script)
        except Trouble as trouble:
            pytest.fail(f"{trouble}\n{script}")
    assert {"value", "runtime", "syntax"} <= fuzzer.outcomes.keys()
    assert sum(fuzzer.outcomes.values()) == 750
