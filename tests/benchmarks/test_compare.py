"""The comparison with peers: how figures are chosen, shown and drawn."""

from __future__ import annotations

import subprocess
import sys
from xml.etree import ElementTree

import pytest


class Fixed:
    """A subject whose figures are known."""

    def __init__(self, name: str, *values: float | None) -> None:
        self.name = name
        self._values = iter(values)

    def measure(self, row: str, *args: int) -> float | None:
        return next(self._values)


def test_the_best_of_the_rounds_counts(capsys: pytest.CaptureFixture[str]) -> None:
    import compare
    import figures

    fast = figures.Row("call", "a call")
    many = figures.Row("throughput", "runs", "rate", (2,), more_is_better=True)
    assert compare.measured(fast, [Fixed("a", 3.0, 2.0), Fixed("b", None, None)], 2) == {"a": 2.0}
    assert compare.measured(many, [Fixed("a", 3.0, 2.0)], 2) == {"a": 3.0}
    assert capsys.readouterr().out == "  a call: a 2 s\n  runs: a 3/s\n"


def test_the_report_says_where_moonbox_loses() -> None:
    import figures

    rows = [figures.Row("call", "a call"), figures.Row("throughput", "runs", "rate", (2,), more_is_better=True)]
    values = {"call": {"moonbox": 2e-3, "other": 1e-3}, "throughput-2": {"moonbox": 100.0, "other": 50.0}}
    text = figures.report(rows, values, ["moonbox", "other", "third"])
    assert "| a call | **2 ms** | 1 ms (0.5×) | – |" in text
    assert "| runs | **100/s** | 50/s (2×) | – |" in text
    assert "- a call: other 2×" in text
    assert "- runs:" not in text
    assert "busy" not in text
    busy = figures.report(rows, values, ["moonbox", "other"], busy="a load of 4.0")
    assert "It was busy with other work: a load of 4.0." in busy


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(1.5, "time", "1.5 s"), (0.0123, "time", "12.3 ms"), (4e-6, "time", "4 µs"), (2**20, "bytes", "1.00 MiB")],
)
def test_figures_in_readable_units(value: float, unit: str, text: str) -> None:
    import figures

    assert figures.shown(value, unit) == text


def test_the_plot_is_a_well_formed_picture() -> None:
    import figures

    rows = [figures.Row("call", "a call & more")]
    svg = figures.drawing(rows, {"call": {"moonbox": 2e-3, "other": 1e-3}}, ["moonbox", "other"])
    root = ElementTree.fromstring(svg)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "0.5×" in svg


def test_a_larger_loss_has_a_longer_bar() -> None:
    import figures

    rows = [figures.Row(f"row{place}", f"row {place}") for place in range(3)]
    values = {f"row{place}": {"moonbox": 10.0**place, "other": 1e-3} for place in range(3)}
    root = ElementTree.fromstring(figures.drawing(rows, values, ["moonbox", "other"]))
    bars = [rect for rect in root.iter("{http://www.w3.org/2000/svg}rect") if rect.get("height") == "10"][1:]
    widths = [float(bar.get("width", 0)) for bar in bars]
    assert len(widths) == 3
    assert widths == sorted(set(widths))
    assert all(float(bar.get("x", 0)) >= 270 for bar in bars)  # none is drawn over the titles


def test_subjects_that_need_nothing_installed_answer() -> None:
    import rivals

    for name, row in (("moonbox", "call"), ("bare lupa", "call")):
        subject = next(one for one in rivals.SUBJECTS if one.name == name)
        running = rivals.Running(subject)
        try:
            figure = running.measure(row)
            assert figure is not None and 0 < figure < 1
            assert running.measure("no such row") is None
        finally:
            running.close()


def test_rows_can_be_chosen() -> None:
    import compare

    done = subprocess.run([sys.executable, compare.__file__, "--help"], capture_output=True, text=True, check=True)
    assert "--rows" in done.stdout
