"""Tests of docstrings in their several forms."""

from __future__ import annotations

import pytest

from moonbox.tools.docstrings import read_docstring

GOOGLE = """Find things.

Long text: with a colon.

Args:
    a (int): The a. Defaults to 3.
        More of it.
    b (Optional[Dict[str, int]], optional): The b,
      oddly indented
    c: {"k": 1}: ok
    **kwargs: rest

Returns:
    dict: what
"""
NUMPY = """
    Find things.

    Parameters
    ----------
    x : int, optional
        The x.

        Second paragraph.
    y, z : str
        Both.
    *args
        Rest.

    Returns
    -------
    list of int
        Stuff
    """
SPHINX = """Find things.

More text.

:param a: the a
   continued
:type a: int
:param int b: the b
:returns: something: else
:raises ValueError: bad
"""


@pytest.mark.parametrize(
    ("doc", "text", "parameters"),
    [
        (
            GOOGLE,
            "Find things.\n\nLong text: with a colon.",
            {
                "a": "The a. Defaults to 3. More of it.",
                "b": "The b, oddly indented",
                "c": '{"k": 1}: ok',
                "kwargs": "rest",
            },
        ),
        (NUMPY, "Find things.", {"x": "The x. Second paragraph.", "y": "Both.", "z": "Both.", "args": "Rest."}),
        (SPHINX, "Find things.\n\nMore text.", {"a": "the a continued", "b": "the b"}),
        ("Args:\n    a: x", "", {"a": "x"}),
        ("Do it.\nArgs:\n  a: x\n  b - y\n", "Do it.", {"a": "x", "b": "y"}),
        ("Do it.\n\nParameters:\n    - `a`: x\n    - b: y", "Do it.", {"a": "x", "b": "y"}),
        ("Do it.\n\nKeyword Args:\n    a: x\n\nArgs:\n    b: y\n", "Do it.", {"a": "x", "b": "y"}),
        ("Text.\n\nNote: not a section. Args: neither.", "Text.\n\nNote: not a section. Args: neither.", {}),
        ("Text.\n\nExample:\n    f(1)\n\nAfter.", "Text.", {}),
        ("Times like 10:30 and :param text", "Times like 10:30 and :param text", {}),
        ("Do it.\n\n@param a: x", "Do it.", {"a": "x"}),
        ("", "", {}),
        (None, "", {}),
        ("Parameters\n----------", "", {}),
        ("Args:", "Args:", {}),
    ],
)
def test_forms(doc: str | None, text: str, parameters: dict[str, str]) -> None:
    read = read_docstring(doc)
    assert read.text == text
    assert read.parameters == parameters
