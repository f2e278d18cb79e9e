"""Inline workers: the same engine and protocol in threads of the host process. No jail: for trusted scripts only."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

from moonbox.worker.child import Child, HangUp
from moonbox.worker.link import Link, socket_pairs

__all__ = ["InlineSource"]


@dataclass(frozen=True, slots=True)
class _Thread:
    """A thread cannot be killed: a script that does not stop by itself keeps its thread until it does."""

    def kill(self) -> str:
        return ""


class InlineSource:
    """Makes workers that are threads."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._config = config
        self._threads: list[threading.Thread] = []

    def spawn(self) -> Link:
        main, control, theirs, theirs_control = socket_pairs()
        thread = threading.Thread(
            target=_serve, args=(theirs, theirs_control, self._config), name="moonbox-inline", daemon=True
        )
        thread.start()
        self._threads = [*(old for old in self._threads if old.is_alive()), thread]
        return Link(main, control, None, _Thread())

    def configure(self, config: dict[str, Any]) -> None:
        self._config = config

    def close(self) -> None:
        """Their sockets are closed by now: the threads end, except one that is stuck in a script."""
        for thread in self._threads:
            thread.join(0.5)


def _serve(sock: Any, control: Any, config: dict[str, Any]) -> None:
    from moonbox.languages.engine import create_engine

    vm = create_engine()
    vm.set_limits(config["limits"])
    vm.configure(config["environment"])
    child = Child(sock, control, vm)
    watchers: list[threading.Thread] = []

    def start(target: Any, arguments: tuple[Any, ...]) -> None:
        watchers.append(threading.Thread(target=target, args=arguments, name="moonbox-control", daemon=True))
        watchers[0].start()

    child.watch(lambda: vm.interrupt_any(2), start)
    try:
        child.serve()
    except HangUp:
        pass
    finally:
        sock.close()
        watchers[0].join(1.0)
        control.close()
