"""The comparison with peers: how figures are chosen, shown and drawn."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest


class Fixed:
    """A subject whose figures are known."""

    def __init__(self, name: str, *values: float | None) -> None:
        self.name = name
        self._values = iter(values)

    def measure(self, row: str, *args: int, pinned: bool = False) -> tuple[float, float | None] | None:
        value = next(self._values)
        return None if value is None else (value, value / 10 if pinned else None)


def test_every_round_is_kept_and_the_best_told(capsys: pytest.CaptureFixture[str]) -> None:
    import compare

    fast = compare.Row("call", "a call")
    many = compare.Row("throughput", "runs", "rate", (2,), more_is_better=True)
    figures = compare.measured(fast, [Fixed("a", 3.0, 2.0), Fixed("b", None, None)], 2)
    assert {name: (figure.best, figure.median, figure.spread) for name, figure in figures.items()} == {
        "a": (2.0, 2.5, 0.1)
    }
    assert compare.measured(many, [Fixed("a", 3.0, 2.0)], 2)["a"].best == 3.0
    assert compare.measured(fast, [Fixed("a", 3.0)], 1, pinned=True)["a"].values == (0.3,)
    assert capsys.readouterr().out == "  a call: a 2 s\n  runs: a 3/s\n  a call, one processor: a 300 ms\n"


def test_the_report_says_first_where_moonbox_loses() -> None:
    import compare

    def figures(**values: float) -> dict[str, compare.Figure]:
        return {name: compare.Figure((value,)) for name, value in values.items()}

    rows = [compare.Row("call", "a call"), compare.Row("throughput", "runs", "rate", (2,), more_is_better=True)]
    free = {"call": figures(moonbox=2e-3, other=1e-3), "throughput-2": figures(moonbox=100.0, other=50.0)}
    pinned = {"call": figures(moonbox=2e-3, other=4e-3), "throughput-2": figures(moonbox=50.0, other=100.0)}
    text = compare.report(rows, free, pinned, ["moonbox", "other", "third"])
    assert "| a call | **2 ms** | 1 ms (0.5×) | – |" in text
    assert "| a call | **2 ms** | 4 ms (2×) | – |" in text
    assert "| runs | **100/s** | 50/s (2×) | – |" in text
    losses, _, tables = text.partition("## Free")
    own_process = losses.partition("unprotected")[0]
    assert "free:\n\n- a call: other 2×\n" in own_process
    assert "one processor:\n\n- runs: other 2×\n" in own_process
    assert "## One processor" in tables
    assert "busy" not in text
    busy = compare.report(rows, free, pinned, ["moonbox", "other"], busy="a load of 4.0")
    assert "It was busy with other work: a load of 4.0." in busy


def test_a_cell_has_median_and_spread() -> None:
    import compare

    free = {"call": {"moonbox": compare.Figure((1e-3, 2e-3, 3e-3)), "other": compare.Figure((4e-3, 4e-3))}}
    text = compare.report([compare.Row("call", "a call")], free, {}, ["moonbox", "other"])
    assert "| a call | **1 ms**, 2 ms ± 25% | 4 ms, 4 ms ± 0% (2×) |" in text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(1.5, "time", "1.5 s"), (0.0123, "time", "12.3 ms"), (4e-6, "time", "4 µs"), (2**20, "bytes", "1.00 MiB")],
)
def test_figures_in_readable_units(value: float, unit: str, text: str) -> None:
    import compare

    assert compare.shown(value, unit) == text


def test_the_plot_has_a_longer_bar_for_a_larger_loss() -> None:
    import compare

    rows = [compare.Row(f"row{place}", f"row {place} & more") for place in range(3)]
    figures = {
        f"row{place}": {"moonbox": compare.Figure((10.0**place,)), "other": compare.Figure((1e-3,))}
        for place in range(3)
    }
    root = ElementTree.fromstring(compare.drawing(rows, figures, ["moonbox", "other"]))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
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
            for pinned in (False, True):
                figure = running.measure(row, pinned=pinned)
                assert figure is not None and 0 < figure[0] < 1
                assert figure[1] is None or figure[1] > 0
            assert running.measure("no such row") is None
        finally:
            running.close()
