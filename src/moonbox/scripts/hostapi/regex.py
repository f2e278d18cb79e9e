"""Functions regex.match, .find_all, .replace and .split, on RE2: time grows with the text, never explodes."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from moonbox.errors import MissingExtra, ToolError
from moonbox.scripts.hostapi.functions import Host, HostFunction, Parameter, Wrong, options
from moonbox.scripts.hostapi.grants import excerpt
from moonbox.values import text_or_bytes

_MAX_COMPILED = 2 * 1024 * 1024
_KEPT = 16
_GROUP = re.compile(rb"\$(?:(\$)|(\d{1,2})|\{(\w+)\})", re.ASCII)
_MIDDLE = frozenset(bytes([byte]) for byte in range(0x80, 0xC0))
_FLAGS = (
    Parameter("ignore_case", "boolean", "letters match in either case", default=False),
    Parameter("multiline", "boolean", "^ and $ match at every line", default=False),
    Parameter("dot_all", "boolean", ". matches line breaks too", default=False),
)
_LETTERS = {"ignore_case": "i", "multiline": "m", "dot_all": "s"}
_SYNTAX = "RE2 syntax: as in most languages, without look-around and backreferences"
_PATTERN = Parameter("pattern", "data", _SYNTAX, required=True, most=10_000)
_GROUPS = "$1 or ${name} stand for a group, $$ for a dollar sign"
_REPLACEMENT = Parameter("replacement", "data", _GROUPS, required=True, most=100_000)
_LIMIT = Parameter("limit", "integer", "stop after this many", least=1)
_MATCH = "{text, start, stop, groups, names}"


def functions(host: Host) -> Sequence[HostFunction]:
    engine = _Engine(host)
    flags = options(*_FLAGS)
    limited = options(*_FLAGS, _LIMIT)
    searched = (_PATTERN, Parameter("text", "data", required=True, most=host.limits.max_text))
    first = (
        "The first match anywhere in the text (write ^ to begin at its start). start and stop are positions in "
        "bytes as string.sub takes them; groups is an array, names a table of the named ones."
    )
    every, replaced = "All matches, from left to right.", "The text with its matches replaced."
    pieces = "The pieces of the text between matches."
    return [
        HostFunction("regex.match", first, engine.match, (*searched, flags), f"{_MATCH} or null"),
        HostFunction("regex.find_all", every, engine.find_all, (*searched, limited), f"array of {_MATCH}"),
        HostFunction("regex.replace", replaced, engine.replace, (*searched, _REPLACEMENT, limited), "string"),
        HostFunction("regex.split", pieces, engine.split, (*searched, limited), "array of strings"),
    ]


class _Engine:
    def __init__(self, host: Host) -> None:
        self._limits, self._timer = host.limits, host.timer
        self._compiled = functools.lru_cache(_KEPT)(_compiled)

    def match(self, pattern: bytes, text: bytes, options: dict[str, Any]) -> dict[str, Any] | None:
        matches = self.find_all(pattern, text, {**options, "limit": 1})
        return matches[0] if matches else None

    def find_all(self, pattern: bytes, text: bytes, options: dict[str, Any]) -> list[dict[str, Any]]:
        """Groups may overlap, so together they can be far larger than the text: measured before they are copied."""
        described: list[dict[str, Any]] = []
        size = cells = 0
        for match in self._matches(pattern, text, options):
            spans = [match.span(group) for group in range(match.re.groups + 1)]
            size += 2 * sum(end - start for start, end in spans)
            cells += len(spans)
            if size > 2 * self._limits.max_text or cells > self._limits.max_cells:
                raise _too_large(f"the matches have more than {self._limits.max_text:,} bytes")
            described.append(_described(match))
        return described

    def replace(self, pattern: bytes, text: bytes, replacement: bytes, options: dict[str, Any]) -> str | bytes:
        template = _Template(replacement, self._compile(pattern, text, options))
        pieces: list[bytes] = []
        done = size = 0
        for match in self._matches(pattern, text, options):
            size += template.size(match)
            if size > self._limits.max_text:
                raise _too_large(f"the result has more than {self._limits.max_text:,} bytes")
            pieces += [text[done : match.start()], template.fill(match)]
            done = match.end()
        return text_or_bytes(b"".join([*pieces, text[done:]]))

    def split(self, pattern: bytes, text: bytes, options: dict[str, Any]) -> list[str | bytes]:
        pieces: list[bytes] = []
        done = 0
        for match in self._matches(pattern, text, options):
            if match.end() > match.start():  # an empty match separates nothing
                pieces.append(text[done : match.start()])
                done = match.end()
        return [text_or_bytes(piece) for piece in (*pieces, text[done:])]

    def _matches(self, pattern: bytes, text: bytes, options: dict[str, Any]) -> Iterator[Any]:
        """Matches up to the limit asked for; raises when there are too many, or looking takes too long.

        Each search takes time in proportion to the text, but a pattern can make every one of many searches look
        through all of it, so the time is limited too.
        """
        compiled = self._compile(pattern, text, options)
        limit = options.get("limit")
        ends = self._timer() + self._limits.regex_seconds
        characters = isinstance(text_or_bytes(text), str)
        count = 0
        for match in compiled.finditer(text):
            if self._timer() > ends:
                spent = f"{self._limits.regex_seconds:g} s of processor time"
                raise ToolError(f"the search took more than {spent}", code="timeout")
            if characters and match.end() == match.start() and text[match.end() : match.end() + 1] in _MIDDLE:
                continue  # an empty match between the bytes of one character
            if count == limit:
                return
            if count == self._limits.max_matches:
                raise _too_large(f"there are more than {count:,} matches; give options.limit")
            yield match
            count += 1

    def _compile(self, pattern: bytes, text: bytes, options: dict[str, Any]) -> Any:
        letters = "".join(letter for name, letter in _LETTERS.items() if options[name])
        compiled = self._compiled(pattern, letters, isinstance(text_or_bytes(text), str))
        # Measured: a step costs up to 9 ns for each instruction, and twice that when there are 20 groups to keep.
        most = self._limits.max_regex_work * 20 // (compiled.programsize * (20 + compiled.groups))
        if len(text) > most:
            possible = f"{len(text):,} bytes of text, at most {most:,} are possible"
            raise _too_large(f"the pattern is too large for {possible}; use smaller repetitions or a shorter text")
        return compiled


def _too_large(message: str) -> ToolError:
    return ToolError(message, code="too_large")


def _compiled(pattern: bytes, letters: str, utf8: bool) -> Any:
    try:
        import re2
    except ModuleNotFoundError:
        raise MissingExtra("google-re2", "scripts", "regex for scripts") from None
    options = re2.Options()
    options.max_mem = _MAX_COMPILED
    options.log_errors = False
    options.encoding = re2.Options.Encoding.UTF8 if utf8 else re2.Options.Encoding.LATIN1
    try:
        return re2.compile(f"(?{letters})".encode() + pattern if letters else pattern, options)
    except re2.error as problem:
        why = problem.args[0].decode("utf-8", "replace") if isinstance(problem.args[0], bytes) else problem
        raise Wrong(f"invalid pattern: {excerpt(why, 200)}", code="invalid_pattern") from None
    finally:
        re2.purge()  # its own cache would keep the patterns of all scripts, up to 128 large ones


def _described(match: Any) -> dict[str, Any]:
    groups = [None if group is None else text_or_bytes(group) for group in match.groups()]
    names = {name.decode(): groups[index - 1] for name, index in match.re.groupindex.items()}
    return {
        "text": text_or_bytes(match.group()),
        "start": match.start() + 1,
        "stop": match.end(),
        "groups": groups,
        "names": names,
    }


class _Template:
    """A replacement text, split at its references, so that the size of a result is known before it is built."""

    def __init__(self, text: bytes, compiled: Any) -> None:
        self._parts: list[bytes | int] = []
        done = 0
        for part in _GROUP.finditer(text):
            self._parts += [text[done : part.start()], b"$" if part[1] else _index(part, compiled)]
            done = part.end()
        self._parts.append(text[done:])
        self._literal = sum(len(part) for part in self._parts if isinstance(part, bytes))
        self._uses = Counter(part for part in self._parts if isinstance(part, int))

    def size(self, match: Any) -> int:
        size = self._literal
        for group, count in self._uses.items():
            start, end = match.span(group)
            size += (end - start) * count
        return size

    def fill(self, match: Any) -> bytes:
        return b"".join(part if isinstance(part, bytes) else match[part] or b"" for part in self._parts)


def _index(part: re.Match[bytes], compiled: Any) -> int:
    name = part[2] or part[3]
    numbered = name.isdigit() and len(name) < 10
    index = int(name) if numbered else int(compiled.groupindex.get(name, -1))
    if not 0 <= index <= compiled.groups:
        raise Wrong(f"unknown group '{excerpt(name.decode())}'", code="invalid_pattern")
    return index
