"""Typing in the editor: what a person types is what stands there, and blocks are indented as they are typed."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from tests.long import LONG

from .conftest import LONGEST_GRACE

if TYPE_CHECKING:
    from playwright.sync_api import Page

SCRIPTS = Path(__file__).resolve().parents[1] / "scripts"
LANGUAGES = ("lua", "rhai", "python")
PARTS = 8 if LONG else 1
"""Of the scripts of a language: all of Lua's are 65,000 keys."""
ENTERED = {
    "lua": "local totals = {}\nlocal total = 0\nfor i = 1, 3 do\n  total = total + i\nend\nreturn total",
    "rhai": "let totals = [];\nlet total = 0;\nlet n = total\n;\nif true {\n  n = total\n}\ntotal",
    "python": "totals = []\ntotal = 0\nfor n in range(3):\n    total += n\ntotal",
}
"""Words at the ends of lines that are the beginnings of other words."""
LEAD = """() => {
  const { value, selectionStart: at } = document.querySelector("#editor textarea");
  return value.slice(value.lastIndexOf("\\n", at - 1) + 1, at);
}"""


class Keys:
    """The keys of a person who does not wait for what a key does before the next: as in `page.keyboard`, one by one.

    `page.keyboard` waits after each, which takes three times as long.
    """

    def __init__(self, page: Page) -> None:
        self._session: Any = page.context.new_cdp_session(page)

    def press(self, *keys: str) -> None:
        """Characters, Enter, Backspace."""
        sent = [message for key in keys for message in self._messages(key)]

        async def send() -> None:
            await asyncio.gather(*(self._session._impl_obj.send(*each, 2 * LONGEST_GRACE) for each in sent))

        self._session._sync(send())  # playwright sends them in this order, and the browser takes them in it

    def _messages(self, key: str) -> list[tuple[str, dict[str, Any]]]:
        if len(key) == 1 and not (key.isascii() and key.isprintable()):  # no key of this keyboard
            return [("Input.insertText", {"text": key})]
        code, text = {"Enter": (13, "\r"), "Backspace": (8, "")}.get(key, (0, key))
        known = {"key": key, "code": key if code else "", "windowsVirtualKeyCode": code}
        down = {"type": "keyDown" if text else "rawKeyDown", **known, "text": text}
        return [("Input.dispatchKeyEvent", down), ("Input.dispatchKeyEvent", {"type": "keyUp", **known})]


def typed(page: Page, keys: Keys, source: str) -> str:
    """The editor's text after a person has typed a script key by key and corrected the indentation of each line."""
    page.locator("#editor textarea").fill("")
    for number, line in enumerate(source.split("\n")):
        if number:
            keys.press("Enter")
        here, wanted = page.evaluate(LEAD), line[: len(line) - len(line.lstrip(" "))]
        back = ["Backspace"] * (len(here) - len(wanted))
        keys.press(*back, *line[min(len(here), len(wanted)) :])
    return page.locator("#editor textarea").input_value()


def sources(language: str, part: int) -> list[str]:
    paths = sorted(path for path in (SCRIPTS / language).iterdir() if path.is_file())
    texts = [path.read_text(encoding="utf-8").rstrip("\n") for path in paths]
    return [
        ENTERED[language],
        *(texts[part::PARTS] if LONG else [text for text in texts if len(text) < 220][:: len(texts) // 2]),
    ]


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_script_stands_there_as_it_was_typed(page: Page, language: str, part: int) -> None:
    page.route("**/check", lambda route: route.fulfill(json={"findings": []}))
    page.select_option("#language", language)
    keys = Keys(page)
    for source in sources(language, part):
        assert typed(page, keys, source) == source


def test_enter_takes_a_completion_only_after_the_arrow_keys(page: Page) -> None:
    editor = page.locator("#editor textarea")
    for keys, text in (
        (["Enter"], "tools.list_o\n"),
        (["ArrowDown", "ArrowUp", "Enter"], "tools.list_orders{}"),
        (["Tab"], "tools.list_orders{}"),
    ):
        editor.fill("")
        editor.press_sequentially("tools.list_o")
        expect(page.locator("#choices li").first).to_contain_text("tools.list_orders")
        for key in keys:
            page.keyboard.press(key)
        expect(editor).to_have_value(text)


@pytest.mark.parametrize(
    ("language", "keys", "text"),
    [
        ("lua", "if a then|b()|else|c()|end|", "if a then\n  b()\nelse\n  c()\nend\n"),
        ("lua", "f(function()|g{|1,|}|end)|", "f(function()\n  g{\n    1,\n  }\nend)\n"),
        ("lua", "do|ending = 'x'|x = [[|end]]", "do\n  ending = 'x'\n  x = [[\n  end]]"),
        ("rhai", "fn f() {|if a {|1|}|}|", "fn f() {\n  if a {\n    1\n  }\n}\n"),
        ("python", "for n in x:  # each|f(|n,|)|", "for n in x:  # each\n    f(\n        n,\n    )\n    "),
    ],
)
def test_blocks_are_indented_and_their_ends_go_back(page: Page, language: str, keys: str, text: str) -> None:
    page.select_option("#language", language)
    editor = page.locator("#editor textarea")
    editor.fill("")
    for number, line in enumerate(keys.split("|")):
        if number:
            page.keyboard.press("Enter")
        page.keyboard.type(line)
    expect(editor).to_have_value(text)
