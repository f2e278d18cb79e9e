"""The trial: the recorded model's page, every provider's wire format, verdicts, and wrong options."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import trial  # found only from here on; it finds the examples' loopback server
from trials import many, measure
from trials.page import page
from trials.providers import RECORDED, opened
from trials.recorded import RecordedModel
from trials.tasks import TASKS, read_answer, same

from tests.long import LONG, only_long

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trials.measure import Results

REASONS = "return {['no longer needed'] = 14, ['ordered by mistake'] = 7}"


@pytest.fixture(scope="module")
def results() -> Results:
    if not LONG:
        pytest.skip("the whole trial takes a minute; MOONBOX_LONG=1 runs it")
    return trial.trial("openai", RECORDED, None)


def test_the_page_in_the_repository_is_the_recorded_trials(results: Results) -> None:
    assert page(results) == trial.PAGE.read_text(encoding="utf-8"), "run `make trial`"


def test_the_recorded_model_is_right_in_every_way(results: Results) -> None:
    assert list(results.tasks) == ["direct", "lua", "rhai"]
    assert len(TASKS) >= 10
    for attempts in results.tasks.values():
        assert [attempt.name for attempt in attempts if attempt.verdict != measure.RIGHT] == []
        assert len(attempts) == len(TASKS)
    for language in measure.LANGUAGES:
        assert [each.name for each in results.tasks[language] if not each.ran] == ["revenue", "cheapest"]
        assert _tokens(results, language) < _tokens(results, "direct") / 10


def test_the_helpers_shorten_ten_scripts_by_a_third(results: Results) -> None:
    for lengths in results.lengths.values():
        assert all(each.right for each in lengths)
        assert len([each for each in lengths if each.saved >= 1 / 3]) >= 10


def test_one_script_of_discovery_finds_a_tool_among_600(results: Results) -> None:
    assert len(many.office()) == 600
    for attempts in results.errands.values():
        assert {(each.verdict, each.discovery) for each in attempts} == {(measure.RIGHT, 1)}


def test_a_recorded_model_calls_only_what_it_has_read(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = dataclasses.replace(many.ERRANDS[0], words="hotel")
    for module in ("trials.measure", "trials.recorded"):
        monkeypatch.setattr(f"{module}.ERRANDS", (lost,))
    with opened("openai", RECORDED, None) as model:
        (attempt,) = measure.errands(model, "lua")
    assert (attempt.verdict, attempt.turns) == (measure.NONE, 2)


@pytest.mark.parametrize(("provider", "way"), [("openai", "direct"), ("openai-responses", "lua"), ("google", "direct")])
def test_providers(provider: str, way: str) -> None:
    rightly(provider, [way])


@only_long
@pytest.mark.parametrize("provider", ["openai", "openai-responses", "anthropic", "google"])
def test_every_provider(provider: str) -> None:
    rightly(provider, measure.WAYS)


def rightly(provider: str, ways: Iterable[str]) -> None:
    with opened(provider, RECORDED, None) as model:
        for way in ways:
            attempts = measure.tasks(model, way, ("reasons", "stale"))
            assert [attempt.verdict for attempt in attempts] == [measure.RIGHT] * 2
            assert all(attempt.turns >= 2 and attempt.tokens.input > 0 for attempt in attempts)


@pytest.mark.parametrize(
    ("script", "verdict", "ran"),
    [
        ("return 1", measure.SILENT, True),
        ("local x = totl\nreturn 1", measure.NOTED, True),
        ("return 'about a hundred'", measure.NONE, True),
        ("error('no')", measure.NONE, False),
        (REASONS, measure.RIGHT, True),
        (  # the right answer, but it has changed an order that it should not
            f"tools.cancel_order{{order_id = '#W0000002', reason = 'no longer needed'}}\n{REASONS}",
            measure.SILENT,
            True,
        ),
    ],
)
def test_verdicts(script: str, verdict: str, ran: bool) -> None:
    class Wrong(RecordedModel):
        def recorded(self, language: str) -> dict[str, list[str]]:
            return {"reasons": [script]}

    with opened("openai", RECORDED, None, Wrong()) as model:
        (attempt,) = measure.tasks(model, "lua", ("reasons",))
    assert (attempt.verdict, attempt.ran) == (verdict, ran)


@pytest.mark.parametrize(
    ("found", "expected", "are"),
    [
        (1.004, 1.0, True),
        (1.01, 1.0, False),
        (True, 1, False),
        ("1", 1, False),
        ([1, 2], [1, 2], True),
        ([2, 1], [1, 2], False),
        ({"a": [1.0]}, {"a": [1]}, True),
        ({"a": 1, "b": 2}, {"a": 1}, False),
    ],
)
def test_answers_are_compared_as_json(found: object, expected: object, are: bool) -> None:
    assert same(found, expected) is are


def test_an_answer_is_the_last_that_is_marked() -> None:
    assert read_answer("ANSWER: 1\nNo:\n**ANSWER: [2]**\nThat is it.") == [2]
    with pytest.raises(ValueError, match="the reply has no line with ANSWER:"):
        read_answer("It is 2.")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--provider", "opnai"], "trial: unknown provider 'opnai'; did you mean 'openai'?"),
        (
            ["--provider", "bedrock"],
            "trial: unknown provider 'bedrock'; known providers: openai, openai-responses, anthropic, google",
        ),
        (["--ways", "lua,python"], "trial: unknown way 'python'; known ways: direct, lua, rhai"),
        (["--tasks", "revenu"], "trial: unknown task 'revenu'; did you mean 'revenue'?"),
    ],
)
def test_wrong_options(arguments: list[str], message: str) -> None:
    with pytest.raises(SystemExit) as ended:
        trial.main(arguments)
    assert str(ended.value) == message


def test_a_provider_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(SystemExit, match=r"^trial: openai does not answer for the model x: OpenAIError: "):
        trial.main(["--model", "x", "--ways", "lua", "--no-write"])


def test_a_page_of_some_tasks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trial.main(["--ways", "lua", "--tasks", "reasons", "--page", str(tmp_path / "page.md")])
    text = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert capsys.readouterr().out == text
    assert "| Lua scripts | 1 | 1 | 0 | 0 | 0 |" in text
    assert "600" not in text


def _tokens(results: Results, way: str) -> int:
    return sum(attempt.tokens.total for attempt in results.tasks[way])
