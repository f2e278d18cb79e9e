"""Sessions: what belongs to a key, kept while it is used, ended when it is idle for long or others need its place.

A value that can sleep is not ended where others need its place."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from moonbox.errors import UsageError

T = TypeVar("T")

_MOST_GIVEN_UP = 10_000
_MOST_ASLEEP = 10_000


class TooManySessions(UsageError):
    """Every session is in use, and no further one is allowed."""


@dataclass(slots=True)
class _Kept(Generic[T]):
    value: T
    used: float
    users: int = 0
    asleep: bool = False


class Sessions(Generic[T]):
    """Values by their keys. One that is in use is never ended to make room. Any thread may call its methods.

    close          ends a value
    sleep          for a value, what puts it to sleep; None where it can only be closed to make room
    most           how many are awake; `strict` refuses more, otherwise those in use may be more for a while
    live_seconds   how long `strict` keeps one after its use, unless its owner has more than the owner of the new one
    idle_seconds   how long one that is not used is kept; None keeps it until its place is needed
    is_busy        whether a value is in use outside of `use`
    owner_of       the owner of a key: the owner with most sessions is the first to lose one
    """

    def __init__(
        self,
        close: Callable[[T], object],
        *,
        most: int,
        idle_seconds: float | None,
        strict: bool = False,
        sleep: Callable[[T], Callable[[], object] | None] = lambda _: None,
        is_busy: Callable[[T], bool] = lambda _: False,
        owner_of: Callable[[str], str] = lambda _: "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.most, self.idle_seconds, self.strict, self.owner_of = most, idle_seconds, strict, owner_of
        self._close, self._sleep, self._is_busy, self._clock = close, sleep, is_busy, clock
        self._lock = threading.Lock()
        self._kept: dict[str, _Kept[T]] = {}
        self.live_seconds = 0.0
        self._given_up: OrderedDict[str, None] = OrderedDict()

    @contextlib.contextmanager
    def use(self, key: str, make: Callable[[], T]) -> Iterator[T]:
        """The value of a key, made if there is none, which cannot end to make room until the block is left."""
        kept = self._open(key, make, users=1)
        try:
            yield kept.value
        finally:
            with self._lock:
                kept.users -= 1
                kept.used = self._clock()

    def open(self, key: str, make: Callable[[], T]) -> T:
        """The value of a key, made if there is none; TooManySessions where there is no room for it."""
        return self._open(key, make, users=0).value

    def get(self, key: str) -> T | None:
        """The value of a key, if there is one; this counts as a use."""
        with self._lock:
            kept = self._kept.get(key)
            if kept is None:
                return None
            kept.used = self._clock()
            return kept.value

    def take(self, key: str) -> T | None:
        """Forget a key; its value, which is left to the caller to close."""
        with self._lock:
            kept = self._kept.pop(key, None)
        return None if kept is None else kept.value

    def end(self, key: str, *, unless_used: bool = False) -> bool:
        """Close the value of a key; whether there was one. `unless_used` leaves one alone that is in use."""
        with self._lock:
            kept = self._kept.get(key)
            if kept is None or (unless_used and self._in_use(kept)):
                return False
            del self._kept[key]
        self._close(kept.value)
        return True

    def end_idle(self) -> None:
        """Close those that were not used for `idle_seconds`."""
        with self._lock:
            ended = [self._give_up(key) for key in self._idle_keys()]
        for end in ended:
            end()

    def end_all(self) -> None:
        with self._lock:
            ended, self._kept = self._kept, {}
        for kept in ended.values():
            self._close(kept.value)

    def gave_up(self, key: str) -> bool:
        """Whether its value was ended because it was idle or others needed its place, and there is no new one."""
        return key in self._given_up

    def names(self) -> tuple[str, ...]:
        """The keys, the most recently opened last."""
        with self._lock:
            return tuple(self._kept)

    def values(self) -> list[T]:
        with self._lock:
            return [kept.value for kept in self._kept.values()]

    def __len__(self) -> int:
        return len(self._kept)

    def __contains__(self, key: object) -> bool:
        return key in self._kept

    def _open(self, key: str, make: Callable[[], T], users: int) -> _Kept[T]:
        ended: list[Callable[[], object]] = []
        try:
            with self._lock:
                ended += [self._give_up(name) for name in self._idle_keys() if name != key]
                kept = self._kept.get(key)
                if kept is None or kept.asleep:
                    self._make_room(key, ended)
                kept = self._kept.pop(key, None) or _Kept(make(), 0.0)
                self._given_up.pop(key, None)
                kept.asleep = False
                kept.used = self._clock()
                kept.users += users
                self._kept[key] = kept  # the most recently opened is last
                return kept
        finally:
            for end in ended:
                end()

    def _make_room(self, key: str, ended: list[Callable[[], object]]) -> None:
        awake = {name: kept for name, kept in self._kept.items() if not kept.asleep}
        while len(awake) >= self.most:
            owned = Counter(map(self.owner_of, awake))
            free = [name for name, kept in awake.items() if not self._in_use(kept)]
            if self.strict:
                oldest, fair = self._clock() - self.live_seconds, owned[self.owner_of(key)] + 1
                free = [
                    name
                    for name in free
                    if awake[name].used < oldest
                    or owned[self.owner_of(name)] > fair
                    or self._sleep(awake[name].value) is not None
                ]
            if not free:
                if self.strict:
                    raise TooManySessions(f"all {self.most} sessions are in use; try again later")
                break
            name = self._least_used(free, owned)
            kept = awake.pop(name)
            if (sleep := self._sleep(kept.value)) is None:
                ended.append(self._give_up(name))
            else:
                kept.asleep = True
                ended.append(sleep)
        if len(self._kept) - len(awake) > _MOST_ASLEEP:
            asleep = [name for name, kept in self._kept.items() if kept.asleep and name != key]
            ended.append(self._give_up(self._least_used(asleep, Counter(map(self.owner_of, asleep)))))

    def _least_used(self, keys: list[str], owned: Counter[str]) -> str:
        """Of the owner with most sessions, the one that was unused for longest."""
        return min(keys, key=lambda key: (-owned[self.owner_of(key)], self._kept[key].used))

    def _give_up(self, key: str) -> Callable[[], object]:
        """Forget a key; what closes its value."""
        self._given_up[key] = None
        if len(self._given_up) > _MOST_GIVEN_UP:
            self._given_up.popitem(last=False)
        return partial(self._close, self._kept.pop(key).value)

    def _idle_keys(self) -> list[str]:
        if self.idle_seconds is None:
            return []
        oldest = self._clock() - self.idle_seconds
        return [key for key, kept in self._kept.items() if kept.used < oldest and not self._in_use(kept)]

    def _in_use(self, kept: _Kept[T]) -> bool:
        return kept.users > 0 or self._is_busy(kept.value)
