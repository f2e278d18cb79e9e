"""What the tests do inside a jailed worker: attempts to get out, and the work that must go on."""

from __future__ import annotations

import ctypes
import errno
import gc
import json
import mmap
import os
import resource
import select
import signal
import socket
import threading
import time
import traceback

from moonbox.worker.jail.policy import ARCHITECTURES, numbers

# Calls that the policy does not name: (x86_64, aarch64).
UNNAMED = {
    "open": (2, None), "openat": (257, 56), "openat2": (437, 437), "creat": (85, None), "statx": (332, 291),
    "newfstatat": (262, 79), "readlinkat": (267, 78), "getdents64": (217, 61), "unlinkat": (263, 35),
    "mkdirat": (258, 34), "renameat2": (316, 276), "linkat": (265, 37), "symlinkat": (266, 36), "fchmodat": (268, 53),
    "truncate": (76, 45), "memfd_create": (319, 279),
    "socket": (41, 198), "socketpair": (53, 199), "connect": (42, 203), "bind": (49, 200), "listen": (50, 201),
    "accept4": (288, 242), "sendmsg": (46, 211), "recvmsg": (47, 212), "sendmmsg": (307, 269), "recvmmsg": (299, 243),
    "setsockopt": (54, 208), "getsockopt": (55, 209),
    "dup": (32, 23), "dup3": (292, 24), "fcntl": (72, 25), "pipe2": (293, 59), "eventfd2": (290, 19),
    "epoll_create1": (291, 20), "inotify_init1": (294, 26), "timerfd_create": (283, 85), "signalfd4": (289, 74),
    "fork": (57, None), "vfork": (58, None), "clone": (56, 220), "clone3": (435, 435),
    "kill": (62, 129), "tkill": (200, 130), "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240),
    "rt_sigaction": (13, 134),
    "setuid": (105, 146), "setgid": (106, 144), "setresuid": (117, 147), "setgroups": (116, 159), "capset": (126, 91),
    "prctl": (157, 167), "personality": (135, 92), "seccomp": (317, 277), "landlock_create_ruleset": (444, 444),
    "setrlimit": (160, 164), "setsid": (112, 157), "setpgid": (109, 154), "setpriority": (141, 140),
    "sched_setaffinity": (203, 122), "sched_setscheduler": (144, 119), "ioprio_set": (251, 30),
    "shmget": (29, 194), "msgget": (68, 186), "semget": (64, 190), "mq_open": (240, 180),
    "mlock": (149, 228), "remap_file_pages": (216, 234), "pkey_mprotect": (329, 288), "mbind": (237, 235),
    "timer_create": (222, 107), "setitimer": (38, 103), "membarrier": (324, 283), "rseq": (334, 293),
    "arch_prctl": (158, None), "uname": (63, 160), "sysinfo": (99, 179), "getcwd": (79, 17), "chdir": (80, 49),
    "umask": (95, 166), "sync": (162, 81),
}  # fmt: skip
COLUMN = {"x86_64": 0, "aarch64": 1}[os.uname().machine]
ARCHITECTURE = ARCHITECTURES[os.uname().machine]
NUMBERS: dict[str, int] = {
    **numbers(ARCHITECTURE),
    **{name: number for name, row in UNNAMED.items() if (number := row[COLUMN]) is not None},
}

LUA_MASKCOUNT = 8
PRIVATE_MEMORY = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
MIB = 1024 * 1024


class Inside:
    """Made in the zygote; `enter` gives it the worker's sockets."""

    def __init__(self, lua54) -> None:
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.libc.syscall.restype = ctypes.c_long
        self.lua = lua54.LuaRuntime(register_eval=False)
        self.capi = ctypes.CDLL(lua54.__file__)
        self.capi.lua_gethook.restype = ctypes.c_void_p
        self.capi.lua_gethook.argtypes = [ctypes.c_void_p]
        self.capi.lua_sethook.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
        state = self.lua.eval("string.format('%p', (coroutine.running()))")
        self.lua.execute("debug.sethook(function() debug.sethook() error('stopped', 0) end, '', 1000000000)")
        self.state = int(state, 16)
        self.hook = self.capi.lua_gethook(self.state)
        self.capi.lua_sethook(self.state, None, 0, 0)
        self.exception_text()  # what it imports when it is first used has to be there before the jail

    def enter(self, main: socket.socket, control: socket.socket) -> None:
        self.main, self.control = main, control
        self.seen = 0
        self.leaving = False

    def tell(self, value: object) -> None:
        self.main.sendall(json.dumps(value).encode() + b"\n")

    def finish(self) -> None:
        if self.leaving:
            ctypes.pythonapi.Py_Exit(3)
        os._exit(0)

    def control_thread(self) -> None:
        """On a byte from the host, stop the Lua code that runs in the main thread."""
        while self.control.recv(1):
            self.seen += 1
            self.capi.lua_sethook(self.state, self.hook, LUA_MASKCOUNT, 1)

    # Attempts

    def raw(self, name: str, *arguments: int) -> str:
        """A bare system call: the name of its error, or what it returned."""
        return self._syscall(NUMBERS[name], *arguments)

    def raw_number(self, number: int) -> str:
        return self._syscall(number)

    def signal_itself(self) -> str:
        return self._syscall(NUMBERS["tgkill"], os.getpid(), threading.get_native_id(), 0)

    def signal_other(self, pid: int) -> str:
        return self._syscall(NUMBERS["tgkill"], pid, pid, 0)

    def map(self, protection: int, flags: int) -> str:
        return self._syscall(NUMBERS["mmap"], 0, 4096, protection, flags, -1, 0)[:5]

    def protect(self, protection: int) -> str:
        """On a page of its own: the heap could not be freed from a page that is read-only."""
        writable = mmap.PROT_READ | mmap.PROT_WRITE
        page = self._syscall(NUMBERS["mmap"], 0, 4096, writable, PRIVATE_MEMORY, -1, 0)
        return self._syscall(NUMBERS["mprotect"], int(page), 4096, protection)

    def send_to_path(self, path: str) -> str:
        address = ctypes.create_string_buffer(b"\1\0" + path.encode())
        data = ctypes.create_string_buffer(b"x")
        fd = self.main.fileno()
        return self._syscall(
            NUMBERS["sendto"], fd, ctypes.addressof(data), 1, 0, ctypes.addressof(address), len(address)
        )

    def send_out_of_band(self) -> str:
        return failure(lambda: self.main.send(b"x", socket.MSG_OOB))

    def receive_out_of_band(self) -> str:
        return failure(lambda: self.main.recv(1, socket.MSG_OOB))

    def python(self, what: str) -> str:
        """An escape as Python code would try it."""
        attempts = {
            "read a file": lambda: open("/etc/passwd"),  # noqa: PTH123, SIM115
            "write a file": lambda: open("/tmp/moonbox-jail-test", "w"),  # noqa: PTH123, SIM115
            "list a folder": lambda: os.listdir("/"),  # noqa: PTH208
            "read its environment": lambda: open("/proc/self/environ"),  # noqa: PTH123, SIM115
            "delete a file": lambda: os.unlink("/etc/passwd"),  # noqa: PTH108
            "make a socket": socket.socket,
            "fork": os.fork,
            "kill the first process": lambda: os.kill(1, signal.SIGTERM),
            "kill everyone": lambda: os.kill(-1, signal.SIGTERM),
            "become root": lambda: os.setuid(0),
            "leave its session": os.setsid,
            "duplicate a descriptor": lambda: os.dup(self.main.fileno()),
            "make a pipe": os.pipe,
            "start a program": lambda: os.execv("/bin/true", ["true"]),
            "import a module": lambda: __import__("this"),
            "start a thread": lambda: threading.Thread(target=print).start(),
            "connect to TCP": lambda: socket.socket().connect(("127.0.0.1", 9)),
        }
        return failure(attempts[what])

    def connect_abstract(self, name: str) -> str:
        return failure(lambda: socket.socket(socket.AF_UNIX).connect("\0" + name))

    def lift_limit(self, name: str) -> str:
        which = getattr(resource, name)
        return failure(lambda: resource.setrlimit(which, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)))

    def raise_soft_limit(self, name: str) -> str:
        which = getattr(resource, name)
        hard = resource.getrlimit(which)[1]
        return failure(lambda: resource.setrlimit(which, (hard, hard)))

    def limits(self) -> dict[str, list[int]]:
        names = [name for name in dir(resource) if name.startswith("RLIMIT_")]
        return {name: list(resource.getrlimit(getattr(resource, name))) for name in names}

    def only_sockets_open(self) -> bool:
        """Whether of the numbers from 0 to 255 its two sockets alone are open."""
        found = [fd for fd in range(256) if failure(lambda: os.read(fd, 0)) != "EBADF"]  # noqa: B023
        return found == sorted([self.main.fileno(), self.control.fileno()])

    def duplicates(self) -> str:
        return failure(lambda: [os.dup(self.main.fileno()) for _ in range(3)])

    def prctl(self, option: int, argument: int) -> int:
        return self.libc.prctl(option, argument, 0, 0, 0)

    def capabilities(self) -> list[int]:
        header, sets = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
        self.libc.capget(header, sets)
        return list(sets)

    def session(self) -> bool:
        return os.getsid(0) == os.getppid()

    def parent(self) -> int:
        return os.getppid()

    def allocate(self, size: int) -> str:
        return failure(lambda: bytearray(size))

    def lua_allocate(self, size: int) -> str:
        try:
            return str(self.lua.eval("function(n) return #string.rep('x', n) end")(size))
        except Exception as error:  # noqa: BLE001 - lupa's own kinds of errors
            return type(error).__name__

    def burn_cpu(self) -> None:
        while True:
            pass

    def burn_cpu_deaf(self) -> None:
        """As above with SIGXCPU blocked, which the filter lets a worker do."""
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGXCPU])
        self.burn_cpu()

    # Work

    def compute(self) -> int:
        return self.lua.eval("(function() local s = 0 for i = 1, 1000000 do s = s + i % 7 end return s end)()")

    def much_memory(self) -> list[int]:
        held = self.lua.eval("(function() kept = string.rep('x', 50 * 1024 * 1024) return #kept end)()")
        self.lua.execute("kept = nil collectgarbage()")
        rows = [{"id": i, "name": str(i)} for i in range(20000)]
        decoded = json.loads(json.dumps(rows))
        gc.collect()
        return [held, len(decoded)]

    def echo(self, size: int) -> int:
        """Receive that many bytes, send them back."""
        data = bytearray(size)
        view, got = memoryview(data), 0
        while got < size:
            got += self.main.recv_into(view[got:])
        self.main.sendall(data)
        return got

    def endless_lua(self) -> str:
        """Runs until the control thread sets the hook; the host is told when to send."""
        self.tell("running")
        try:
            self.lua.execute("while true do end")
        except Exception as error:  # noqa: BLE001 - lupa's own kinds of errors
            return f"{str(error).splitlines()[0]}, then {self.lua.eval('6 * 7')}"
        return "ended by itself"

    def clocks(self) -> bool:
        readings = [time.time(), time.monotonic(), time.perf_counter(), time.process_time(), time.thread_time()]
        time.sleep(0.001)
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return all(readings) and usage.ru_maxrss > 0 and len(os.urandom(8)) == 8 and os.times().user >= 0

    def waits(self) -> list[str]:
        """Every way of waiting: non-blocking, with a timeout, by poll, on locks."""
        lock = threading.Lock()
        lock.acquire()
        self.main.setblocking(False)
        told = [failure(lambda: self.main.recv(1))]
        self.main.settimeout(0.001)
        told.append(failure(lambda: self.main.recv(1)))
        self.main.settimeout(None)
        told.append(failure(lambda: self.main.recv(1, socket.MSG_DONTWAIT)))
        poll = select.poll()
        poll.register(self.main, select.POLLIN)
        poll.register(self.control, select.POLLIN)
        told.append(str(poll.poll(1)))
        told.append(str(lock.acquire(timeout=0.001)))
        told.append(str(threading.Event().wait(0.001)))
        return told

    def threads_take_turns(self, bytes_expected: int) -> int:
        """Compute in this thread until the control thread has seen that many bytes."""
        while self.seen < bytes_expected:
            sum(range(100))
        return self.seen

    def stopped_in_poll(self) -> str:
        """Wait in poll, be stopped and continued by the host, and still see the byte that comes then."""
        self.tell("running")
        poll = select.poll()
        poll.register(self.main, select.POLLIN)
        poll.poll(20000)
        return self.main.recv(1).decode()

    def exception_text(self) -> str:
        try:
            json.loads("{")
        except ValueError:
            return traceback.format_exc().splitlines()[-1]
        return ""

    def write_vector(self) -> int:
        return os.writev(self.main.fileno(), [b'"a vec', b'tor"\n'])

    # Endings

    def abort(self) -> None:
        os.abort()

    def crash(self) -> None:
        ctypes.string_at(8)

    def leave(self) -> None:
        """The interpreter's ordinary end, with its own cleaning up."""
        self.leaving = True

    def _syscall(self, number: int, *arguments: int) -> str:
        result = self.libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, arguments))
        return errno.errorcode[ctypes.get_errno()] if result == -1 else str(result)


def failure(call) -> str:
    """The name of the error that the call ends in, or what it returned."""
    try:
        return f"worked: {call()!r}"
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, type(error).__name__)
    except Exception as error:  # noqa: BLE001 - told to the test, which decides
        return f"{type(error).__name__}: {error}"
