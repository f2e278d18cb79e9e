"""The chore that reads YAML: as JSON text, within bounds on nesting, on merge keys and on aliases."""

from __future__ import annotations

import json
import re
from typing import Any

from moonbox.errors import UsageError

_DEEPEST = 500
_INTEGER = re.compile(r"[-+]?(?:0[bo][0-7]{1,80}|0x[0-9a-fA-F]{1,80}|0|[1-9][0-9_]{0,300})\Z")
_FLOAT = re.compile(
    r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?\Z|[-+]?\.(?:inf|Inf|INF)\Z|\.(?:nan|NaN|NAN)\Z"
)


def load() -> None:
    """Load the parser, and use it once."""
    as_json(None, b"a: [1, 2.5, 2020-01-01, text, null, true]")


def as_json(_: None, data: bytes) -> str:
    """Dates become text, and aliases copies, as long as these are not far larger than the text."""
    import yaml

    room, depth = 10 * len(data) + 100_000, 0
    try:
        for event in yaml.parse(data, _parser()):  # without recursion, of which the parser in C takes all there is
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > _DEEPEST:
                raise UsageError("it is nested too deeply")
        value = yaml.load(data, _loader(room))
        pieces = []
        for piece in json.JSONEncoder(default=str).iterencode(value):
            room -= len(piece)
            if room < 0:
                raise UsageError("its aliases stand for more than ten times its size")
            pieces.append(piece)
    except (yaml.YAMLError, ValueError) as problem:
        raise UsageError(str(problem)) from None
    return "".join(pieces)


CHORES = {"as_json": as_json}


def _parser() -> Any:
    import yaml

    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the one in C is ten times faster


def _loader(room: int) -> Any:
    """A loader that counts what merge keys add, and that reads no numbers of base 60, as YAML 1.2 has none."""
    parser = _parser()

    class Loader(parser):  # type: ignore[misc,valid-type]  # which parser it is depends on the platform
        merged = 0

        def flatten_mapping(self, node: Any) -> None:
            super().flatten_mapping(node)
            self.merged += len(node.value)
            if self.merged > room:
                raise UsageError("its merge keys stand for more than ten times its size")

    numbers = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
    resolvers = {
        first: [pair for pair in pairs if pair[0] not in numbers]
        for first, pairs in parser.yaml_implicit_resolvers.items()
    }
    Loader.yaml_implicit_resolvers = resolvers
    Loader.add_implicit_resolver(numbers[0], _INTEGER, list("-+0123456789"))
    Loader.add_implicit_resolver(numbers[1], _FLOAT, list("-+0123456789."))
    return Loader
