"""Bytes to text: which encoding a file is in."""

from __future__ import annotations

import codecs
import re

from moonbox.knowledge.extract.kinds import Unreadable

__all__ = ["declared_charset", "decode"]

SNIFFED = 8_192
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# A page names its encoding, and Python's list has some that are none (zlib) or slow by design (punycode).
_ALLOWED = re.compile(
    r"utf-?8|utf-?16(-?[lb]e)?|(us-)?ascii|iso-?8859-?\d{1,2}|latin-?[1-9]|windows-?125\d|cp-?(125\d|437|850|866|932|949)"
    r"|shift[_-]?jis|euc-?(jp|kr)|iso-2022-jp|gb2312|gbk|gb18030|big5|koi8-?[ru]|mac-?(roman|intosh)|tis-620",
    re.IGNORECASE,
)
_DECLARED = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([a-zA-Z0-9_-]{1,40})", re.IGNORECASE)


def decode(data: bytes, charset: str | None = None) -> str:
    """The text in some bytes; raises Unreadable for binary data.

    A byte order mark decides, then the given charset, then UTF-8. What is not UTF-8 is Windows-1252, unless a good part
    of it is UTF-8, which does not happen by chance: then the rest is damage and becomes U+FFFD.
    """
    for mark, name in _BOMS:
        if data.startswith(mark):
            return data.decode(name, "replace")
    if b"\0" in data[:SNIFFED]:
        raise Unreadable("binary file", expected=True)
    if charset and _ALLOWED.fullmatch(charset.strip()):
        try:
            return data.decode(charset.strip().replace("macintosh", "mac-roman"))
        except (UnicodeDecodeError, LookupError):
            pass  # the label was wrong
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        repaired = data.decode("utf-8", "replace")
    damaged = repaired.count("\ufffd")
    sound = sum(1 for character in repaired if character > "\x7f") - damaged
    return repaired if sound * 4 >= damaged else data.decode("cp1252", "replace")


def declared_charset(data: bytes) -> str | None:
    """What an HTML page says about its own encoding."""
    found = _DECLARED.search(data[:SNIFFED])
    return found[1].decode() if found else None
