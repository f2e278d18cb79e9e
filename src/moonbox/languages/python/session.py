"""A session in Monty's process: its limits, the modules that it can import, and the end of it."""

from __future__ import annotations

import os
import re
from contextlib import suppress

TYPE_CHECKING = False  # see worker/protocol.py: a worker starts without `typing`
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any

_MOST_ANSWERS = 100
_MOST_TRIED = 1 << 20  # characters
_UNLIMITED, _SIGKILL = 2**31 - 1, 9
_CHECKER, _CHECKED_FROM = 12 << 20, 16 << 20  # bytes: what the type checker holds; max_memory from which there is one
_LEAST_TIME = 2  # seconds of timeout from which scripts are checked: a busy machine takes long for it
_UINT = rb"(?:[\x00-\x17]|\x18.|\x19.{2}|\x1a.{4}|\x1b.{8})"
_DURATION = re.compile(rb"(?<=max_feed_duration)(?:\xf6|\xa2\x64secs%b\x65nanos%b)" % (_UINT, _UINT), re.DOTALL)


class MontySession:
    """Runs what it is fed, in one process of Monty, from which it can be begun anew."""

    def __init__(self, monty: Any, program: str) -> None:
        grace: Any = dict.fromkeys(
            ("feed_duration_limit_grace", "turn_duration_limit_grace")
        )  # the host's clock does that
        self._monty = monty
        self._pool = monty.Monty(binary_path=program, max_processes=1, **grace).__enter__()
        self._session: Any = None
        self._limits: Mapping[str, Any] = {}
        self._stubs: Mapping[str, str] = {}
        self._has_checker = False
        self._aside: bytes | None = None  # the state before texts were tried out
        self._tried = 0  # characters of them
        self.modules: dict[str, Any] = {}
        """What scripts can import beside Monty's own; it may change at any time."""
        self.paths: list[str] = []
        """Dotted names of these modules and of those within them."""
        self.pid = 0
        self.ended = False
        """Monty's process is gone."""

    @property
    def checks_types(self) -> bool:
        """Whether there are stubs, and room and time enough for the type checker."""
        timeout = self._limits["timeout"]
        return self._has_checker and (timeout is None or timeout >= _LEAST_TIME)

    def open(self, limits: Mapping[str, Any], stubs: Mapping[str, str]) -> None:
        """Begin with nothing defined."""
        self._limits, self._stubs = limits, stubs
        self._has_checker = bool(stubs) and limits["max_memory"] >= _CHECKED_FROM
        self._aside, self._tried = None, 0
        self._check_out()

    def change_limits(self, limits: Mapping[str, Any]) -> None:
        """Go on with another timeout. Monty fixes it when a session begins: a dump, which names it, begins another."""
        before, self._limits = self._limits, limits
        if before["timeout"] != limits["timeout"] and not self.ended:
            self._begin_again()

    def feed(self, text: str, **options: Any) -> Any:
        if self._aside is not None:
            self._begin_again()
        return self._session.feed_start(text, **options)

    def try_out(self, text: str, **options: Any) -> Any:
        """Feed a text that does not stay, as every other does: Monty has it in memory as long as the session lasts."""
        if self._tried > _MOST_TRIED:
            self._begin_again()
        self._aside = self._aside or self._session.dump()
        self._tried += len(text)
        return self._session.feed_start(text, **options)

    def _begin_again(self) -> None:
        """Another session with the state of this one, but for what was tried out."""
        try:
            state = with_timeout(self._aside or self._session.dump(), self._limits["timeout"])
            self._aside, self._tried = None, 0
            self._check_out()
            self._session.load_session(state)
        except (self._monty.MontyError, RuntimeError, ValueError):
            self.kill()

    def abandon(self, step: Any) -> Any:
        """End a script that waits, with an error that `except Exception` does not catch; the error it ends with."""
        monty, stop = self._monty, {"exception": KeyboardInterrupt()}
        for _ in range(_MOST_ANSWERS):
            if isinstance(step, monty.MontyComplete):
                return None
            try:
                if isinstance(step, monty.NameLookupSnapshot):
                    step = step.resume()
                else:
                    is_future = isinstance(step, monty.FutureSnapshot)
                    step = step.resume(dict.fromkeys(step.pending_call_ids, stop) if is_future else stop)
            except (monty.MontyError, TypeError) as problem:
                return problem  # the next feed meets a process that has ended, if it has
        self.kill()
        return None

    def kill(self) -> None:
        """End Monty's process; a run that is under way then ends too."""
        self.ended = True
        with suppress(OSError):
            os.kill(self.pid, _SIGKILL)

    def _check_out(self) -> None:
        if self._session is not None:
            self._session.__exit__(None, None, None)
        timeout = self._limits["timeout"]
        memory = self._limits["max_memory"] + _CHECKER * self._has_checker
        limits = {"max_suspensions": _UNLIMITED, "max_memory": memory}
        self._session = self._pool.checkout(
            limits=limits if timeout is None else {**limits, "max_feed_duration_secs": float(timeout)},
            type_check=self._has_checker,
            type_check_stubs=self._stubs.get("", ""),
            type_check_format="json",
            external_modules=self.modules,
            os_policy={"datetime": "call_host", "sleep": "call_host", "random_start": {"seed": 0}},
        ).__enter__()
        self.pid = self.pid or int(self._session.worker_pid)

    def define(self, functions: Collection[str], values: list[tuple[str, Any]], reserved: Collection[str]) -> list[str]:
        """Make modules of these dotted names; the names of the modules."""
        tree: dict[str, Any] = {}
        deepest_first = sorted(functions, key=lambda name: -name.count("."))  # a namespace hides a tool of its name
        for name, item in (*((name, _stand_in) for name in deepest_first), *values):
            *spaces, last = name.split(".")
            if not all(part.isidentifier() and part not in reserved for part in (*spaces, last)):
                continue  # it has another name
            place = tree
            for space in spaces:
                place = place.setdefault(space, {}) if not callable(place.get(space)) else {}
            place.setdefault(last, item)
        roots = [name for name, inner in tree.items() if isinstance(inner, dict) and (name, inner) not in values]
        self.modules.clear()
        self.paths = []
        self.modules.update((name, self._module(tree[name], name)) for name in roots)
        return roots

    def _module(self, members: dict[str, Any], path: str) -> Any:
        """A module and those within it; what is below `tools` has the stubs that it has without that name."""
        self.paths.append(path)
        modules = {name: item for name, item in members.items() if isinstance(item, dict)}
        inner = {**members, **{name: self._module(item, f"{path}.{name}") for name, item in modules.items()}}
        return self._monty.ExternalModule(inner, stubs=self._stubs.get(path.removeprefix("tools").removeprefix(".")))


def with_timeout(state: bytes, timeout: float | None) -> bytes:
    """A dump of a session, which is CBOR, with another timeout; ValueError where it is not named there just once."""
    limit = b"\xf6"
    if timeout is not None:
        seconds, rest = divmod(min(float(timeout), _UNLIMITED), 1)
        limit = b"\xa2\x64secs\x1b%b\x65nanos\x1b%b" % (_eight_bytes(seconds), _eight_bytes(rest * 1e9))
    if len(_DURATION.findall(state)) != 1:
        raise ValueError("the dump does not name its limits")
    return _DURATION.sub(lambda _: limit, state)


def _eight_bytes(number: float) -> bytes:
    return int(number).to_bytes(8, "big")


def _stand_in(*_: Any) -> None:
    """What a module of Monty has in the place of a tool; the call itself comes as a snapshot."""
