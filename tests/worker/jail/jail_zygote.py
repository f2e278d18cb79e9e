"""A small zygote for the tests: forks a jailed worker for each request and tells how it ended.

Run as `python -I -S jail_zygote.py FD UID PATH…`: FD is a Unix socket to the tests, UID the user to become first,
or -1 for none.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading


def main() -> None:
    fd, uid, *paths = sys.argv[1:]
    sys.path[:0] = paths
    from lupa import lua54

    from moonbox.worker import jail
    from tests.worker.jail import jail_inside  # loaded here, because nothing can be imported in the jail

    inside = jail_inside.Inside(lua54)
    tests = socket.socket(fileno=int(fd))
    if uid != "-1":
        os.setgroups([])
        os.setresgid(int(uid), int(uid), int(uid))
        os.setresuid(int(uid), int(uid), int(uid))
        inside.prctl(4, 1)  # changing the user hid the process from its own /proc, which a login does not
    prepared = jail.prepare(for_forks=True)
    while True:
        data, fds, _, _ = socket.recv_fds(tests, 65536, 2)
        if not data:
            return
        request = json.loads(data)
        if "wait" in request:
            answer = os.waitpid(request["wait"], 0)[1]
        else:
            answer = spawn(jail, prepared, request, fds, inside)
        tests.sendall(json.dumps(answer).encode())


def spawn(jail, prepared, request, fds, inside) -> int:
    config = jail.JailConfig(
        prepared=prepared,
        keep_fds=tuple(fds),
        parent_pid=request.get("parent_pid", prepared.parent_pid()),
        **request["config"],
    )
    pid = os.fork()
    if pid == 0:
        try:
            live(jail, config, request, fds, inside)
        finally:
            os._exit(70)
    for fd in fds:
        os.close(fd)
    return pid


def live(jail, config, request, fds, inside) -> None:
    main_socket, control = (socket.socket(fileno=fd) for fd in fds)
    inside.enter(main_socket, control)
    attempt = getattr(inside, request["attempt"])
    layers = jail.before_threads(config)
    go, done, told = threading.Event(), threading.Event(), []

    def second_thread() -> None:
        go.wait()
        told.append(answered(attempt, request["arguments"]))
        done.set()

    if request["where"] == "second thread":
        threading.Thread(target=second_thread, daemon=True).start()
    elif request["where"] == "main thread":
        threading.Thread(target=inside.control_thread, daemon=True).start()
    if request["filter"]:
        layers += jail.after_threads(config)
    if request["where"] == "second thread":
        go.set()
        done.wait()
    else:
        told.append(answered(attempt, request["arguments"]))
    inside.tell({"value": told[0], "layers": [list(layer) for layer in layers]})
    inside.finish()


def answered(attempt, arguments) -> object:
    try:
        return attempt(*arguments)
    except Exception as error:  # noqa: BLE001 - told to the test, which decides
        return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    main()
