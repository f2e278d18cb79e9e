"""The wire: frames cut from any pieces, and JSON that nobody vouches for."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import math
import os
import signal
import socket
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moonbox.errors import WorkerError
from moonbox.worker import protocol
from moonbox.worker.control import SocketControl
from moonbox.worker.encoding import Decoder, FrameReader, _without_long_texts
from moonbox.worker.link import Gone, Link
from moonbox.worker.protocol import HEADER, frame
from tests.counting import count_calls

if TYPE_CHECKING:
    from collections.abc import Iterator


def decode(payload: bytes, **options: Any) -> Any:
    most = options.pop("max_nodes", 100_000) * 2
    return Decoder(most, **{"max_depth": 64, **options}).decode(payload)


# Frames


@given(
    frames=st.lists(st.tuples(st.integers(0, 255), st.binary(max_size=200)), max_size=8),
    cuts=st.lists(st.integers(0, 2000), max_size=12),
)
def test_any_split_of_the_bytes_gives_the_same_frames(frames: list[tuple[int, bytes]], cuts: list[int]) -> None:
    stream = b"".join(frame(kind, payload) for kind, payload in frames)
    edges = sorted({0, len(stream), *(cut for cut in cuts if cut <= len(stream))})
    reader = FrameReader(1000)
    found = []
    for start, end in itertools.pairwise(edges):
        reader.buffer += stream[start:end]
        while (one := reader.next()) is not None:
            found.append(one)
    assert found == frames
    assert len(reader.buffer) == 0
    assert reader.next() is None


@given(st.binary(max_size=300))
def test_any_bytes_are_frames_or_refused(data: bytes) -> None:
    reader = FrameReader(100)
    reader.buffer += data
    taken = 0
    try:
        while (one := reader.next()) is not None:
            assert len(one[1]) <= 100
            taken += HEADER.size + len(one[1])
    except WorkerError as problem:
        assert "at most 100 are allowed" in str(problem)
    assert len(reader.buffer) == len(data) - taken


def test_a_frame_that_is_too_long_is_refused_before_it_is_read() -> None:
    reader = FrameReader(1000)
    reader.buffer += HEADER.pack(20, 1001)
    with pytest.raises(WorkerError) as caught:
        reader.next()
    assert str(caught.value) == "the worker announced a frame of 1,001 bytes; at most 1,000 are allowed"


@pytest.fixture
def ends() -> Iterator[tuple[Link, socket.socket]]:
    """A Link and the worker's end of it, whose greeting has come."""
    ours, theirs = socket.socketpair()
    control, other = socket.socketpair()
    link = Link(ours, SocketControl(control))
    link.reader.largest = 8_000_000
    theirs.sendall(frame(protocol.READY, b""))
    link.wait_until_ready(time.monotonic() + 60)
    yield link, theirs
    link.close()
    for end in (theirs, other):
        end.close()


@pytest.mark.parametrize("size", [5, 16_379, 16_380, 100_000, 4_194_303, 4_194_304])
@pytest.mark.parametrize("first", [1, 5, 6, 30_000])
def test_a_frame_of_any_size_is_received(ends: tuple[Link, socket.socket], size: int, first: int) -> None:
    link, worker = ends
    data = frame(protocol.VALUE, bytes(range(256)) * (size // 256) + b"x" * (size % 256))
    worker.sendall(data[:first])
    sender = threading.Thread(target=worker.sendall, args=(data[first:],))
    sender.start()
    got = link.exchange(b"", time.monotonic() + 60, None)
    sender.join()
    assert got is not None and frame(*got) == data
    worker.sendall(frame(protocol.DONE, b"after"))
    assert link.exchange(b"", time.monotonic() + 60, None) == (protocol.DONE, b"after")


@pytest.mark.parametrize("size", [100, 1_000_000])
def test_half_a_frame_at_the_deadline_is_not_lost(ends: tuple[Link, socket.socket], size: int) -> None:
    link, worker = ends
    data = frame(protocol.VALUE, b"x" * size)
    worker.sendall(data[: min(size // 2, 50_000)])
    assert link.exchange(b"", time.monotonic() + 0.05, None) is None
    sender = threading.Thread(target=worker.sendall, args=(data[min(size // 2, 50_000) :],))
    sender.start()
    got = link.receive(time.monotonic() + 60)
    sender.join()
    assert got is not None and frame(*got) == data


@pytest.mark.parametrize("size", [100, 1_000_000])
def test_half_a_frame_at_an_interruption_is_not_lost(ends: tuple[Link, socket.socket], size: int) -> None:
    link, worker = ends
    data, half = frame(protocol.VALUE, b"x" * size), min(size // 2, 50_000)
    worker.sendall(data[:half])
    threading.Timer(0.05, os.kill, [os.getpid(), signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt):
        link.exchange(b"", time.monotonic() + 60, None)
    sender = threading.Thread(target=worker.sendall, args=(data[half:],))
    sender.start()
    got = link.receive(time.monotonic() + 60)
    sender.join()
    assert got is not None and frame(*got) == data


@pytest.mark.parametrize("size", [100, 1_000_000])
def test_a_worker_that_ends_amid_a_frame_is_gone(ends: tuple[Link, socket.socket], size: int) -> None:
    link, worker = ends
    worker.sendall(frame(protocol.VALUE, b"x" * size)[: min(size // 2, 50_000)])
    worker.shutdown(socket.SHUT_WR)
    with pytest.raises(Gone):
        link.exchange(b"", time.monotonic() + 60, None)


@pytest.mark.parametrize(("size", "most"), [(4_000_000, 100_000), (10_000, 1_000)])  # in many reads, and in one
@pytest.mark.parametrize("way", ["exchange", "receive", "awaited"])
def test_a_frame_behind_the_greeting_has_the_same_limit(way: str, size: int, most: int) -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        link = Link(ours, SocketControl(socket.socket()))
        link.reader.largest = most
        data = frame(protocol.READY, b"") + frame(protocol.VALUE, b"x" * size)
        sender = threading.Thread(target=_send_all, args=(theirs, data))
        sender.start()
        with pytest.raises(WorkerError, match=f"{size:,} bytes; at most {most:,}"):
            if way == "exchange":
                link.exchange(b"", time.monotonic() + 60, None)
            elif way == "receive":
                link.receive(time.monotonic() + 60)
            else:
                asyncio.run(_receive(link))
        assert len(link.reader.buffer) <= 1 << 18  # what one read takes
        link.close()
        sender.join()


async def _receive(link: Link) -> None:
    """Take what arrives in callbacks of the loop until there is a frame."""
    loop = asyncio.get_running_loop()
    done = loop.create_future()

    def look() -> None:
        try:
            if link.take() and link.next_frame() is not None:
                done.set_result(None)
        except WorkerError as problem:
            link.stop_reading(loop)
            done.set_exception(problem)

    link.start_reading(loop, look)
    await done


def _send_all(end: socket.socket, data: bytes) -> None:
    with contextlib.suppress(OSError):  # the host hung up
        end.sendall(data)


# JSON


def json_values() -> st.SearchStrategy[Any]:
    text = st.text(st.characters(exclude_categories=["Cs"]))
    leaves = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | text
    keys = text.filter(lambda key: not key.startswith("\x01"))
    return st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(keys, inner), max_leaves=30)


@given(json_values().filter(lambda value: "Infinity" not in json.dumps(value)))
def test_json_is_read_as_it_is(value: Any) -> None:
    assert decode(json.dumps(value).encode()) == value


@given(st.binary(max_size=500) | st.text(alphabet='[]{}",:\\u0001bmt123.eE-nul', max_size=60).map(str.encode))
def test_any_bytes_are_a_value_or_refused(data: bytes) -> None:
    try:
        decode(data)
    except WorkerError as problem:
        assert str(problem).startswith("the worker sent an invalid value: ")


@pytest.mark.parametrize(
    ("payload", "value"),
    [
        ('{"\\u0001b": "\u00ff\\u0000a"}', b"\xff\x00a"),
        ('{"\\u0001m": [[1, "a"], ["b", {"\\u0001m": [[-5, 2]]}]]}', {1: "a", "b": {-5: 2}}),
        ('{"\\u0001m": []}', {}),
        ('{"a": 1, "\\u0001b": "x"}', {"a": 1, "\x01b": "x"}),
        ('["\\u0001b"]', ["\x01b"]),
    ],
)
def test_what_json_lacks(payload: str, value: Any) -> None:
    assert decode(payload.encode()) == value


def test_not_a_number_only_where_it_is_allowed() -> None:
    payload = b'[{"\\u0001f":"inf"},{"\\u0001f":"-inf"}]'
    with pytest.raises(WorkerError, match="a malformed value"):
        decode(payload)
    assert decode(payload, allow_nan=True) == [math.inf, -math.inf]
    assert math.isnan(decode(b'{"\\u0001f":"nan"}', allow_nan=True))
    with pytest.raises(WorkerError):
        decode(b"[Infinity]", allow_nan=True)


@pytest.mark.parametrize("levels", [150, 199])
def test_as_deep_as_a_value_may_be(levels: int) -> None:
    value = decode(b"[" * levels + b"]" * levels)
    for _ in range(levels - 1):
        (value,) = value
    assert value == []


@pytest.mark.parametrize("levels", [210, 1000, 50_000])
def test_deeper_than_a_value_may_be(levels: int) -> None:
    with pytest.raises(WorkerError):
        decode(b"[" * levels + b"]" * levels)


def test_deep_values_of_three_levels_each() -> None:
    """Tables with odd keys take three levels on the wire for one of the script's."""
    payload = b"1"
    for _ in range(64):
        payload = b'{"\\u0001m":[[7,' + payload + b"]]}"
    value = decode(payload)
    for _ in range(64):
        value = value[7]
    assert value == 1


@pytest.mark.parametrize(
    "payload",
    [
        b'["' + b'\\"' * 2_000_000,
        b'["' + b"\\" * 2_000_001,
        b'"' * 1_000_001,
        b"[" * 4_000_000,
        b'{"a":' * 500_000,
        b"[[[],[]]," * 300_000,
        b"1" * 2_000_000,
    ],
    ids=lambda payload: repr(payload[:8]),
)
def test_hostile_payloads_are_refused_with_little_work(payload: bytes) -> None:
    def refused() -> None:
        with pytest.raises(WorkerError):
            decode(payload, max_nodes=1000)

    refused()  # what is compiled and loaded for the first one does not count
    assert count_calls(refused) < 500


@pytest.mark.parametrize("number", [b"1e300", b"1.7976931348623157e+308", b"5E-324", b"2.2250738585072011e-0308"])
def test_floats_near_the_ends_of_their_range_take_no_longer_than_their_share(number: bytes) -> None:
    """msgspec's own parser takes 150 times as long for each of them as for others."""

    def cost(payload: bytes) -> float:
        began = time.thread_time()
        decode(payload)
        return time.thread_time() - began

    ordinary, extreme = (b"[" + b",".join([text] * 30_000) + b"]" for text in (b"123456.789", number))
    assert min(cost(extreme) for _ in range(3)) < 60 * min(cost(ordinary) for _ in range(3))
    assert decode(extreme)[-1] == float(number)


def test_all_frames_of_a_run_together() -> None:
    decoder = Decoder(100, max_depth=5)
    for _ in range(2):
        assert decoder.decode(json.dumps(list(range(40))).encode()) == list(range(40))
    with pytest.raises(WorkerError, match="more than 20 elements"):
        decoder.decode(json.dumps(list(range(40))).encode())
    assert decoder.decode(b"[1, 2]") == [1, 2]


LONG = "[1,2]{}e9" * 20_000
"""Text that would count as elements and numbers were it not in a string."""


@pytest.mark.parametrize("strings", [1, 2, 40])
@pytest.mark.parametrize(
    "text", [LONG, LONG + '"', LONG + "\\", LONG + "ä\n"], ids=["plain", "quote", "backslash", "line"]
)
def test_long_strings_count_as_one_element_each(strings: int, text: str) -> None:
    payload = json.dumps([text] * strings).encode()
    assert decode(payload, max_nodes=strings + 1) == [text] * strings
    with pytest.raises(WorkerError, match="more than"):
        decode(payload[:-1] + b",1" * 100 + b"]", max_nodes=strings + 50)


TEXT = b'"' + b"x" * 12_000 + b'"'
TRICKY = b'"' + b"[,{" * 4_000 + b'"'


@pytest.mark.parametrize(
    ("payload", "value"),
    [
        (b"[" + TEXT + b",1]", ["x" * 12_000, 1]),
        (b'["a",' + TRICKY + b',{"k":' + TEXT + b"}]", ["a", "[,{" * 4_000, {"k": "x" * 12_000}]),
        (b'["\\\\",' + TEXT + b"]", ["\\", "x" * 12_000]),
        (b"[" + TEXT + b',{"\\u0001b":"\\u00ff"}]', ["x" * 12_000, b"\xff"]),
    ],
)
def test_long_texts_are_not_looked_into(payload: bytes, value: Any) -> None:
    assert Decoder(40, max_depth=8).decode(payload) == value


@pytest.mark.parametrize(
    "payload",
    [
        b"[" + TEXT + b"," + b"1," * 30 + b"1]",  # more elements than there may be
        b"[" + TEXT + b"," + b"1" * 20 + b"]",  # an integer of more than 64 bits
        TEXT + b"[" * 60 + b"]" * 60,
        b"[" + TEXT[:-1] + b"]",
    ],
)
def test_what_is_wrong_beside_a_long_text_is_refused(payload: bytes) -> None:
    with pytest.raises(WorkerError):
        Decoder(40, max_depth=8).decode(payload)


@pytest.mark.parametrize(
    "text",
    [
        "plain, [text] " * 2_000,
        'a "quoted", text\n' * 2_000,
        "\\" * 20_001,
        '\\"' * 10_000,
        'ends with \\"' + "é" * 20_000,
    ],
)
def test_long_texts_are_left_out_of_what_is_looked_at_before_decoding(text: str) -> None:
    data = json.dumps([text, 1, {"key": "short"}], ensure_ascii=False).encode()
    before = b'\\"[['
    for payload, start in ((data, 0), (before + data, len(before))):
        assert json.loads(_without_long_texts(payload, start)) == ["", 1, {"key": "short"}]
        assert Decoder(100, max_depth=4).decode(payload, start) == [text, 1, {"key": "short"}]
