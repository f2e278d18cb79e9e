"""Conversations: which state belongs to which client, by the transport's session or by a handle, and when it ends."""

from __future__ import annotations

import contextlib
import secrets
import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from moonbox.mcp.server.peer import Peer

__all__ = ["META_KEY", "STATE", "Busy", "Conversations", "Place", "session_key"]

META_KEY = "moonbox/conversation"
"""In a request's `_meta`: a client's own name for the conversation. In a result's: the handle that we chose."""
STATE = "state"
"""The code tool's argument that continues a conversation, for clients without a session."""
_LONGEST_HANDLE = 128


class Busy(Exception):
    """Too many conversations at once."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a script runs."""

    key: str
    handle: str | None = None
    """What the client has to give back to come here again; None where the transport remembers."""
    note: str = ""


@dataclass(slots=True)
class _Kept:
    used: float
    running: int = 0


class Conversations:
    """Keeps track of use; `end` is told which conversations are over."""

    def __init__(self, end: Callable[[str], object], *, idle_seconds: float, most: int) -> None:
        self._end = end
        self._idle = idle_seconds
        self._most = most
        self._kept: dict[str, _Kept] = {}

    def place(self, peer: Peer, named: str | None, state: str | None) -> Place:
        """The conversation of a request: named by the client, continued by handle, of the session, or new."""
        if named:
            return Place(_key(peer, "named", named))
        if state:
            key = _key(peer, "state", state)
            if key in self._kept:
                return Place(key, state)
            place = self._new(peer)
            note = f"the state {state[:40]!r} is not there any more; this script began afresh"
            return Place(place.key, place.handle, note)
        if peer.session is not None:
            return Place(session_key(peer.owner, peer.session))
        return self._new(peer)

    @staticmethod
    def _new(peer: Peer) -> Place:
        handle = secrets.token_hex(6)
        return Place(_key(peer, "state", handle), handle)

    @contextlib.contextmanager
    def using(self, key: str) -> Iterator[None]:
        """While a script of the conversation runs, it does not end."""
        if key not in self._kept:
            self._make_room()
        kept = self._kept.setdefault(key, _Kept(time.monotonic()))
        kept.running += 1
        try:
            yield
        finally:
            kept.running -= 1
            kept.used = time.monotonic()

    def end(self, key: str) -> None:
        """It is over; one that is still running ends with its script."""
        kept = self._kept.get(key)
        if kept is not None and not kept.running:
            del self._kept[key]
            self._end(key)

    def sweep(self) -> None:
        """End what has been idle for long."""
        late = time.monotonic() - self._idle
        for key in [key for key, kept in self._kept.items() if not kept.running and kept.used < late]:
            self.end(key)

    def __len__(self) -> int:
        return len(self._kept)

    def _make_room(self) -> None:
        if len(self._kept) < self._most:
            return
        idle = [(kept.used, key) for key, kept in self._kept.items() if not kept.running]
        if not idle:
            raise Busy(f"{self._most} conversations are under way; try again when one has ended")
        # Whoever has most gives one up, the one that was not used for longest.
        owned = Counter(_owner(key) for key in self._kept)
        self.end(min(idle, key=lambda item: (-owned[_owner(item[1])], item[0]))[1])


def session_key(owner: str, session: str) -> str:
    """The conversation of a transport's session."""
    return f"{owner}|session|{session[:_LONGEST_HANDLE].replace('|', '/')}"


def _owner(key: str) -> str:
    return key.rsplit("|", 2)[0] if key.count("|") >= 2 else key


def _key(peer: Peer, kind: str, name: str) -> str:
    return f"{peer.owner}|{kind}|{name[:_LONGEST_HANDLE].replace('|', '/')}"
