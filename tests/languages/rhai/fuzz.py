"""Fuzzing: scripts cut, joined and twisted at random must end in a value or in an error that we know."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import TYPE_CHECKING

from tests.languages.rhai.machine import Machine, NoScript, ToolFailed

if TYPE_CHECKING:
    from collections.abc import Iterator

LIMITS = {"max_operations": 3_000, "max_string": 4_000, "max_array": 500, "max_map": 500, "max_depth": 30}
_KNOWN = frozenset(("value", "runtime", "limit", "tool", "stopped"))
_FRESH_EVERY = 200
_SCRIPTS = Path(__file__).parents[2] / "scripts" / "rhai"
_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|`[^`]*`|\w+|\s+|[-+*/<>=!&|.?:]{1,3}|.', re.DOTALL)
_PIECES = r"""
( ) [ ] { } #{ ; , . ?. ?[ :: .. ..= => | || && ?? ! + - * / % ** << >> == != < >= = += -= <<= in !in ` " '
let const fn if else switch while loop for do until return throw try catch break continue private true false () _ x this
end nil local 0 1 -1 9223372036854775807 -9223372036854775808 1.5 1e308 0x_f 'a' "b" [1,2] #{a:1} `${x}` 0..3 |x|x
||this push(1) len() call() x.y a[0] fail(1) echo(x) parallel([||1]) // /* */ #{__index:1} \u{1F600} é $ @ ~ \ ]] -- #
"""
_VALUES = """
0 1 -1 2 3.5 "" "abc" 'z' true () [] #{} [1,[2],'c'] #{a:#{b:[1]}} 0..4 |x|x x y this blob(3) timestamp() Fn("len")
9223372036854775807 -9223372036854775808 1e308
"""
_AROUND = (
    "fn f(a, b) {{ {0} }} f(1, [2])",
    "let g = |a| {{ {0} }}; g.call(#{{}})",
    "try {{ {0} }} catch (e) {{ e }}",
    "for i in 0..3 {{ {0} }}",
    "let x = {{ {0} }}; x",
    "fn m() {{ {0} }} let t = #{{a: [1]}}; t.m(); t",
    "parallel([|| {{ {0} }}, || {{ {0} }}])",
    "if true {{ {0} }} else {{ {0} }}",
    "switch 1 {{ 1 => {{ {0} }}, _ => 2 }}",
    "[1, 2].map(|v| {{ {0} }})",
    "`${{ {0} }}`",
)


class Trouble(Exception):
    """Something that must not happen."""


def own_scripts() -> list[str]:
    return [path.read_text(encoding="utf-8") for path in sorted(_SCRIPTS.glob("*.rhai"))]


class Chance(random.Random):
    """Random choices, and the pieces to choose from."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.pieces, self.values = [*_PIECES.split(), " ", "\n", "\0"], _VALUES.split()


def inputs(scripts: list[str], seed: int) -> Iterator[str]:
    """Scripts twisted at random, without end."""
    chance = Chance(seed)
    pieces = [_TOKEN.findall(script) for script in scripts if len(script) < 4_000]
    while True:
        yield _twisted(chance, pieces)


def _twisted(chance: Chance, scripts: list[list[str]]) -> str:
    tokens = list(chance.choice(scripts))
    way = chance.randrange(4)
    if way == 0:
        _break_up(chance, tokens, scripts)
    else:
        _exchange_values(chance, tokens, chance.choice(scripts))
    script = "".join(tokens)
    while way > 1 and chance.randrange(3):
        script = chance.choice(_AROUND).format(script)
    return script


def _exchange_values(chance: Chance, tokens: list[str], other: list[str]) -> None:
    """Put values and names in the place of others, which mostly leaves the syntax whole."""
    names = [token for token in other + tokens if token[:1].isalpha() or token[:1] in "0123456789"]
    places = [at for at, token in enumerate(tokens) if token[:1].isalnum() or token[:1] in '"`']
    for at in chance.sample(places, min(len(places), chance.choice((0, 1, 2, 4)))):
        tokens[at] = chance.choice(names) if names and chance.randrange(2) else chance.choice(chance.values)


def _break_up(chance: Chance, tokens: list[str], scripts: list[list[str]]) -> None:
    """Delete, insert and repeat tokens."""
    for _ in range(chance.choice((1, 1, 1, 2, 3, 6))):
        at = chance.randrange(len(tokens) + 1)
        other = chance.choice(scripts)
        match chance.randrange(9):
            case 0:
                del tokens[at : at + chance.choice((1, 1, 2, 5))]
            case 1 | 2:
                tokens.insert(at, chance.choice(chance.pieces))
            case 3 | 4:
                tokens[at : at + 1] = [chance.choice(chance.pieces)]
            case 5:
                start = chance.randrange(len(other) + 1)
                tokens[at:at] = other[start : start + chance.choice((1, 3, 10, 40))]
            case 6:
                to = chance.randrange(len(tokens) + 1)
                tokens[at:at] = tokens[min(at, to) : max(at, to)][:60]
            case 7:
                tokens[at : at + 1] = [chance.choice(other)] if other else []
            case 8:
                tokens[at:at] = [chance.choice(chance.pieces)] * chance.choice((2, 10, 80))


class Fuzzer:
    """Machines that take inputs, each in a few hundred of them."""

    def __init__(self) -> None:
        self.outcomes: dict[str, int] = {}
        self._used = _FRESH_EVERY

    def feed(self, script: str) -> None:
        """Run one input; raises Trouble."""
        if self._used >= _FRESH_EVERY:
            self._machine, self._used = Machine(LIMITS, {"echo": _echo, "fail": _fail}), 0
        self._used += 1
        try:
            outcome = self._machine.run(script)
        except NoScript as error:
            kind = "syntax"
            if (error.line or 0) < 0 or (error.position or 0) < 0:
                raise Trouble(f"position {error.line}:{error.position}") from error
        except Exception as error:
            self._used = _FRESH_EVERY
            raise Trouble(f"{type(error).__name__}: {error}") from error
        else:
            kind = outcome.kind
            if kind not in _KNOWN or (kind == "stopped" and "not enough memory" not in outcome.text):
                raise Trouble(f"{kind}: {outcome.text}")
        self.outcomes[kind] = self.outcomes.get(kind, 0) + 1


def _echo(args: object) -> object:
    return args


def _fail(_args: object) -> object:
    raise ToolFailed("no")
