"""Families of inputs: each grows from random pieces to any size, in a way that costs too much somewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

__all__ = ["lua", "text", "value"]

_MARKUP = "a x1 password tools. é , ; \" ' \\ = == ( ) [ ] { } < > </ <b> <!-- --> &amp; & % %20 .. / // :// : @ # ``` "
_OTHERS = "0 1 -1 99999999999999999999 1e5 null true secret-1234 http $ ^ a* (a+)+ .* [^a] \\1 ---"
_PIECES = (*_MARKUP.split(), *_OTHERS.split(), "\x00", "\ud800", " ", "\n", "\t", "# ", "* ", "\r\n")
_MARKS = "x y.z f( ) { } [ ] = == != += .. ... , ; : \" ' [[ ]] -- --[[ # => ? && || ! // /* 0x 1e % ~= ::a:: pcall"
_WORDS = "local function end if then else elseif while do repeat until return not and or nil const let goto break null"
_LUA = (*_MARKS.split(), *(f"{word} " for word in _WORDS.split()), "\n", "for i = 1, 2 do ", "tools.ech")


def text(random: Random, pieces: tuple[str, ...] = _PIECES) -> Callable[[int], str]:
    """A text that grows."""
    unit, other = ("".join(random.choices(pieces, k=random.randint(1, 5))) for _ in range(2))
    ways: list[Callable[[int], str]] = [
        lambda size: unit * (size // len(unit) + 1),
        lambda size: "".join(f"{unit}{number}" for number in range(size // (len(unit) + 4) + 1)),
        lambda size: unit * (size // 2 // len(unit) + 1) + other * (size // 2 // len(other) + 1),
        lambda size: (unit + other) * (size // len(unit + other) + 1),
        lambda size: other + unit * (size // len(unit) + 1) + other,
        lambda size: ",".join(f"c{number}" for number in range(size // 8)) + "\n" + (unit + "\n") * (size // 8),
        lambda size: "\n".join(unit * (number % 7) for number in range(size // (3 * len(unit) + 1) + 1)),
        lambda size: "".join(random_text[number % len(random_text)] for number in range(size // 2)),
    ]
    random_text = random.choices(pieces, k=97)
    return random.choice(ways)


def lua(random: Random) -> Callable[[int], str]:
    """A script that grows, or what a model may take for one."""
    return text(random, _LUA)


def value(random: Random) -> Callable[[int], Any]:
    """A value, as a script passes it, that grows."""
    leaves: list[Any] = [1, -1.5, True, None, "a", "secret-1234", b"\xff", "{", '{"password": "secret-1234"}', [], {}]
    leaf = random.choice(leaves)
    name = random.choice(("password", "a", "access_token", "id", "7"))
    grown = text(random)
    ways: list[Callable[[int], Any]] = [
        lambda size: [leaf] * (size // 8),
        lambda size: {f"{name}{number}": leaf for number in range(size // 16)},
        lambda size: [{name: leaf, "n": number} for number in range(size // 24)],
        lambda size: [{name: f"secret-{number:05}", "x": [leaf]} for number in range(size // 32)],
        lambda size: {name: grown(size)},
        lambda size: [grown(40)] * (size // 48),
        lambda size: dict.fromkeys(range(size // 12), leaf),
        lambda size: {name: [f"{number:06}" for number in range(size // 9)], "text": grown(size // 3)},
        lambda size: {grown(size): leaf},
        lambda size: [[[leaf] * 3] * 3] * (size // 60),
    ]
    return random.choice(ways)
