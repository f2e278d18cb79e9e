"""The Lua virtual machine of one Repl: lupa's runtime, our prelude in it, and the calls between them."""

from __future__ import annotations

import json
import os
import time

from moonbox.languages.engine import EngineReport
from moonbox.languages.lua.interrupt import Interrupt

TYPE_CHECKING = False  # see protocol.py: a worker starts without `typing`
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from moonbox.languages.engine import Wire

PRELUDE = os.path.join(os.path.dirname(__file__), "prelude")  # noqa: PTH118, PTH120 - pathlib is slow to import here
_SLACK = 64 * 1024  # what a host call may need of Lua's memory for its own values
_CANCELLED, _MEMORY = 2, 4
_REASONS = {0: "", 1: "time", _CANCELLED: "cancelled", 3: "calls", _MEMORY: "memory"}
_LIMITS = ("max_string", "max_array", "max_depth", "max_output", "max_memory")
_KEPT_FROM = 500  # bytes; see prelude/kept.lua
_NONE = type(None)
_DIRECT = frozenset({bytes, int, float, bool})
_DIRECT_OR_NONE = _DIRECT | {_NONE}
_NODE_COST = 48  # bytes of Python and Lua memory for each element of a JSON text, at the least


class LuaVM:
    """One Lua state. Runs are serial; `interrupt` may be called from another thread."""

    warm_up = b"return 1"

    def __init__(self, native: Any = None) -> None:
        import lupa.lua54 as lua54  # as in rhai/program.py

        self._runtime = lua54.LuaRuntime(
            encoding=None,
            register_eval=False,
            register_builtins=False,
            unpack_returned_tuples=True,
            attribute_handlers=(_no_attribute, _no_attribute),
            max_memory=0,
        )
        self._interrupt = Interrupt(lua54.__file__)
        self.polling = self._interrupt.why_polling
        """Why the interrupt has to poll; empty when it need not."""
        self._reason = 0
        self._run_number = 0
        self._used = False  # whether a script has run here
        self._early = -1, 0
        self._peak = 0
        self._max_memory = 0
        self._printed = 0
        self._max_output = 0
        self._wire: Wire = None  # type: ignore[assignment]  # connected before the first run
        self._limits: Mapping[str, Any] = {}
        self._native = self._opened(native, lua54.__file__)
        self.is_native = self._native is not None
        self._engine = self._load_prelude()
        self._inbound = Inbound(self._runtime, self._engine)
        self._engine[b"install_hook"]()
        if self._native is not None:
            self._native.take_hook()
        self._interrupt.attach(int(self._engine[b"main_thread"](), 16))
        self._run = self._engine[b"run"]
        self._base = self._memory_used()
        self._lua_limits: Any = None

    def connect(self, wire: Wire) -> None:
        self._wire = wire

    def configure(self, config: Mapping[str, Any]) -> None:
        """Build the environment: `tools` (name, target, and how they are paged), `functions`, `values`, `features`.

        `runtime` is that of a guest language (a Lua chunk), if the scripts are in one.
        """
        value = self._inbound.value
        table = self._runtime.table_from
        runtime = config.get("runtime")
        self._engine[b"configure"](
            table(
                {
                    **({b"runtime": runtime} if runtime else {}),
                    b"tools": value([list(entry) for entry in config["tools"]]),
                    b"functions": value([[name, target] for name, target in config["functions"]]),
                    b"values": table([table([name.encode(), value(item)]) for name, item in config["values"]]),
                    b"features": table({feature.encode(): True for feature in config["features"]}),
                }
            )
        )
        # What tools and a runtime take is not the script's.
        if not (self._used or (self._native is not None and self._native.has_run())):
            self._engine[b"collect"]()
            self._base = self._memory_used()
            if self._limits:
                self.set_limits(self._limits)

    def set_limits(self, limits: Mapping[str, Any]) -> None:
        self._limits = limits
        self._max_memory = limits["max_memory"]
        self._max_output = limits["max_output"]
        entries = {
            **{name.encode(): limits[name] for name in _LIMITS},
            b"max_nodes": min(limits["max_array"] * 20, self._max_memory // 64),  # shared tables unfold into many
            b"allow_nan": bool(limits.get("allow_nan")),
            b"memory_soft": self._max_memory + self._base,
            b"memory_base": self._base,
            b"polling": self._native is None and bool(self.polling),
        }
        if limits["max_operations"] is not None:
            entries[b"max_operations"] = limits["max_operations"]
        self._lua_limits = self._runtime.table_from(entries)
        self._engine[b"limits"](self._lua_limits)
        if self._memory_used() > self._max_memory + self._base:  # garbage must not raise the limit of the next run
            self._engine[b"collect"]()

    def set_inputs(self, inputs: list[tuple[str, Any]]) -> None:
        """Globals of the next run, and of that run only."""
        table, value = self._runtime.table_from, self._inbound.value
        self._engine[b"inputs"](table([table([name.encode(), value(item)]) for name, item in inputs]))

    def run(self, source: bytes, number: int, seed: int) -> EngineReport:
        """Run one script to its end."""
        report = EngineReport()
        self._reason = 0
        self._printed = 0
        self._peak = 0
        chunk = b"script" if number == 1 else b"script#%d" % number
        began = time.thread_time()
        self._limit_memory(len(source))  # handing it over is not protected: Lua would end the whole process
        self._run_number = number
        self._used = self._used or number > 0
        if self._early[0] == number:
            self.interrupt(*self._early)
        try:
            result = self._run(source, chunk, seed, self._lua_limits)
        except Exception as problem:  # noqa: BLE001 - whatever lupa raises here, the run failed and the host must hear it
            result = self._broken(problem)
        self._run_number = 0
        self._interrupt.clear()
        self._note_memory()
        self._runtime.set_max_memory(0)
        report.cpu = time.thread_time() - began
        report.memory = self._peak
        self._fill(report, result)
        if len(report.values) >= _KEPT_FROM or self._printed >= _KEPT_FROM:
            report.kept = self._engine[b"kept"]()
        if report.limit == "memory":
            self._engine[b"collect"]()
        return report

    def check(self, source: bytes) -> EngineReport:
        """Compile a script without running it, within the memory of a run."""
        report = EngineReport()
        self._limit_memory(len(source))
        try:
            result = self._engine[b"check"](source, b"script")
        except Exception as problem:  # noqa: BLE001 - as in `run`
            result = self._broken(problem)
        self._runtime.set_max_memory(0)
        if result[0] != b"ok":
            self._fill(report, result)
        return report

    def interrupt(self, number: int, reason: int) -> bool:
        """From another thread: stop that run. False when it is not under way; it stops as soon as it begins."""
        self._early = number, reason
        if self._run_number != number:
            return False
        self._reason = reason
        self._interrupt.trip()
        return True

    def interrupt_any(self, reason: int) -> None:
        """From another thread: stop whatever runs."""
        if self._run_number:
            self.interrupt(self._run_number, reason)

    def halt(self, reason: int) -> None:
        """The run under way must stop for that reason as soon as the host call it is in returns."""
        self._reason = reason

    def globals(self) -> bytes:
        """JSON of [name, kind] pairs: what scripts have defined."""
        return bytes(self._engine[b"globals"]())

    def inspect(self, call: int, number: int) -> bytes:
        """What the script has that waits for that call; see prelude/inspect.lua. Called from within an exchange."""
        return bytes(self._engine[b"inspect"](call, number) or b"")

    # What the prelude calls. None of these may raise: an exception would hand a Python object to the script.

    def _host_exchange(self, calls: bytes) -> Any:
        self._note_memory()
        self._runtime.set_max_memory(0)
        size = 0
        try:
            answers = self._wire.exchange(calls)
            if answers is None:
                self._reason = self._reason or _CANCELLED
                return -1
            convert = self._inbound.value
            flat: list[Any] = []
            for call, ok, value in answers:
                if type(value) is str or type(value) is bytes:
                    size += len(value) * 4
                flat += (call, ok, convert(value))
            size += len(flat) * 64  # the stack may have to grow for them
            return tuple(flat)
        except MemoryError:
            self._reason = self._reason or _MEMORY
            return -1
        except Exception:  # noqa: BLE001 - see above
            self._reason = self._reason or _CANCELLED
            return -1
        finally:
            self._limit_memory(size)

    def _host_cancel(self, ids: bytes) -> None:
        try:
            self._wire.cancel(ids)
        except Exception:  # noqa: BLE001 - see above; the next exchange meets the same problem
            self._reason = self._reason or _CANCELLED

    def _host_emit(self, text: bytes) -> int:
        """0 when it was printed whole, 1 when max_output is reached, -1 when the run must stop."""
        room = self._max_output - self._printed
        self._printed += len(text)
        try:
            if room > 0:
                self._wire.emit(text if len(text) <= room else text[:room])
        except Exception:  # noqa: BLE001 - see above
            self._reason = self._reason or _CANCELLED
            return -1
        return 0 if len(text) <= room else 1

    def _host_decode(self, text: bytes) -> Any:
        """(True, value) or (False, why not); nothing when there is not enough memory."""
        nodes = text.count(b",") + text.count(b"[") + text.count(b"{")
        if nodes * _NODE_COST > self._max_memory:
            return None
        # While Python makes Lua values, an error for want of memory would end the process.
        if self._native is not None:
            self._native.lift_limit()
        else:
            self._runtime.set_max_memory(0)
        try:
            value = json.loads(text.decode(), parse_constant=_no_constant, parse_int=_lua_int)
            return True, self._inbound.value(value)
        except RecursionError:
            return False, b"nested too deeply"
        except UnicodeDecodeError:
            return False, b"the text is not UTF-8"
        except json.JSONDecodeError as problem:
            return False, f"{problem.msg} at line {problem.lineno}, column {problem.colno}".encode()
        except ValueError as problem:
            return False, str(problem).encode()
        except Exception:  # noqa: BLE001 - see above; memory it is, or a stop that the prelude knows of
            return None
        finally:
            self._limit_memory(0)

    @property
    def output_cut(self) -> int:
        """Bytes printed past the limit in the last run."""
        return max(0, self._printed - self._max_output)

    def _memory_used(self) -> int:
        if self._native is not None:
            return int(self._native.used())
        return int(self._runtime.get_memory_used(total=True))

    def _limit_memory(self, extra: int) -> None:
        if self._native is not None:
            self._native.limit()
            return
        used = self._runtime.get_memory_used(total=True)
        self._runtime.set_max_memory(max(self._max_memory + self._base, used + extra) + _SLACK, total=True)

    def _note_memory(self) -> None:
        self._peak = max(self._peak, self._runtime.get_memory_used(total=True) - self._base)

    def _fill(self, report: EngineReport, result: Any) -> None:
        report.kind = result[0].decode()
        report.operations = result[4] if len(result) > 4 else None
        if report.kind == "ok":
            report.values = result[1]
            return
        if report.kind == "stop":
            reason = result[1]
            report.limit = reason.decode() if isinstance(reason, bytes) else _REASONS.get(reason, "")
            report.message, report.frames = result[2], result[3]
            if len(result) > 5:
                report.extra = result[5]
            return
        report.message, report.frames, report.extra = result[1], result[2], result[3]

    def _broken(self, problem: Exception) -> tuple[Any, ...]:
        if self._reason:
            return (b"stop", self._reason, b"", b"[]")
        text = str(problem)
        if "not enough memory" in text or isinstance(problem, MemoryError):
            return (b"stop", b"memory", b"the script needed more memory than max_memory allows", b"[]")
        return (b"runtime", text.encode(), b"[]", b"{}")

    def _load_prelude(self) -> Any:
        runtime = self._runtime
        load = runtime.execute(b"return function(text, name) return assert(load(text, name, 't')) end")
        names = sorted(name[:-4] for name in os.listdir(PRELUDE) if name.endswith(".lua"))  # noqa: PTH208 - as above
        chunks = {name: load(_read(name), f"=moonbox/{name}".encode()) for name in names}
        host = runtime.table_from(
            {
                b"reason": lambda: self._reason,
                b"exchange": self._host_exchange,
                b"cancel": self._host_cancel,
                b"emit": self._host_emit,
                b"decode": self._host_decode,
                b"enter": self._interrupt.enter,
                b"leave": self._interrupt.leave,
                b"adopt": self._interrupt.adopt,
            }
        )
        chunks["by_address"]()(host)
        return chunks["main"](host, lambda name: chunks[name.decode()]())

    def _opened(self, native: Any, library: str) -> Any:
        """The native part, in charge of this Lua state; None where there is none or it does not fit lupa's build."""
        if native is None:
            return None
        try:
            native.open(library, int(self._runtime.execute(b"return string.format('%p', coroutine.running())"), 16))
        except ImportError:
            return None
        return native


class Inbound:
    """Converts for one Lua runtime. None is nil there; tables remember where it was (prelude/nulls.lua)."""

    def __init__(self, runtime: Any, engine: Any) -> None:
        self._table_from = runtime.table_from
        self._mark = engine[b"mark"]
        self._mark_array = engine[b"nulls"][b"array"]
        self._mark_fields = engine[b"nulls"][b"fields"]

    def value(self, value: Any) -> Any:
        kind = type(value)
        if kind is str:
            return _encode(value)
        if kind in _DIRECT or value is None:
            return value
        if kind is list:
            return self._array(value)
        if kind is dict:
            return self._dict(value)
        raise TypeError(f"not a plain value: {kind.__name__}")

    def _array(self, items: list[Any]) -> Any:
        kinds = set(map(type, items))
        flat = kinds <= _DIRECT_OR_NONE
        table = self._table_from(items if flat else [self.value(item) for item in items])
        return self._mark_array(table, len(items)) if _NONE in kinds else self._mark(table)

    def _dict(self, items: dict[Any, Any]) -> Any:
        convert = self.value
        fields = {
            (_encode(key) if type(key) is str else key): convert(item)
            for key, item in items.items()
            if item is not None
        }
        table = self._table_from(fields)
        if len(fields) == len(items):
            return table
        absent = [_encode(key) if type(key) is str else key for key, item in items.items() if item is None]
        return self._mark_fields(table, self._table_from([key for key in absent if key not in fields]))


def _encode(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:  # a lone surrogate, which no UTF-8 text can hold
        return text.encode("utf-8", "replace")


def _read(name: str) -> bytes:
    with open(f"{PRELUDE}/{name}.lua", "rb") as file:  # noqa: PTH123 - pathlib is slow to import here
        return file.read()


def _no_attribute(*_: Any) -> Any:
    raise AttributeError("not available")


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _lua_int(text: str) -> int | float:
    number = int(text) if len(text) < 40 else float(text)
    return number if isinstance(number, float) or -(2**63) <= number < 2**63 else float(text)
