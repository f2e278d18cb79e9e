"""Redaction: what is kept out of a trail, by the names of fields and by value."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from fnmatch import translate
from typing import Any

from msgspec.structs import replace

from moonbox.audit.literals import LiteralRedaction, folded, redact_source
from moonbox.audit.records import Call, Run, changed, repacked
from moonbox.compact import json_in
from moonbox.errors import UsageError
from moonbox.values import mapped


class Redactor:
    """Hides named fields, at any depth, and given secrets, anywhere, in everything that a run recorded.

    `fields` are names, with `*` and `?` as wildcards: "password", "*_token". Letter case, `_` and `-` do not count:
    "api_key" covers "apiKey" and "API-Key". A name with dots also looks at what is around: "login.password" is that
    field of the tool `login` (or of anything called login), "*.token" is a token inside anything.

    What such a field held is also hidden where the run repeats it: in the source, in the output, in messages, in other
    values. A value of fewer than four characters is hidden only where it follows the field's name, as in `cvv = 123` or
    `"cvv": "123"`: too much else looks like it. `secrets` are strings that are hidden everywhere, whatever the field.
    """

    def __init__(
        self, fields: Iterable[str] = (), *, secrets: Iterable[str] = (), replacement: str = "[redacted]"
    ) -> None:
        names = [field.split(".") for field in _names("fields", fields)]
        self._patterns = [tuple(re.compile(translate(folded(part))) for part in parts) for parts in names]
        self._secrets = _names("secrets", secrets)
        self._replacement = replacement

    def with_secrets(self, secrets: Iterable[str]) -> Redactor:
        """A copy that hides these too."""
        copy = Redactor(secrets=[*self._secrets, *secrets], replacement=self._replacement)
        copy._patterns = self._patterns
        return copy

    def redact(self, run: Run) -> Run:
        """A copy of the run in which nothing hidden is left."""
        return self.in_steps().run(run)

    def hides(self, name: str) -> bool:
        """Whether a field of that name may be hidden, wherever it is."""
        return any(pattern[-1].fullmatch(folded(name)) for pattern in self._patterns)

    def value(self, value: Any, *path: str) -> Any:
        """One value redacted by itself, as if it were found at `path`."""
        work = self.in_steps()
        kept = work.fields(value, path)
        return work.scrubber().value(kept)

    def in_steps(self) -> Redaction:
        """Redacts a run step by step, while it happens."""
        return Redaction(self._patterns, self._secrets, self._replacement)


_SHORTEST = 4
"""Values shorter than this are hidden in their field and after its name, but not looked for elsewhere."""
_FEW = 64
_MOST_COMPARED = 100_000_000


class Redaction:
    """The redaction of one run, also while it happens: what any field held so far is hidden in what comes after."""

    def __init__(self, patterns: list[tuple[re.Pattern[str], ...]], secrets: list[str], replacement: str) -> None:
        self._patterns, self._secrets, self._replacement = patterns, secrets, replacement
        self._hidden: dict[str, None] = {}
        self._names: set[str] = set()
        self._candidates: dict[str, list[tuple[re.Pattern[str], ...]]] = {}
        self._scrubber: tuple[int, _Scrubber] | None = None

    def run(self, run: Run) -> Run:
        """The run, or what is known of it so far, without what must be hidden."""
        calls = [self.fields_of_call(call) for call in run.calls]
        values = [self.fields(value, ("value",)) for value in run.values]
        error = run.error and run.error.with_(data=self.fields(run.error.data, _path(run.error.tool or "error")))
        labels = self.fields(run.labels, ("labels",))
        kept = replace(run, source="", calls=tuple(calls), values=tuple(values), error=error, labels=labels)
        source, found = self.scrubber().source(run.source, run.language)
        for literal in found:
            if self._replacement not in literal:
                self._remember(literal)
        scrubber = self.scrubber()
        return replace(changed(kept, scrubber.value), source=source)

    def scrubber(self) -> _Scrubber:
        """What hides the secrets and everything that was found so far."""
        found = len(self._hidden) + len(self._names)
        if self._scrubber is None or self._scrubber[0] != found:
            names = frozenset(self._names)
            plain = [pattern[0] for pattern in self._patterns if len(pattern) == 1]

            def hides(name: str) -> bool:
                # A name that is only hidden inside something is hidden in texts once it was seen there.
                return name in names or any(pattern.fullmatch(name) for pattern in plain)

            literals = LiteralRedaction(hides, self._replacement) if plain or names else None
            self._scrubber = found, _Scrubber([*self._secrets, *self._hidden], self._replacement, literals)
        return self._scrubber[1]

    def fields_of_call(self, call: Call) -> Call:
        """A call without its hidden fields."""
        path = _path(call.tool)
        return replace(
            call,
            arguments=self.arguments(call.arguments, path),
            error=call.error and replace(call.error, data=self.fields(call.error.data, path)),
            packed=repacked(call, lambda result: self.fields(result, path)),
            original_arguments=self.arguments(call.original_arguments, path),
        )

    def arguments(self, arguments: Any, path: tuple[str, ...]) -> Any:
        """The arguments of a call by their names; what has no name may be anything, so that it is hidden whole."""
        if not self._patterns or arguments in (None, [], {}):
            return arguments
        if not isinstance(arguments, dict):
            return self._hide(arguments)
        return {
            name: self._field(name, value, path) if isinstance(name, str) else self._hide(value)
            for name, value in arguments.items()
        }

    def fields(self, value: Any, path: tuple[str, ...]) -> Any:
        if isinstance(value, dict):
            return {key: self._field(str(key), item, path) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.fields(item, path) for item in value]
        if not isinstance(value, str):
            return value
        data = json_in(value)  # tools often answer with JSON as text: the fields in it count too
        kept = self.fields(data, path)
        return value if kept == data else json.dumps(kept, ensure_ascii=False)

    def _field(self, name: str, value: Any, path: tuple[str, ...]) -> Any:
        if value is None:
            return None
        if name not in self._candidates:
            self._candidates[name] = [one for one in self._patterns if one[-1].fullmatch(folded(name))]
        if any(_fits(pattern[:-1], path) for pattern in self._candidates[name]):
            self._names.add(folded(name))
            return self._hide(value)
        return self.fields(value, (*path, name)) if isinstance(value, dict | list | tuple | str) else value

    def _hide(self, value: Any) -> str:
        self._remember(value)
        return self._replacement

    def _remember(self, value: Any) -> None:
        if isinstance(value, dict | list | tuple):
            for item in value.values() if isinstance(value, dict) else value:
                self._remember(item)
        elif isinstance(value, bytes):
            self._remember(value.decode("utf-8", "replace"))
        elif not isinstance(value, bool) and value is not None and len(text := str(value)) >= _SHORTEST:
            self._hidden[text] = None


class _Scrubber:
    """Replaces exact strings wherever they stand, and what follows the name of a hidden field."""

    def __init__(self, secrets: Iterable[str], replacement: str, after_names: LiteralRedaction | None) -> None:
        self._after_names = after_names
        plain = {secret for secret in secrets if secret}
        # As it stands inside JSON text and, mostly, inside a string of a script.
        escaped = {json.dumps(secret, ensure_ascii=ascii)[1:-1] for secret in plain for ascii in (False, True)}
        self._all = plain | escaped
        # The longest first, so that one secret inside another does not leave the rest of it behind.
        self._ordered = sorted(self._all, key=lambda secret: (-len(secret), secret))
        self._shortest = len(self._ordered[-1]) if self._ordered else 0
        self._replacement = replacement
        self._budget = _MOST_COMPARED
        self._lengths: dict[str, list[int]] = {}
        if len(self._all) > _FEW:
            for secret in self._ordered:
                lengths = self._lengths.setdefault(secret[: self._shortest], [])
                if not lengths or lengths[-1] != len(secret):
                    lengths.append(len(secret))

    def text(self, text: str) -> str:
        text = self._without_secrets(text)
        return text if self._after_names is None else self._after_names.text(text)

    def source(self, source: str, language: str) -> tuple[str, list[str]]:
        """A script without what must be hidden, and the literals that were found beside hidden names."""
        source = self._without_secrets(source)
        return (source, []) if self._after_names is None else redact_source(source, language, self._after_names)

    def _without_secrets(self, text: str) -> str:
        if not self._all or len(text) < self._shortest:
            return text
        if self._lengths:
            return self._scan(text)
        for secret in self._ordered:
            if secret in text:
                text = text.replace(secret, self._replacement)
        return text

    def _scan(self, text: str) -> str:
        """For thousands of secrets: time grows with the text, not with their number.

        A script can choose secrets that make even this slow. Past the budget the whole text counts as secret.
        """
        parts: list[str] = []
        done = place = 0
        start, last = self._shortest, len(text) - self._shortest
        while place <= last:
            for length in self._lengths.get(text[place : place + start], ()):
                self._budget -= length
                if text[place : place + length] in self._all:
                    parts += (text[done:place], self._replacement)
                    place = done = place + length
                    break
            else:
                place += 1
            if self._budget < 0:
                return self._replacement
        return "".join((*parts, text[done:])) if parts else text

    def value(self, value: Any) -> Any:
        if not self._all and self._after_names is None:
            return value
        return mapped(value, self._leaf)

    def _leaf(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, bytes):
            text = value.decode("utf-8", "surrogateescape")
            return self.text(text).encode("utf-8", "surrogateescape")
        if isinstance(value, int | float) and not isinstance(value, bool) and str(value) in self._all:
            return self._replacement
        return value


def _names(what: str, items: Iterable[str]) -> list[str]:
    if isinstance(items, str):
        raise UsageError(f"Redactor {what} must be a list of strings, not one string: [{items!r}]")
    names = list(items)
    for name in names:
        if not isinstance(name, str) or not name.strip("."):
            raise UsageError(f"Redactor {what} must be non-empty strings, not {name!r}")
    return names


def _fits(around: tuple[re.Pattern[str], ...], path: tuple[str, ...]) -> bool:
    """Whether the innermost names of the path are those that the pattern wants around its field."""
    if len(around) > len(path):
        return False
    inner = path[len(path) - len(around) :]
    return all(part.fullmatch(folded(name)) for part, name in zip(around, inner, strict=True))


def _path(tool: str) -> tuple[str, ...]:
    return tuple(tool.split("."))
