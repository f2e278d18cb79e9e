"""Local models: OpenAI-compatible servers, calls written as text, and llama-cpp-python in an environment of its own."""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
import threading
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
from wire import Say, Scripted, Use, serve

from moonbox.adapters.local import SERVERS, LlamaCpp, read_calls, server, text_before_calls, text_in_json
from moonbox.adapters.openai import OpenAIChat
from moonbox.errors import MissingExtra, UsageError
from tests.adapters.venvs import check_inside, is_ready
from tests.environments import INSTALL_SECONDS
from tests.lazy import lazy

if TYPE_CHECKING:
    from collections.abc import Iterator

    import openai

    from moonbox import CodeMode
else:
    openai = lazy("openai")

LLAMA = ["llama-cpp-python>=0.3.20,<0.4", "gguf>=0.17,<1"]
SCRIPT = "local a = 1; return a < 2"


@pytest.mark.skipif(
    not is_ready("llama-cpp", LLAMA) and not os.environ.get("MOONBOX_BUILD_LLAMA"),
    reason="compiling llama.cpp takes half an hour: set MOONBOX_BUILD_LLAMA=1 to do it once",
)
@pytest.mark.timeout(INSTALL_SECONDS * 2)
def test_llama_cpp_inside() -> None:
    check_inside("llama-cpp", LLAMA, "inside_llama_cpp.py")


def test_servers() -> None:
    assert server("ollama") == {"base_url": "http://localhost:11434/v1", "api_key": "local"}
    assert server("http://gpu:9000/v1", api_key="k") == {"base_url": "http://gpu:9000/v1", "api_key": "k"}
    assert list(SERVERS) == ["ollama", "vllm", "llama.cpp", "lmstudio"]
    with pytest.raises(UsageError) as caught:
        server("olama")
    assert str(caught.value) == "unknown server 'olama'; did you mean 'ollama'?"


def test_a_compatible_server(mode: CodeMode) -> None:
    with (
        serve(Scripted(Use("lua_repl", {"source_code": "6 * 7"}), Say("42"))) as wire,
        openai.OpenAI(**server(f"{wire.url}/v1"), max_retries=0) as client,
    ):
        done = OpenAIChat(mode).run("6 * 7?", model="loopback", client=client)
    assert (done.text, done.replies[0].text) == ("42", "42")


@pytest.mark.parametrize(
    ("text", "before", "calls"),
    [
        ("Just text.", "Just text.", []),
        ('{"a": 1}', '{"a": 1}', []),
        ('{"name": "other", "parameters": {}}', '{"name": "other", "parameters": {}}', []),
        (
            'Ok.\n<tool_call>\n{"name": "lua_repl", "arguments": {"source_code": "1"}}\n</tool_call>',
            "Ok.",
            [("lua_repl", {"source_code": "1"})],
        ),
        (
            '<tool_call>{"name": "a", "arguments": "{\\"x\\": 1}"}</tool_call><tool_call>{"name": "b"}</tool_call>',
            "",
            [("a", {"x": 1}), ("b", {})],
        ),
        (
            '<tool_call>{"name": "a", "arguments": {"source_code": "s = \\"<function=x>\\""}}</tool_call>',
            "",
            [("a", {"source_code": 's = "<function=x>"'})],
        ),
        (
            f"<tool_call>\n<function=lua_repl>\n<parameter=source_code>\n{SCRIPT}\n</parameter>\n</function>\n</tool_call>",
            "",
            [("lua_repl", {"source_code": SCRIPT})],
        ),
        ('<function=lua_repl>{"source_code": "1"}</function>', "", [("lua_repl", {"source_code": "1"})]),
        (
            '[TOOL_CALLS] [{"name": "lua_repl", "arguments": {"source_code": "1"}}, {"name": "b", "arguments": {}}]',
            "",
            [("lua_repl", {"source_code": "1"}), ("b", {})],
        ),
        ('[TOOL_CALLS]lua_repl[ARGS]{"source_code": "1"}', "", [("lua_repl", {"source_code": "1"})]),
        (
            '<|python_tag|>{"name": "lua_repl", "parameters": {"source_code": "a; b"}}; {"name": "b"}',
            "",
            [("lua_repl", {"source_code": "a; b"}), ("b", {})],
        ),
        ('{"name": "lua_repl", "parameters": {"source_code": "1"}}', "", [("lua_repl", {"source_code": "1"})]),
        ('```json\n{"name": "lua_repl", "arguments": {}}\n```', "", [("lua_repl", {})]),
        ('<tool_call>{"name": "lua', "", [("", '{"name": "lua')]),
        ("<|python_tag|>print(1)", "", [("", "print(1)")]),
        ("[TOOL_CALLS][{broken", "", [("", "[{broken")]),
    ],
)
def test_calls_written_as_text(text: str, before: str, calls: list[Any]) -> None:
    assert read_calls(text, ["lua_repl"]) == (before, calls)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Hello", "Hello"),
        ("Hello <", "Hello "),
        ("Hello <tool", "Hello "),
        ("Hello <b>", "Hello <b>"),
        ("Hello\n<tool_call>{", "Hello"),
        ('{"name"', ""),
        ("a [TOOL", "a "),
        ("a [1]", "a [1]"),
    ],
)
def test_what_is_shown_of_a_text_being_written(text: str, shown: str) -> None:
    assert text_before_calls(text) == shown


def test_an_answer_in_json_is_shown_as_it_comes() -> None:
    text = '{"answer": "A \\"b\\" \\u00e4 \\ud83c\\udf0d\\n\\\\ end"}'
    seen = [text_in_json(text[:size]) for size in range(len(text) + 1)]
    assert seen[-1] == 'A "b" ä 🌍\n\\ end'
    assert all(later.startswith(earlier) for earlier, later in itertools.pairwise(seen) if later)
    assert text_in_json('{"tool": "lua_repl", "arguments": {"answer": "x"}}') == ""


def test_the_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    with pytest.raises(MissingExtra) as caught:
        LlamaCpp()
    wanted = "LlamaCpp needs the package 'llama-cpp-python'; install it with: pip install 'moonbox[llama-cpp]'"
    assert str(caught.value) == wanted
    with pytest.raises(UsageError, match='style must be "template" or "json", not \'xml\''):
        LlamaCpp(style="xml")  # type: ignore[arg-type]


def test_a_cancelled_stream_of_a_model_in_this_process_ends(monkeypatch: pytest.MonkeyPatch, mode: CodeMode) -> None:
    monkeypatch.setitem(sys.modules, "llama_cpp", ModuleType("llama_cpp"))
    computing, go_on = threading.Event(), threading.Event()
    ended: list[str] = []

    class Model:
        """Speaks as a Llama does, and takes its time."""

        chat_handler = "its own"

        def create_chat_completion(self, messages: Any, **_: Any) -> Iterator[Any]:
            try:
                computing.set()
                go_on.wait()
                yield {"choices": [{"delta": {"content": "Hello."}, "finish_reason": "stop"}]}
            finally:
                ended.append(messages[-1]["content"])

    async def main() -> None:
        agent = LlamaCpp(mode)
        options: dict[str, Any] = {"client": Model(), "on_text": lambda _: None}
        task = asyncio.create_task(agent.arun("first", **options))
        await asyncio.to_thread(computing.wait)
        task.cancel()
        asyncio.get_running_loop().call_soon(go_on.set)
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended == ["first"]
        assert (await agent.arun("second", **options)).text == "Hello."

    asyncio.run(main())
