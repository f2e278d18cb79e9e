"""What the adapters share: packages that are missing, what belongs to whom, and which calls run together."""

from __future__ import annotations

import asyncio
import contextvars
import subprocess
import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from moonbox import CodeMode, Sandbox, Toolbox, tool
from moonbox.adapters.anthropic import AnthropicMessages
from moonbox.adapters.base import Adapter, ModelCall, aanswer_all, answer_all, needed
from moonbox.adapters.google import GoogleGenAI
from moonbox.adapters.litellm import LiteLLM
from moonbox.adapters.loop import Tokens
from moonbox.adapters.openai import OpenAIChat, OpenAIResponses
from moonbox.errors import ClosedError, ConfigError, MissingExtra


def test_a_package_that_is_missing() -> None:
    with pytest.raises(MissingExtra) as caught:
        needed("no_such_package.types", extra="such", purpose="Such")
    assert str(caught.value) == "Such needs the package 'no_such_package'; install it with: pip install 'moonbox[such]'"
    with pytest.raises(MissingExtra, match="needs the package 'on-pypi'"):
        needed("no_such_package", package="on-pypi", extra="such", purpose="Such")
    assert needed("json", extra="x", purpose="x").dumps(1) == "1"


@pytest.mark.parametrize(
    ("adapter", "module", "package", "extra"),
    [
        (OpenAIChat, "openai", "openai", "openai"),
        (OpenAIResponses, "openai", "openai", "openai"),
        (AnthropicMessages, "anthropic", "anthropic", "anthropic"),
        (GoogleGenAI, "google.genai.types", "google-genai", "google"),
        (LiteLLM, "litellm", "litellm", "litellm"),
    ],
)
def test_the_package_of_a_provider(
    adapter: Any, module: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra) as caught:
        adapter()
    wanted = f"{adapter.__name__} needs the package '{package}'; install it with: pip install 'moonbox[{extra}]'"
    assert str(caught.value) == wanted


def test_a_package_that_is_broken_is_another_story(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "broken_package.py").write_text("import what_it_needs")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ModuleNotFoundError) as caught:
        needed("broken_package", extra="x", purpose="x")
    assert not isinstance(caught.value, MissingExtra)


def test_importing_the_adapters_imports_no_package() -> None:
    program = (
        "import sys\n"
        "import moonbox.adapters.openai, moonbox.adapters.anthropic, moonbox.adapters.google\n"
        "import moonbox.adapters.litellm, moonbox.adapters.local\n"
        "print(sorted(set(sys.modules) & {'openai', 'anthropic', 'google.genai', 'litellm', 'llama_cpp', 'pydantic'}))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_what_is_closed_with_the_adapter(box: Sandbox) -> None:
    with Adapter(box) as adapter:
        mode = adapter.mode
    with pytest.raises(ClosedError):
        mode.handle("lua_repl", {"source_code": "1"})
    assert box.run("return 1").value == 1
    with CodeMode(box) as given, Adapter(given) as other:
        other.close()
        assert given.handle("lua_repl", {"source_code": "1"}) == "1"

    async def main() -> Sandbox:
        async with Adapter(Toolbox()) as own:
            assert await own.mode.ahandle("lua_repl", {"source_code": "1"}) == "1"
            return own.mode.sandbox

    with pytest.raises(ClosedError):
        asyncio.run(main()).run("return 1")


def test_a_wrong_setting_leaves_nothing_open() -> None:
    before = threading.active_count()
    with pytest.raises(ConfigError, match="unknown setting 'kep_visible'; did you mean 'keep_visible'"):
        Adapter([], kep_visible=[])
    assert threading.active_count() <= before


who = contextvars.ContextVar("who", default="nobody")


def test_calls_run_together_and_scripts_one_after_another(box: Sandbox) -> None:
    order: list[str] = []

    @tool(policy="direct")
    def note(text: str) -> str:
        """Note."""
        order.append(text)
        return f"{text} by {who.get()}"

    script = "n = (n or 0) + 1 return n"
    calls = [ModelCall(str(number), "lua_repl", {"source_code": script}) for number in range(5)]
    calls.insert(2, ModelCall("a", "note", {"text": "x"}))
    calls.append(ModelCall("b", "note", '{"text": "y"}'))
    with Sandbox([note]) as own, CodeMode(own) as mode:
        token = who.set("ada")
        replies = answer_all(mode, calls, "one")
        awaited = asyncio.run(aanswer_all(mode, calls, "two"))
        who.reset(token)
        assert answer_all(mode, [], "three") == asyncio.run(aanswer_all(mode, [], "three")) == []
    for answers in (replies, awaited):
        assert [reply.text for reply in answers] == ["1", "2", "x by ada", "3", "4", "5", "y by ada"]
    assert sorted(order) == ["x", "x", "y", "y"]


@pytest.mark.parametrize(
    ("response", "tokens"),
    [
        ({"usage": {"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13}}, Tokens(10, 3)),
        ({"usage": {"input_tokens": 10, "output_tokens": 3}}, Tokens(10, 3)),
        (
            SimpleNamespace(usage=SimpleNamespace(input_tokens=1, cache_read_input_tokens=9, output_tokens=3)),
            Tokens(10, 3),
        ),
        (
            SimpleNamespace(
                usage_metadata=SimpleNamespace(
                    prompt_token_count=10, candidates_token_count=2, thoughts_token_count=None
                )
            ),
            Tokens(10, 2),
        ),
        ({"usage": None}, Tokens()),
        ({"usage": {"prompt_tokens": "many"}}, Tokens()),
        (None, Tokens()),
    ],
)
def test_tokens_of_an_answer(response: Any, tokens: Tokens) -> None:
    assert Tokens.of(response) == tokens
    assert (Tokens.of(response) + Tokens(3, 4)).total == tokens.input + tokens.output + 7
