"""YAML that costs far more than its size: the host neither waits for long nor fills its memory."""

from __future__ import annotations

import subprocess
import sys

import pytest

from moonbox.errors import UsageError
from moonbox.sources.specification import parse

NEVER = "the specification is neither JSON nor YAML: "


def merged(levels: int, times: int) -> bytes:
    """Merge keys, each of which names the one before several times."""
    lines = ["a0: &a0 {x: 1}"]
    for level in range(1, levels):
        lines.append(f"a{level}: &a{level} {{<<: [{', '.join([f'*a{level - 1}'] * times)}], k{level}: 1}}")
    return "\n".join(lines).encode()


def aliases(levels: int, times: int) -> bytes:
    lines = ["a0: &a0 x"]
    for level in range(1, levels):
        lines.append(f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * times)}]")
    return "\n".join(lines).encode()


@pytest.mark.parametrize("times", [2, 3, 9])
@pytest.mark.parametrize("levels", [20, 60])
def test_merge_keys(levels: int, times: int) -> None:
    with pytest.raises(UsageError, match=NEVER + "its merge keys stand for more than ten times its size"):
        parse(merged(levels, times), "the specification")


@pytest.mark.parametrize("times", [2, 9])
def test_aliases(times: int) -> None:
    with pytest.raises(UsageError, match=NEVER + "its aliases stand for more than ten times its size"):
        parse(aliases(30, times), "the specification")


@pytest.mark.parametrize("number", ["1" + ":0" * 100_000, "-9" + ":59" * 60_000, "9" * 200_000, "0x" + "f" * 200_000])
def test_long_numbers_are_text(number: str) -> None:
    assert parse(f"a: {number}".encode(), "x") == {"a": number}


@pytest.mark.parametrize(
    "data", [b"[" * 100_000, b"{a: " * 100_000, b"- " * 100_000, b"a: !!python/object/apply:os.abort []", b"a: *b"]
)
def test_what_is_not_read(data: bytes) -> None:
    with pytest.raises(UsageError, match=NEVER):
        parse(data, "the specification")


def test_the_host_does_not_load_the_parser() -> None:
    program = (
        "import sys; from moonbox.sources.specification import parse; print(parse(b'a: 1', 'x'), 'yaml' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "{'a': 1} False\n"
