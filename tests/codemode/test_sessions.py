"""The registry of sessions, which CodeMode, the MCP server and the console's playground share."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from moonbox.codemode import sessions as sessions_module
from moonbox.codemode.sessions import Sessions, TooManySessions

if TYPE_CHECKING:
    from collections.abc import Callable


def make() -> str:
    return "value"


def open_all(sessions: Sessions[str], *keys: str) -> None:
    for key in keys:
        sessions.open(key, lambda key=key: key)  # type: ignore[misc]  # bound now


def test_one_that_is_used_does_not_end_for_being_idle() -> None:
    ended: list[str] = []
    now = 0.0
    sessions: Sessions[str] = Sessions(ended.append, most=10, idle_seconds=5.0, clock=lambda: now)
    with sessions.use("a", make) as value:
        now = 10.0
        sessions.end_idle()
        assert (value, len(sessions), "a" in sessions) == ("value", 1, True)
        assert not sessions.end("a", unless_used=True)
    now = 14.0
    assert sessions.get("a") == "value"
    now = 18.0
    sessions.end_idle()
    assert sessions.names() == ("a",), "it was read four seconds ago"
    now = 24.0
    open_all(sessions, "b")
    assert (ended, sessions.names()) == (["value"], ("b",))


def test_the_one_that_was_unused_for_longest_makes_room() -> None:
    ended: list[str] = []
    sessions: Sessions[str] = Sessions(ended.append, most=2, idle_seconds=None, strict=True)
    open_all(sessions, "a", "b", "a", "c")
    assert ended == ["b"]
    with sessions.use("a", make), sessions.use("c", make):
        with pytest.raises(TooManySessions, match=r"^all 2 sessions are in use; try again later$"):
            sessions.open("d", make)
        sessions.strict = False
        sessions.open("d", make)
        assert sessions.names() == ("a", "c", "d")


def test_a_busy_value_counts_as_used() -> None:
    ended: list[str] = []
    sessions: Sessions[str] = Sessions(ended.append, most=1, idle_seconds=0.0, strict=True, is_busy=str.isupper)
    open_all(sessions, "BUSY")
    with pytest.raises(TooManySessions):
        sessions.open("b", make)
    assert sessions.end("BUSY"), "it can be ended by name"
    assert (ended, sessions.end("BUSY")) == (["BUSY"], False)


def test_the_owner_with_most_sessions_loses_one() -> None:
    ended: list[str] = []
    sessions: Sessions[str] = Sessions(ended.append, most=4, idle_seconds=None, owner_of=lambda key: key[0])
    open_all(sessions, "modest", "g1", "g2", "g3", "g4", "g5")
    assert ended == ["g1", "g2"]


def test_values_that_can_sleep_make_room_and_keep_their_state() -> None:
    """Also those that were used just now: nothing is lost."""
    heard: list[str] = []

    def sleep(value: str) -> Callable[[], object] | None:
        return None if value == "restless" else partial(heard.append, f"{value} sleeps")

    sessions: Sessions[str] = Sessions(heard.append, most=2, idle_seconds=None, strict=True, sleep=sleep)
    sessions.live_seconds = 300.0
    open_all(sessions, "a", "b", "c")
    assert (heard, sessions.names()) == (["a sleeps"], ("a", "b", "c"))
    assert sessions.open("a", make) == "a", "it is the same value"
    assert heard == ["a sleeps", "b sleeps"] and not sessions.gave_up("b")
    with sessions.use("a", make), sessions.use("c", make), pytest.raises(TooManySessions):
        sessions.open("b", make)
    assert "b" in sessions, "it still sleeps"
    assert sessions.end("b") and heard[2:] == ["b"]
    sessions.live_seconds = 0.0
    open_all(sessions, "restless", "d", "e")
    assert heard[3:] == ["c sleeps", "a sleeps", "restless"] and sessions.gave_up("restless")


def test_those_that_sleep_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions_module, "_MOST_ASLEEP", 2)
    ended: list[str] = []
    sessions: Sessions[str] = Sessions(
        ended.append, most=1, idle_seconds=None, sleep=lambda _: make, owner_of=lambda key: key[0]
    )
    open_all(sessions, "modest", "g1", "g2", "g3", "g4")
    assert (ended, sessions.names()) == (["g1", "g2"], ("modest", "g3", "g4"))


def test_what_is_taken_is_not_closed() -> None:
    ended: list[str] = []
    sessions: Sessions[str] = Sessions(ended.append, most=4, idle_seconds=None)
    open_all(sessions, "a", "b", "c")
    assert (sessions.take("a"), sessions.take("a"), sessions.values()) == ("a", None, ["b", "c"])
    sessions.end_all()
    assert (ended, len(sessions)) == (["b", "c"], 0)


def test_a_value_that_cannot_be_made_leaves_no_session() -> None:
    ended: list[str] = []
    sessions: Sessions[str] = Sessions(ended.append, most=1, idle_seconds=None)
    open_all(sessions, "a")

    def fail() -> str:
        raise OSError("no")

    with pytest.raises(OSError, match="no"):
        sessions.open("b", fail)
    assert (ended, sessions.names()) == (["a"], ())
