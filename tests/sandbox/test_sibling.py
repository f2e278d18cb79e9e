"""The sibling of a Sandbox, in which tool scripts run: it is protected as the Sandbox is."""

from __future__ import annotations

import inspect
import sys
from typing import Any

import pytest

from moonbox import Limits, Middleware, Sandbox
from moonbox.audit.sinks import MemorySink
from tests.attacks.hijacked import HijackedSource

KEPT: dict[str, Any] = {
    "limits": Limits(timeout=7),
    "isolation": "inline",
    "max_workers": 3,
    "approve": lambda call: False,
    "middleware": (Middleware(before=lambda call: None),),
    "redact": ["password"],
    "secrets": {"key": "a-secret-value"},
    "require": ("descriptors",),
    "context": {"user": "ann"},
    "failures": "raise",
}
"""Options that protect, or that tools find: those of the Sandbox hold in its sibling."""
ITS_OWN = {
    "tools": "it has none",
    "language": "tool scripts say theirs",
    "lua_features": "none are open, which is stricter",
    "min_workers": "most projects have few tool scripts",
    "audit": "given to it",
    "journal": "its runs are calls of a run that is in the journal",
    "durability": "no journal",
    "cluster": "tool scripts reach this machine",
    "node_timeout": "no cluster",
    "sleep_after": "no journal",
    "recover": "no journal",
    "approve_script": "tool scripts are not asked about",
    "journal_wait": "no journal",
    "approval_seconds": "no journal",
    "check": "scripts are checked, which is stricter",
    "globals": "of the Sandbox's scripts",
    "allow_nan": "not allowed, which is stricter",
    "telemetry": "the call that it answers has the span",
    "metrics": "the call that it answers is counted",
    "on_call": "of the Sandbox's scripts",
    "on_output": "of the Sandbox's scripts",
}


def test_every_option_is_decided() -> None:
    options = set(inspect.signature(Sandbox).parameters)
    assert KEPT.keys() | ITS_OWN.keys() == options
    assert not KEPT.keys() & ITS_OWN.keys()


@pytest.mark.parametrize("option", KEPT)
def test_what_protects_the_sandbox_protects_its_sibling(option: str) -> None:
    if option == "require" and sys.platform != "linux":
        pytest.skip("needs the layers of Linux")
    with Sandbox(min_workers=0, **{option: KEPT[option]}) as box, box.sibling(MemorySink()) as twin:
        for name in ("limits", "isolation", "max_workers", "require", "context", "failures"):
            assert getattr(twin, name) == getattr(box, name)
        for part in ("approve", "middleware", "limits", "context", "failures"):
            assert getattr(twin._settings, part) == getattr(box._settings, part)
        for part in ("redactor", "secrets"):
            assert getattr(twin._services.records, part) is getattr(box._services.records, part)
        assert twin.run("return 1").value == 1


def test_a_source_of_workers_is_not_shared() -> None:
    """It is configured for one Sandbox; a process is isolated no less."""
    source = HijackedSource()
    with Sandbox(isolation=source, min_workers=0) as box, box.sibling() as twin:
        assert twin.isolation == "process"
        assert twin.run("return 1").value == 1
