"""Failures of a sink, whoever wrote it, as AuditError."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from moonbox.errors import AuditError
from moonbox.shortage import shortage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moonbox.audit.records import Run


@contextlib.contextmanager
def writing(run: Run | None = None) -> Iterator[None]:
    """For a call of a sink: an OSError becomes an AuditError, which gets the run that could not be written."""
    try:
        yield
    except AuditError as problem:
        problem.run = run
        raise
    except OSError as problem:
        reason = shortage(problem) or str(problem) or type(problem).__name__
        raise AuditError(f"the audit trail cannot be written: {reason}", run=run) from problem
