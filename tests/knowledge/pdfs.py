"""Small PDFs, made by hand so that they can be wrong in every way."""

from __future__ import annotations

import zlib


def pdf(text: str = "Hello", *, content: bytes | None = None, packed: bool = False, more: bytes = b"") -> bytes:
    """A PDF of one page that shows a line of text, or has a content stream of its own."""
    stream = content if content is not None else b"BT /F1 12 Tf 72 720 Td (" + text.encode() + b") Tj ET"
    filters = b"/Filter /FlateDecode" if packed else b""
    stream = zlib.compress(stream, 9) if packed else stream
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d %s >>\nstream\n%s\nendstream" % (len(stream), filters, stream),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        b"<< /Title (The Title) /Author (Ann) >>",
    ]
    out, offsets = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n%s" % (len(objects) + 1, table)
    return out + b"trailer << /Size 7 /Root 1 0 R /Info 6 0 R %s >>\nstartxref\n%d\n%%%%EOF\n" % (more, start)
