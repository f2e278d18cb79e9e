"""A generator of small Python programs that end: expressions of known types, and statements that use them.

Each program is the body of a function that appends to `out`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

HEAD = """
import math
from collections import Counter, defaultdict, deque
from datetime import date, timedelta


class Box:
    def __init__(self, items, get):
        self.items = items
        self.get = get
        self.count = 3

    def total(self):
        return sum(self.items)


def fail(n):
    return 10 // n


def nested(n):
    if n > 0:
        return nested(n - 1)
    return fail(n)
"""
WORDS = ("", "a", "Bc", "hello world", "x,y,,z", "ÄÖ", "  pad ", "12", "3.5", "tab\\tend", "aa")


class Programs:
    """Makes programs from a source of chance."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def program(self) -> str:
        """The lines of one program, without indentation."""
        statements = (self._shown, self._shown, self._sorted, self._attribute, self._try, self._unpacking, self._loop)
        more = (self._closure, self._deleted, self._collection, self._dates, self._formatted, self._method_value)
        return "\n".join(self._of(*statements, *more)() for _ in range(self._random.randint(1, 4)))

    def _of(self, *makers: Callable[[], str]) -> Callable[[], str]:
        return self._random.choice(makers)

    def _pick(self, *forms: str) -> str:
        return self._random.choice(forms)

    # Expressions

    def _int(self, depth: int = 2) -> str:
        plain = self._random.choice(("0", "1", "2", "-3", "7", "10", "255", str(2**63), str(-(10**25)), "True"))
        if depth == 0 or self._random.random() < 0.3:
            return plain
        a, b = self._int(depth - 1), self._int(depth - 1)
        xs, s = self._list(depth - 1), self._str(depth - 1)
        forms = (
            f"({a} + {b})",
            f"({a} - {b})",
            f"({a} * {b})",
            f"({a} // {b})",
            f"({a} % {b})",
            f"({a} & {b})",
            f"({a} ^ {b})",
            f"abs({a})",
            f"-{a}",
            f"~{a}",
            f"len({xs})",
            f"len({s})",
            f"sum({xs})",
            f"max({xs}, default={a})",
            f"min({a}, {b})",
            f"max({xs}, key=lambda v: -v, default={b})",
            f"({a} if {b} else 5)",
            f"({a} or {b})",
            f"({a} and {b})",
            f"({a} ** 3)",
            f"pow({a}, 2, 97)",
            f"divmod({a}, 7)[1]",
            f"int({s!s})",
            f"{xs}[0]",
            f"{xs}[-1]",
            f"{xs}.index({a})",
            f"{xs}.count({a})",
            f"{s}.find('a')",
            f"int({self._float(0)})",
            f"round({self._float(0)})",
            f"({a}).bit_length()",
            f"ord({s})",
            f"math.gcd({a}, {b})",
            f"({a} << 3)",
            f"({a} >> 2)",
        )
        return self._pick(*forms)

    def _float(self, depth: int = 1) -> str:
        plain = self._random.choice(
            ("0.5", "1e20", "-2.25", "3.0", "0.1", "1e-7", "math.pi", "math.inf", "123456789.125")
        )
        if depth == 0:
            return plain
        a, b = self._float(depth - 1), self._float(depth - 1)
        forms = (
            f"({a} + {b})",
            f"({a} * {b})",
            f"({a} / {b})",
            f"max(math.pi, {b})",
            f"min(math.inf, {b})",
            f"round({a}, 2)",
            f"abs({a})",
            f"float({self._str(0)})",
            f"({a} // {b})",
            f"({a} % {b})",
            f"math.floor({a})",
            f"math.sqrt({a})",
            f"math.fsum([{a}, {b}])",
            f"sum([{a}, {b}])",
        )
        return self._pick(*forms)

    def _str(self, depth: int = 1) -> str:
        plain = f"'{self._random.choice(WORDS)}'"
        if depth == 0 or self._random.random() < 0.3:
            return plain
        a, b, n = self._str(depth - 1), self._str(depth - 1), self._random.choice(("0", "1", "2", "-1"))
        forms = (
            f"({a} + {b})",
            f"({a} * 2)",
            f"{a}.upper()",
            f"{a}.title()",
            f"{a}.strip()",
            f"{a}[{n}:]",
            f"{a}[::-1]",
            f"{a}[{n}]",
            f"{a}.replace('a', {b})",
            f"{a}.center(9, '*')",
            f"{a}.zfill(5)",
            f"str({self._int(0)})",
            f"repr({a})",
            f"{a}.swapcase()",
            f"'-'.join([{a}, {b}])",
            f"{a}.partition(',')[2]",
            f"{a}.removeprefix('a')",
            f"{a}.casefold()",
            f"max({a}, {b})",
            f"{a}.rjust(6)",
            f"{a}.lstrip('x')",
            f"chr(97 + {n})",
            f"{a}.split(',')[0]",
            f"str({self._float(0)})",
            f"{a}.expandtabs(4)",
        )
        return self._pick(*forms)

    def _list(self, depth: int = 2) -> str:
        elements = ", ".join(self._int(0) for _ in range(self._random.randint(0, 4)))
        if depth <= 0 or self._random.random() < 0.3:
            return f"[{elements}]"
        xs, a = self._list(depth - 1), self._int(depth - 1)
        forms = (
            f"sorted({xs})",
            f"sorted({xs}, reverse=True)",
            f"{xs}[1:]",
            f"{xs}[::-1]",
            f"[v * 2 for v in {xs} if v != {a}]",
            "list(range(3))",
            f"({xs} + [{a}])",
            f"list(map(abs, {xs}))",
            f"list(filter(None, {xs}))",
            f"sorted(set({xs}))",
            f"[i + v for i, v in enumerate({xs})]",
            f"[u - v for u, v in zip({xs}, {xs}[1:])]",
            f"list(reversed({xs}))",
            f"[v for v in {xs} for _ in range(2)]",
            f"list(dict.fromkeys({xs}))",
            f"[*{xs}, {a}]",
            f"sorted({xs}, key=lambda v: (v % 3, v))",
            f"list({{v: 1 for v in {xs}}})",
            f"[next((v for v in {xs} if v > 1), -1)]",
            f"[any({xs}), all({xs})]",
        )
        return self._pick(*forms)

    def _dict(self) -> str:
        pairs = ", ".join(f"{self._str(0)}: {self._int(0)}" for _ in range(self._random.randint(0, 3)))
        d = f"{{{pairs}}}"
        key = self._str(0)
        forms = (
            d,
            f"dict(sorted({d}.items()))",
            f"{{v: k for k, v in {d}.items()}}",
            f"({d} | {{{key}: 1}})",
            f"{{**{d}, 'q': 2}}",
            f"dict(zip({self._list(0)}, 'abc'))",
            f"{d}.get({key})",
            f"{d}.get({key}, 9)",
            f"{d}.pop({key}, None)",
            f"list({d}.values())",
            f"max({d}, key={d}.get, default=0)",
            f"{d}[{key}]",
            f"({key} in {d})",
            f"sorted({d}, key=str.lower)",
        )
        return self._pick(*forms)

    def _any(self) -> str:
        return self._of(self._int, self._float, self._str, self._list, self._dict)()

    # Statements

    def _shown(self) -> str:
        return f"out.append({self._any()})"

    def _sorted(self) -> str:
        rows = ", ".join(f"({self._int(0)}, {self._str(0)})" for _ in range(self._random.randint(1, 5)))
        key = self._pick("lambda r: r[1]", "lambda r: (len(r[1]), -r[0])", "lambda r: r[0] % 2")
        return f"rows = [{rows}]\nrows.sort(key={key}, reverse={self._random.random() < 0.5})\nout.append(rows)"

    def _attribute(self) -> str:
        forms = (
            "sorted(b.items)",
            "max(b.count, 5)",
            "min(b.get, 4)",
            "list(map(b.get, [1])) if callable_ else b.get",
            "b.total()",
        )
        form = self._pick(*forms[:3], "sum(b.items)", "b.total()", "sorted([b.total, b.total], key=lambda f: f())[0]()")
        return f"b = Box({self._list(0)}, {self._int(0)})\nout.append({form})"

    def _method_value(self) -> str:
        xs = ", ".join(self._str(0) for _ in range(3))
        d = f"{{{self._str(0)}: 1, {self._str(0)}: 2}}"
        return self._pick(
            f"out.append(sorted([{xs}], key=str.lower))",
            f"out.append(list(map(str.upper, [{xs}])))",
            f"d = {d}\nf = d.get\nout.append([f({self._str(0)}), f('no', 3)])",
            f"xs = []\npush = xs.append\npush({self._int(1)})\nout.append(xs)",
            f"d = {d}\nout.append([sorted(d, key=d.get), max(d, key=d.get), min(d.values())])",
            f"join = '-'.join\nout.append(join([{xs}]))",
            f"out.append(list(map(str.upper, [{self._int(0)}])))",
        )

    def _unpacking(self) -> str:
        return self._pick(
            f"a, *b = {self._list()}\nout.append([a, b])",
            f"(a, b), c = {self._list(0)}, {self._int()}\nout.append([a, b, c])",
            f"*a, b = {self._str()}\nout.append([a, b])",
            f"x = y = {self._int()}\nx += 1\nout.append([x, y])",
            "def f(a, b=2, *c, d=4, **e):\n    return [a, b, c, d, e]\n"
            f"out.append(f(*{self._list(0)}, d={self._int(0)}, k=1))",
        )

    def _loop(self) -> str:
        end = self._pick("break", "continue", "pass")
        return (
            f"n = 0\nfor i, v in enumerate({self._list()}):\n    if v == {self._int(0)}:\n        {end}\n    n += i\n"
            f"else:\n    n -= 1\nwhile n > 5:\n    n //= 2\nout.append(n)"
        )

    def _closure(self) -> str:
        return (
            f"def counter(step):\n    n = {self._int(0)}\n    def more():\n        nonlocal n\n        n += step\n"
            "        return n\n    return more\n"
            f"c = counter({self._int(0)})\nout.append([c(), c()])"
        )

    def _deleted(self) -> str:
        return self._pick(
            f"xs = {self._list()}\ndel xs[{self._random.choice(('0', '-1', '1:', '::2', '5'))}]\nout.append(xs)",
            f"d = {{'a': 1, 'b': 2}}\ndel d[{self._str(0)}]\nout.append(d)",
            f"x = {self._int(0)}\ndel x\nout.append(1)\nx",
            f"q = deque({self._list()})\ndel q[0]\nout.append(list(q))",
            f"c = Counter('aab')\ndel c[{self._str(0)}]\nout.append(sorted(c.items()))",
        )

    def _collection(self) -> str:
        s = self._str()
        return self._pick(
            f"out.append(Counter({s}).most_common(2))",
            f"d = defaultdict(list)\nfor c in {s}:\n    d[c].append(1)\nout.append(dict(d))",
            f"q = deque({self._list()}, maxlen=3)\nq.append(1)\nq.appendleft(2)\nout.append(list(q))",
            f"out.append(dict(Counter({s}) + Counter('ab')))",
            f"out.append(sorted(set({s}) ^ set('abc')))",
            f"out.append(sorted(frozenset({s}) & set('ab')))",
            f"q = deque([1, 2])\nq.rotate({self._int(0)})\nout.append(list(q))",
        )

    def _dates(self) -> str:
        day = f"date({self._random.randint(1999, 2030)}, {self._random.randint(1, 13)}, {self._random.randint(1, 28)})"
        return self._pick(
            f"out.append(({day} + timedelta(days={self._random.randint(-400, 400)})).isoformat())",
            f"out.append(({day} - date(2000, 1, 1)).days)",
            f"out.append({day}.strftime('%Y/%m/%d'))",
            f"out.append({day}.weekday())",
            f"a = {day} - date(2001, 2, 3)\nout.append(max(a.days, 5))",
            f"out.append(timedelta(hours={self._random.randint(0, 99)}).total_seconds())",
        )

    def _formatted(self) -> str:
        n, x, s = self._int(1), self._float(), self._str()
        return self._pick(
            f"v = {x}\nout.append(f'{{v:.2f}}|{{v:>12.3e}}')",
            f"v = {n}\nout.append(f'{{v:,}} {{v:>8}} {{v:08d}} {{v!r}}')",
            f"v = {s}\nout.append(f'{{v:<6}}|{{v!r:^12}}')",
            f"out.append('%s-%5d-%.1f' % ({s}, {n}, {x}))",
            f"out.append('{{:>5}} {{}}'.format({n}, {s}))",
            f"v = {x}\nout.append(f'{{v:g}} {{v:.0%}}')",
            f"v = {n}\nout.append(f'{{v:x}} {{v:b}} {{v:+}}')",
        )

    def _try(self) -> str:
        body = self._random.choice(
            (f"v = {self._int()}", "v = fail(0)", "v = nested(2)", f"v = {self._str()}", "v = {}['k']", "v = [][1]")
        )
        types = (
            "KeyError",
            "ZeroDivisionError",
            "(IndexError, ValueError)",
            "Exception",
            "LookupError",
            "ArithmeticError",
            "TypeError",
        )
        lines = [f"try:\n    out.append('body')\n    {body}\n    out.append(v)"]
        handlers = self._random.randint(0, 2)
        for _ in range(handlers):
            done = self._random.choice(
                (
                    "out.append('caught')",
                    "raise",
                    "raise e",
                    "raise ValueError('own')",
                    "out.append(type(e).__name__)",
                    "1 // 0",
                )
            )
            lines.append(f"except {self._random.choice(types)} as e:\n    out.append('handler')\n    {done}")
        if handlers and self._random.random() < 0.4:
            lines.append(f"else:\n    out.append({self._int(1)})")
        if not handlers or self._random.random() < 0.4:
            lines.append("finally:\n    out.append('finally')")
        text = "\n".join(lines)
        if self._random.random() < 0.3:
            inner = text.replace("\n", "\n    ")
            text = f"try:\n    {inner}\nexcept {self._random.choice(types)}:\n    out.append('outer')"
        return text
