"""PDF: the text of its pages."""

from __future__ import annotations

import io
import logging
from typing import Any

from moonbox.knowledge.extract.kinds import Extracted, Unreadable

__all__ = ["read_pdf"]

MAX_PAGES = 3_000
MAX_CHARS = 10_000_000


def read_pdf(data: bytes) -> Extracted:
    """The text of a PDF, page after page. Needs pypdf."""
    import pypdf
    from pypdf.errors import PyPdfError

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # what is wrong with a file is told once, by us
    try:
        reader = pypdf.PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise Unreadable("the PDF is encrypted", expected=True)
        about: Any = reader.metadata or {}
        pages, size = [], 0
        for page in reader.pages[:MAX_PAGES]:
            text = page.extract_text()
            size += len(text)
            if size > MAX_CHARS:
                break
            pages.append(text.strip())
    except PyPdfError as error:
        raise Unreadable(f"the PDF is damaged: {error}") from None
    body = "\n\n".join(filter(None, pages))
    if not body:
        raise Unreadable("PDF without text (scanned pages?)", expected=True)
    return Extracted(
        text=body, title=str(about.get("/Title") or ""), author=str(about.get("/Author") or "") or None, markdown=False
    )


def warm_up() -> None:
    """Import all of pypdf, because nothing can be imported later, inside the jail."""
    import importlib
    import pkgutil
    from contextlib import suppress

    import pypdf

    for module in pkgutil.walk_packages(pypdf.__path__, "pypdf."):
        with suppress(ImportError):
            importlib.import_module(module.name)
