"""The token economy: the ledger, the scripts made from calls, the stories, the report."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import moonbox


def words(text: str) -> int:
    """Stands for a tokenizer, which must be installed: a token for each word."""
    return len(text.split())


def test_every_request_sends_again_what_came_before() -> None:
    from tokens.ledger import Bill, Ledger

    ledger = Ledger(words, ["two definitions", "prompt"])
    ledger.told("what is it")
    ledger.wrote("call it")
    ledger.told("result")
    ledger.wrote("done")
    assert ledger.bill == Bill(definitions=3, context=10, read=6 + 9, written=3, requests=2)
    assert (ledger.bill + ledger.bill).total == 36


def test_literals_come_through_lua_unchanged() -> None:
    from tokens import lua

    values = [
        True,
        0,
        -3,
        1.5,
        "",
        'a "b" \\ c\nd\te',
        "Grüße 🎈",
        [],
        [1, [2, "x"]],
        {"a": 1, "b c": [True], "end": None},
    ]
    for value in (None, *values):
        assert moonbox.run(f"return {{value = {lua.literal(value)}}}").unwrap() == {"value": value}


def test_a_script_of_calls_returns_every_result() -> None:
    from tokens import lua

    assert lua.script([("cd", {"folder": "a"}), ("odd-name", {}), ("end", {"end": 1})]) == (
        'return tools.cd{folder = "a"},\ntools["odd-name"](),\ntools["end"]{["end"] = 1}'
    )


def test_direct_and_scripted_conversations_cost_what_they_say() -> None:
    from tokens.conversation import Turn, direct, scripted

    @moonbox.tool
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    seen: list[list[Any]] = []
    turns = [Turn("please add", (("add", {"a": 1, "b": 2}), ("add", {"a": 3, "b": 4})), "Done.")]
    one, together = direct([add], turns, words, lambda _, values: seen.append(values))
    code, full = scripted([add], turns, words, lambda _, values: seen.append(values))
    each, _ = scripted([add], turns, words, lambda _, values: seen.append(values), a_script_for_each_call=True)
    assert seen == [[3, 7]] * 3
    assert (one.requests, together.requests, code.requests, each.requests) == (3, 2, 2, 3)
    assert one.context == together.context == one.definitions + 2 + 2 * 2 + 2 + 1
    assert one.total > together.total
    assert full.definitions > code.definitions


def test_a_script_that_fails_ends_the_measurement() -> None:
    from tokens.conversation import Failed, Turn, scripted

    @moonbox.tool
    def broken() -> int:
        """Fail."""
        raise ValueError("no")

    with pytest.raises(Failed, match="broken"):
        scripted([broken], [Turn("go", (("broken", {}),), "Done.")], words, lambda _, __: None)


def test_stories_come_to_the_same_both_ways() -> None:
    import economy
    from tokens.report import MOST_FOR_AUTO, dearest_auto
    from tokens.stories import STORIES

    from moonbox.codemode.catalog import rough_tokens

    outcomes = {story.name: economy.told(story, rough_tokens) for story in STORIES}
    assert set(outcomes) == {"expenses", "logs", "documents", "letters", "lookup"}
    for name in ("expenses", "logs", "documents", "letters"):
        assert outcomes[name].code.total < outcomes[name].together.total
    assert outcomes["lookup"].code.total > outcomes["lookup"].one.total
    assert [outcomes[name].auto_both for name in outcomes] == [1, 1, 1, 1, 1]
    assert outcomes["lookup"].learned == outcomes["lookup"].one
    assert outcomes["expenses"].learned == outcomes["expenses"].code
    times, _ = dearest_auto(list(outcomes.items()), [])
    assert 1 < times <= MOST_FOR_AUTO


def test_the_types_of_a_shop_are_described_once_and_in_full() -> None:
    import economy
    from tokens import shop

    from moonbox import CodeMode, Sandbox
    from moonbox.codemode.catalog import rough_tokens

    _, repeated, described = economy.shop_tokens(rough_tokens)
    assert described <= 0.6 * repeated
    with Sandbox(shop.tools(), isolation="inline") as box, CodeMode(box) as mode:
        types = [value for value in vars(shop).values() if hasattr(value, "__total__")]
        assert len(types) == 14
        for name in (name for each in types for name in each.__annotations__):
            assert f"{name}: " in mode.catalog.text
        assert "newsletter: boolean|null (null if the user was never asked)" in mode.catalog.text
        assert mode.catalog.text.count("payment_history") == 1


def test_the_report_names_losses_and_wrong_choices() -> None:
    import economy
    from tokens.conversation import Auto
    from tokens.ledger import Bill
    from tokens.report import report

    cheap, dear = Bill(10, 20, 90, 10, 2), Bill(50, 60, 190, 10, 2)
    loses = economy.outcome(cheap, cheap, dear, dear, dear, Auto(cheap, "direct"), Auto(cheap, "direct"))
    misjudged = economy.outcome(dear, dear, cheap, cheap, cheap, Auto(dear, "both"), Auto(cheap, "code"))
    text = report("some tokens", [("small", loses)], [("Tasks", {"files": misjudged})], ["x: bad"], (30, 20, 10))
    assert "- small: a script a turn against calls one by one: 100 % more;" in text
    assert (
        "- Tasks, files: 200 tokens at first and 100 once results are known, where the better way takes 100: "
        "2.00 and 1.00 times."
    ) in text
    assert "At most 2.00 times, in Tasks, files; 2.5 are allowed." in text
    assert "| **all 1** | 50 → 10 | 60 → 20 | 10 → 10 | 200 | 200 (100 %) | **100 (50 %)** |" in text
    assert "Tokens are those of some tokens" in text
    assert "each type once, it takes 10 (50 %)." in text
    assert text.endswith("breaks the task's own schema: x: bad.")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--tasks", "0"], "--tasks must be at least 1, not 0"),
        (["--kinds", "base,foo"], "--kinds: unknown kind 'foo'; known kinds: base, long_context"),
    ],
)
def test_wrong_arguments_are_told_in_one_line(arguments: list[str], message: str) -> None:
    path = Path(__file__).parents[2] / "benchmarks" / "economy.py"
    done = subprocess.run([sys.executable, path, *arguments], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"{message}\n")
