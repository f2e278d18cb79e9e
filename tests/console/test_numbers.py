"""Numbers in a real browser: each keeps its own text, where it is read, shown, edited and sent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playwright.sync_api import expect

from moonbox import tool
from moonbox.console.app import STATIC

from .conftest import visiting
from .test_playground import run

if TYPE_CHECKING:
    from .conftest import Visitor

EXACT = ["9007199254740991", "9007199254740992", "9007199254740993", "-9007199254740993", "18446744073709551616"]
EXACT += ["1.0", "-0.0", "-0", "0.0", "1e400", "1E+2", "1e-7", "0.1", "12.50", "123456789.123456789123"]
OTHER = [
    r"""{"a\"b\\":["\u2028","\ud83d\ude00",true,false,null,{}],"__proto__":{"x":1},"":[]}""",
    '"]"',
    "[[],[[]]]",
]
WRONG = ["", "[1,]", "{", '{"a" 1}', "01", "1.", ".5", "+1", "NaN", '"a', '"a\nb"', "[1 2]", "tru", "1 x", "{a: 1}"]
IMPORT = "const json = await import(document.querySelector('script[type=module]').src.replace(/[^/]+$/, 'json.js'));"


def test_every_module_reads_and_writes_json_in_one_way() -> None:
    users = [path.name for path in Path(STATIC).glob("*.js") if "JSON.parse" in path.read_text(encoding="utf-8")]
    assert users == ["json.js"]


def test_json_is_read_and_written_as_it_was(visitor: Visitor, console: Any) -> None:
    page = visitor.enter(console, "approvals")
    again = "async texts => { " + IMPORT + " return texts.map(text => json.stringify(json.parse(text))); }"
    assert page.evaluate(again, EXACT) == EXACT
    assert page.evaluate(again, [f"[{text}]" for text in EXACT]) == [f"[{text}]" for text in EXACT]
    for given, back in zip(OTHER, page.evaluate(again, OTHER), strict=True):
        assert json.loads(back) == json.loads(given)
    accepted = "texts.filter(text => { try { json.parse(text); return true } catch { return false } })"
    assert page.evaluate("async texts => { " + IMPORT + f" return {accepted}; }}", WRONG) == []
    indented = page.evaluate("async () => { " + IMPORT + " return json.stringify({a: [1, {}]}, {indent: '  '}); }")
    assert indented == json.dumps({"a": [1, {}]}, indent=2)


def test_a_tool_is_called_with_the_numbers_that_were_typed(visitor: Visitor) -> None:
    @tool
    def echo(number: int, share: float, parts: list[Any]) -> dict[str, Any]:
        """Return the arguments."""
        return {"number": number + 1, "share": share, "parts": parts}

    with visiting(visitor, "tools/echo", [echo]) as (_, page):
        page.get_by_label("number").fill("9007199254740993")
        page.get_by_label("share").fill("1.0")
        page.get_by_label("parts").fill("[-0.0, 9223372036854775807, 9007199254740993]")
        page.get_by_role("button", name="Call").click()
        expect(page.locator("#result .v-number")).to_have_text(["9007199254740994", "1.0"])
        expect(page.locator("#result .preview").last).to_have_text("[-0.0,9223372036854775807,9007199254740993]")


def test_trees_and_tables_show_numbers_as_they_are(visitor: Visitor, console: Any) -> None:
    page = visitor.enter(console)
    run(page, "return {{id = 9007199254740993, share = 1.0}, {id = math.mininteger, share = -0.0}}")
    expect(page.locator("#values td")).to_have_text(["9007199254740993", "1.0", "-9223372036854775808", "-0.0"])
    page.get_by_role("button", name="Tree").click()
    expect(page.locator("#values .tree")).to_contain_text('{"id":9007199254740993,"share":1.0}')
    page.get_by_role("button", name="Plot").click()
    expect(page.locator("#values svg.plot")).to_be_visible()
    run(page, "return '\\xff', '\\xff\\xfe'")
    expect(page.locator("#values .tree")).to_contain_text(["<1 B of binary data>", "<2 B of binary data>"])
