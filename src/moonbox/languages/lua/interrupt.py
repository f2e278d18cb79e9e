"""The interrupt: stops running Lua code from another thread, at no cost while it runs.

A count hook that stands slows every instruction, so none stands. lupa's extension module exports Lua's C API: when a
script must stop, `trip` installs the hook that the prelude prepared, on every coroutine that is running now. The
prelude keeps those coroutines alive as long as they are listed here. Each address is looked up and used under one hold
of the interpreter lock (PyDLL does not let go of it), and `leave` needs that lock too: none that is used can be stale.
"""

from __future__ import annotations

import ctypes

TYPE_CHECKING = False  # see protocol.py: a worker starts without `typing`
if TYPE_CHECKING:
    from typing import Any

_MASK_COUNT = 8


class Interrupt:
    """Where the running coroutines are, and the way to stop them."""

    def __init__(self, module_file: str) -> None:
        self._api: Any = None
        self._hook: int = 0
        self._running: list[int] = []
        self.why_polling = ""
        try:
            api = ctypes.PyDLL(module_file)
            api.lua_sethook.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
            api.lua_sethook.restype = None
            api.lua_gethook.argtypes = [ctypes.c_void_p]
            api.lua_gethook.restype = ctypes.c_void_p
            self._api = api
        except (OSError, AttributeError) as problem:
            self.why_polling = f"the Lua C API is not exported by this build of lupa: {problem}"

    def attach(self, main: int) -> None:
        """Take over the hook that was just installed on the main thread at that address."""
        self._running = [main]
        if self._api is not None:
            self._hook = self._api.lua_gethook(main)
            self._api.lua_sethook(main, None, 0, 0)

    def enter(self, level: int, thread: bytes) -> None:
        """The coroutine at that address runs now, resumed by the one a level below; the main thread's level is 0."""
        running = self._running
        del running[level:]
        running += [running[0]] * (level - len(running))  # one whose own `enter` failed; the main thread stands in
        running.append(int(thread, 16))

    def leave(self, level: int) -> None:
        """That coroutine, and what it had resumed, run no more."""
        del self._running[level:]

    def adopt(self, thread: bytes) -> None:
        """Take the hook off a new coroutine again; it stays known to Lua for `trip`."""
        if self._api is not None:
            self._api.lua_sethook(int(thread, 16), None, 0, 0)

    def trip(self) -> None:
        """Make every running coroutine stop at its next instruction."""
        if self._api is None:
            return
        set_hook, hook, running = self._api.lua_sethook, self._hook, self._running
        # Twice: a processor may show a running coroutine that there is a hook before it shows the hook itself, and the
        # coroutine then forgets about it.
        for _ in range(2):
            level = 0
            while level < len(running):
                try:
                    set_hook(running[level], hook, _MASK_COUNT, 1)
                except IndexError:  # left meanwhile
                    break
                level += 1

    def clear(self) -> None:
        """After a run: no hook stands, and only the main thread is running."""
        del self._running[1:]
        if self._api is not None:
            self._api.lua_sethook(self._running[0], None, 0, 0)
