"""A diagnosis of this machine: isolation, protections, the configuration, and versions of packages."""

from __future__ import annotations

import os
import platform
import re
import sys
import threading
import time
from collections import Counter
from dataclasses import asdict, dataclass, replace
from importlib import metadata
from typing import TYPE_CHECKING, Any

from moonbox.errors import MoonboxError, UsageError
from moonbox.native import why_missing
from moonbox.wording import counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from moonbox.config import Config


@dataclass(frozen=True, slots=True)
class Check:
    """One protection or feature: whether it is active, and how, or why not."""

    name: str
    active: bool
    detail: str


@dataclass(frozen=True, slots=True)
class Package:
    """A package that moonbox uses; `extra` names the optional part of moonbox that needs it."""

    name: str
    version: str | None
    extra: str | None = None


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Everything that `moonbox doctor` shows."""

    moonbox: str
    python: str
    machine: str
    isolation: Check
    """Whether a script really runs in a process of its own."""
    native: Check
    """Whether a worker's loop is the native one, or that in Python."""
    interrupt: Check
    fork: Check
    chores: Check
    """Whether data of strangers, such as SQL, YAML and PDF, is read in jailed processes."""
    layers: tuple[Check, ...]
    configuration: tuple[Check, ...]
    """The moonbox.toml that is used here, and its invalid sections; empty without one."""
    packages: tuple[Package, ...]

    @property
    def ok(self) -> bool:
        return self.isolation.active and all(check.active for check in self.configuration)

    def to_dict(self) -> dict[str, Any]:
        return {"ok": self.ok, **asdict(self)}


def diagnose(config: Path | None = None) -> Diagnosis:
    """Try everything out, in a fraction of a second. Without a file, the nearest moonbox.toml is checked."""
    from moonbox import __version__

    isolation, native, worker_layers = _isolation()
    layers = _layers(worker_layers)
    return Diagnosis(
        moonbox=__version__,
        python=f"{platform.python_implementation()} {platform.python_version()}",
        machine=f"{platform.system()} {platform.release()} on {platform.machine()}",
        isolation=isolation,
        native=native,
        interrupt=_interrupt(),
        fork=_FORK if hasattr(os, "fork") else Check("fork", False, f"{sys.platform} has no fork, which workers need"),
        chores=_chores(),
        layers=layers,
        configuration=_configuration(config, layers),
        packages=_packages(),
    )


class Doctor:
    """Diagnoses of a process that lives long: the machine is tried once, the configuration is read each time."""

    def __init__(self, config: Path | None = None) -> None:
        self._config = config
        self._lock = threading.Lock()  # two pages that are opened together do not both try everything
        self._first: Diagnosis | None = None

    def diagnose(self) -> Diagnosis:
        with self._lock:
            if self._first is None:
                self._first = diagnose(self._config)
                return self._first
        return replace(self._first, configuration=_configuration(self._config, self._first.layers))


def _isolation() -> tuple[Check, Check, dict[str, Check]]:
    """Run a script in a worker process; also which loop ran it, and the layers that this worker reports of its jail."""
    from moonbox.sandbox.sandbox import Sandbox

    began = time.perf_counter()
    unknown = Check("native", False, "not known: no script ran in a worker")
    try:
        with Sandbox(min_workers=0) as box, box.repl() as repl:
            run = repl.run("return 6 * 7")
            pid, jail, native = repl.worker_pid, repl.worker_jail, repl.worker_native
    except (MoonboxError, OSError) as problem:
        reason = f"{problem}; only isolation=inline works here, for scripts that you trust"
        return Check("process", False, reason), unknown, {}
    if run.error is not None or run.value != 42 or pid in (None, os.getpid()):
        return Check("process", False, f"a worker returned a wrong result: {run.error or run.value}"), unknown, {}
    spent = (time.perf_counter() - began) * 1000
    process = Check("process", True, f"a script ran in a process of its own ({spent:.0f} ms in all)")
    how = "workers run scripts and calls in compiled code" if native else f"workers run in Python: {why_missing()}"
    return process, Check("native", native, how), {layer.name: _checked(layer) for layer in jail}


def _checked(layer: Any) -> Check:
    return Check(layer.name, layer.active, layer.detail)


def _interrupt() -> Check:
    """How running code is stopped. Workers use the same engine."""
    try:
        from moonbox.languages.engine import create_engine

        why = create_engine().polling
    except (ImportError, OSError) as problem:
        return Check("interrupt", False, f"the engine does not start: {problem}")
    if why:
        return Check("interrupt", False, f"running code is checked all the time, which makes it slower: {why}")
    return Check("interrupt", True, "running code is interrupted from outside, at no cost while it runs")


def _chores() -> Check:
    """Start a process for chores, and ask it for its layers."""
    from moonbox.worker.chores import ChoreFailed, Chores

    try:
        with Chores("moonbox.worker.chore_process") as chores:
            layers = chores.layers()
    except ChoreFailed as problem:
        return Check("chores", False, f"SQL, YAML and documents cannot be read: a process for it {problem.reason}")
    needed = ("no-new-privileges", "landlock", "descriptors", "parent-death", "memory-limit", "seccomp")
    missing = [layer.name for layer in layers if layer.name in needed and not layer.active]
    how = f"without {', '.join(missing)}" if missing else f"with {', '.join(needed)}"
    return Check("chores", not missing, f"SQL, YAML and documents are read in processes of their own, {how}")


_FORK = Check("fork", True, "workers are forked from a process that has everything loaded")


def _layers(reported: Mapping[str, Check]) -> tuple[Check, ...]:
    """A layer is active if an attempt to get past it failed, and a real worker reports it as active."""
    from moonbox.worker import jail

    try:
        tried = [_checked(layer) for layer in jail.report()]
    except OSError as problem:
        return (Check("jail", False, f"the layers could not be tested: {problem}"),)
    return tuple(reported.get(check.name, check) if check.active else check for check in tried)


def _configuration(path: Path | None, layers: Sequence[Check]) -> tuple[Check, ...]:
    from moonbox.config import FILE_NAME, Config
    from moonbox.project.sections import problems, read_sandbox
    from moonbox.project.trust import TrustStore, trusts_all

    try:
        config = Config.load(path)
    except MoonboxError as problem:
        return (Check(path.name if path is not None else FILE_NAME, False, str(problem)),)
    if config.path is None:
        return ()
    wrong, active = problems(config), {layer.name for layer in layers if layer.active}
    valid = [f"[{name}]" for name in config.data if name not in wrong]
    detail = f"{config.path}: {', '.join(valid)} valid" if valid else f"{config.path}"
    unset = config.unset
    checks = [
        Check(f"[{name}]", False, problem)
        for name, problem in wrong.items()
        if not any(problem.endswith(one) for one in unset)
    ]
    checks += [Check("variable", False, problem) for problem in unset]
    if "sandbox" in config.data and "sandbox" not in wrong:
        required = read_sandbox(config)["require"]
        checks += [
            Check("[sandbox]", False, f"required layer of the jail missing: '{name}'")
            for name in required
            if name not in active
        ]
    if not (trusts_all() or TrustStore.default().is_trusted(config)):  # then no file that it names is opened
        detail += "; not trusted yet: `moonbox trust` agrees to what it starts and reaches"
        return (Check(config.path.name, True, detail), *checks)
    if config.data.get("journal") and "journal" not in wrong:
        checks.append(_journal(config))
    if "tools" in config.data and "tools" not in wrong:
        checks += _tool_scripts(config)
    checks += [] if "openapi" in wrong else _sources(config)
    return (Check(config.path.name, True, detail), *checks)


def _journal(config: Config) -> Check:
    """Whether the journal can be read."""
    from moonbox.project.sections import open_journal

    try:
        journal = open_journal(config, create=False)
        if journal is None:
            return Check("journal", False, "[journal] has neither path nor url: no run is taken down")
        runs, days = journal.count_runs(), journal.max_days
        journal.close()
    except MoonboxError as problem:
        return Check("journal", type(problem) is UsageError, str(problem))  # no file yet: the first run makes it
    kept = f"Repls are deleted when they were not used for {days:g} days" if days else "nothing is deleted"
    return Check("journal", True, f"{journal.name} can be read: {counted(runs, 'run')}; {kept}")


def _tool_scripts(config: Config) -> list[Check]:
    """The tool scripts that cannot be used, loaded as they are when they are served."""
    from moonbox.project.assembly import script_library

    try:
        with script_library(config, context={}) as library:
            return [
                Check(script.settings.path.name, False, script.problem)
                for script in library.scripts
                if script.problem is not None and script.settings.problem is None
            ]
    except MoonboxError as problem:
        return [Check("[tools]", False, str(problem))]


def _sources(config: Config) -> list[Check]:
    """What cannot be used of the specifications that are files; nothing is connected to."""
    from moonbox.project.sections import open_source

    local = [name for name, spec in config.section("openapi").items() if "://" not in str(spec.get("spec"))]
    found = [(name, problem) for name in local for problem in open_source(config, "openapi", name).problems[:20]]
    return [Check(f"[openapi.{name}]", False, problem) for name, problem in found]


def _packages() -> tuple[Package, ...]:
    """The packages that moonbox requires, and their installed versions."""
    try:
        required = metadata.requires("moonbox") or []
    except metadata.PackageNotFoundError:
        required = ["lupa"]
    named = [(found[0], _EXTRA.search(line)) for line in required if (found := _NAME.match(line))]
    sizes = Counter(extra[1] for _, extra in named if extra)
    packages: dict[str, Package] = {}
    for name, extra in named:
        known = packages.get(name.lower())
        # Of the extras that need a package, the smallest installs it.
        if known is None or (extra and known.extra and sizes[extra[1]] < sizes[known.extra]):
            packages[name.lower()] = Package(name, _version(name), extra[1] if extra else None)
    return tuple(packages.values())


_NAME = re.compile(r"[A-Za-z0-9._-]+")
_EXTRA = re.compile(r"""extra\s*==\s*["']([^"']+)""")


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
