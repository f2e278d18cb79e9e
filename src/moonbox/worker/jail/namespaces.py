"""What the zygote leaves behind for its workers: other users, the network, other processes, root."""

from __future__ import annotations

import os

from moonbox.worker.jail.layers import Unavailable
from moonbox.worker.jail.process import PR_SET_PDEATHSIG, PR_SET_SECUREBITS, SECUREBITS, SIGKILL, write_file

TYPE_CHECKING = False  # see layers.py
if TYPE_CHECKING:
    from moonbox.worker.jail.libc import Libc

CLONE_NEWIPC = 0x0800_0000
CLONE_NEWUSER = 0x1000_0000
CLONE_NEWPID = 0x2000_0000
CLONE_NEWNET = 0x4000_0000
FIRST_USER, USERS = 1_700_000_000, 100_000_000  # far above those that people and services have
NOBODY = 65534


def leave_users(libc: Libc) -> str:
    """A user namespace that knows our own user only. It is what an ordinary user needs for the other namespaces."""
    user, group = os.getuid(), os.getgid()
    if user == 0:
        raise Unavailable("not needed: started as root, which may leave the others without it")
    _unshare(libc, CLONE_NEWUSER)
    write_file("/proc/self/setgroups", "deny")
    write_file("/proc/self/uid_map", f"{user} {user} 1")
    write_file("/proc/self/gid_map", f"{group} {group} 1")
    return "no other user's id exists for a worker"


def leave_network(libc: Libc) -> str:
    """A network namespace without any interface that is up, and an IPC namespace."""
    _unshare(libc, CLONE_NEWNET | CLONE_NEWIPC)
    return "no network interface, abstract socket or shared memory of the machine is there"


def leave_processes(libc: Libc) -> str:
    """A process namespace for the processes forked from now on. This process stays where it is.

    The first one is the namespace's own: when it ends, the kernel ends all others there. It does nothing.
    """
    import _signal  # type: ignore[import-not-found]  # see zygote.py

    _unshare(libc, CLONE_NEWPID)
    read, write = os.pipe()
    if os.fork() == 0:
        try:
            libc.prctl(PR_SET_PDEATHSIG, SIGKILL)
            _signal.signal(_signal.SIGCHLD, _signal.SIG_IGN)  # what a dead worker had started ends up here
            os.close(write)
            if os.getppid() == 0:  # the parent, which is outside of the namespace, lives
                os.closerange(0, read)
                os.closerange(read + 1, 4096)
                os.read(read, 1)  # until the parent has ended: it never writes
        finally:
            os._exit(0)
    os.close(read)  # the other end stays open for as long as this process lives
    return "no process of the machine has a number for a worker"


def leave_user(libc: Libc) -> str:
    """For a host that runs as root: a user id that no other user has, or the id of `nobody` where there are few ids."""
    if os.getuid() != 0:
        raise Unavailable("not started as root: workers have your user id")
    try:  # noqa: SIM105 - contextlib would cost its import
        libc.prctl(PR_SET_SECUREBITS, SECUREBITS)  # the capabilities stay until all of them are dropped for good
    except OSError:
        pass  # a root without that right: the change of the user drops them
    own = FIRST_USER + os.getpid() % USERS
    problem = OSError()
    for user in (own, NOBODY):
        try:
            os.setgroups([])
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
        except OSError as error:
            problem = error
            continue
        return f"workers are user {user}, which owns nothing"
    raise Unavailable(f"the user id cannot be changed ({problem.strerror})")


def _unshare(libc: Libc, flags: int) -> None:
    try:
        libc.call("unshare", flags)
    except OSError as error:
        raise Unavailable(f"the kernel or the container does not allow it ({error.strerror})") from None
