"""Workers that are threads of the host process, without a jail: `isolation="inline"` is for trusted scripts only."""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from moonbox.worker.control import CpuClock, SocketControl, socket_pairs

if TYPE_CHECKING:
    from moonbox.worker.link import Link


class InlineSource:
    """Makes workers that are threads. They cannot be killed: a script that does not stop keeps its thread."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._config = config
        self._threads: list[threading.Thread] = []

    def spawn(self) -> Link:
        from moonbox.worker.link import Link

        main, control, theirs, theirs_control = socket_pairs()
        thread = threading.Thread(
            target=_serve, args=(theirs, theirs_control, self._config), name="moonbox-inline", daemon=True
        )
        thread.start()
        self._threads = [*(old for old in self._threads if old.is_alive()), thread]
        return Link(main, SocketControl(control), cpu=_thread_clock(thread))

    def configure(self, config: dict[str, Any]) -> None:
        self._config = config

    def close(self) -> None:
        """Wait for the threads, whose sockets are closed by now. One that is stuck in a script is left running."""
        for thread in self._threads:
            thread.join(0.5)


def _serve(sock: Any, control: Any, config: dict[str, Any]) -> None:
    from moonbox.languages.engine import DEFAULT_ENGINE, create_engine
    from moonbox.worker.child import Child, HangUp

    engine = config.get("engine", {})
    vm = create_engine(name=engine.get("name", DEFAULT_ENGINE))
    vm.set_limits(config["limits"])
    vm.configure(config["environment"])
    if engine.get("program") is not None:
        vm.start(engine["program"])
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


def _thread_clock(thread: threading.Thread) -> CpuClock | None:
    if sys.platform != "linux" or thread.ident is None:
        return None
    return CpuClock(time.pthread_getcpuclockid(thread.ident))
