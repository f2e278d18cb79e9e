"""llama-cpp-python, run in an environment of its own: a tiny model file, the real engine and its grammars."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, Literal

import pytest
from llama_cpp import Llama, LogitsProcessorList

from moonbox.adapters.local import LlamaCpp
from moonbox.errors import UsageError
from tests.adapters.tiny_gguf import PLAIN, WITH_TOOLS, Teacher, write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from moonbox import CodeMode

SUM = {"source_code": "total = (total or 0) + 20\nreturn total"}


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Llama]]:
    folder = tmp_path_factory.mktemp("models")
    templates = {"with tools": WITH_TOOLS, "plain": PLAIN}
    made = {
        name: Llama(str(write(folder / f"{number}.gguf", text)), n_ctx=20_000, n_batch=2048, verbose=False)
        for number, (name, text) in enumerate(templates.items())
    }
    yield made
    for model in made.values():
        model.close()


@pytest.fixture(params=["sync", "async", "stream", "async-stream"])
def run(request: pytest.FixtureRequest) -> Callable[..., Any]:
    def called(agent: LlamaCpp, teacher: Teacher, prompt: Any, **options: Any) -> Any:
        heard: list[str] = []
        options |= {"client": teacher.llama, "logits_processor": LogitsProcessorList([teacher]), "temperature": 0.0}
        if "stream" in request.param:
            options["on_text"] = heard.append
        if request.param.startswith("async"):
            done = asyncio.run(agent.arun(prompt, **options))
        else:
            done = agent.run(prompt, **options)
        if "stream" in request.param:
            assert "".join(heard).endswith(done.text)
            assert "tool" not in "".join(heard)
        return done

    return called


def written(name: str, arguments: Any) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def test_the_template_shows_tools_and_results(models: Any, mode: CodeMode, run: Any) -> None:
    both = "Let me see.\n" + written("lua_repl", SUM) + "\n" + written("delete_file", {"path": "ä.txt"})
    teacher = Teacher(models["with tools"], both, written("lua_repl", SUM), "It is 40 — done.")
    done = run(LlamaCpp(mode), teacher, "Count.", system="Be brief.")
    assert done.text == "It is 40 — done."
    assert [reply.text for reply in done.replies] == ["20", "deleted ä.txt", "40"]
    first, _, last = teacher.prompts
    assert json.dumps(mode.description)[1:40] in first
    assert "<|im_start|>system\nBe brief.\n\n" in first
    assert '"name": "lua_repl"' in last and "total = (total or 0) + 20" in last
    assert "<|im_start|>tool\ndeleted ä.txt<|im_end|>" in last


def test_mistakes_are_answered_to_the_model(models: Any, mode: CodeMode, run: Any) -> None:
    wrong = '<tool_call>{"name": "lua_repl", "arguments": {"source_code": "ret</tool_call>'
    teacher = Teacher(models["with tools"], wrong + written("nothing", {}), "Sorry.")
    done = run(LlamaCpp(mode), teacher, "Go.")
    assert done.replies[0].text.startswith("error: unknown tool ''")
    assert done.replies[1].text.startswith("error: unknown tool 'nothing'")
    assert done.text == "Sorry."


def test_a_grammar_for_models_without_tools(models: Any, mode: CodeMode, run: Any) -> None:
    call = json.dumps({"tool": "lua_repl", "arguments": SUM})
    answer = json.dumps({"answer": 'It is "40" – ä 🌍.'})
    teacher = Teacher(models["plain"], call, json.dumps({"tool": "delete_file", "arguments": {"path": "x"}}), answer)
    done = run(LlamaCpp(mode, style="json"), teacher, "Count.", system="Be brief.")
    assert done.text == 'It is "40" – ä 🌍.'
    assert [reply.text for reply in done.replies] == ["20", "deleted x"]
    first, second, last = teacher.prompts
    assert mode.description in first and "Be brief." in first and "arguments:" in first
    result = "<|im_end|>\n<|im_start|>user\nResult of lua_repl:\n20<|im_end|>\n<|im_start|>assistant"
    assert second.endswith(call + result)
    assert "Result of delete_file:\ndeleted x" in last
    assert done.messages[-1] == {"role": "assistant", "content": answer}


def test_the_grammar_holds_whatever_the_model_would_say(models: Any, mode: CodeMode) -> None:
    """Weights at random, nobody teaching: what comes out is a call or an answer all the same."""
    agent = LlamaCpp(mode, style="json")
    llama = models["plain"]
    for seed in range(4):
        done = agent.run("Hi.", client=llama, max_turns=1, seed=seed, temperature=1.5, max_tokens=3000)
        if done.response["choices"][0]["finish_reason"] == "stop":
            said = json.loads(done.messages[2]["content"], strict=False)
            assert list(said) == ["answer"] or said["tool"] in ("lua_repl", "delete_file", "broken", "meet")
            assert done.text == said["answer"] if "answer" in said else done.replies


def test_a_call_forced_by_the_tool_choice(models: Any, mode: CodeMode) -> None:
    """The package's own way: tool_choice names the tool, its schema becomes the grammar."""
    agent = LlamaCpp(mode)
    teacher = Teacher(models["with tools"], json.dumps({"source_code": "return 6 * 7"}))
    response = models["with tools"].create_chat_completion(
        messages=[{"role": "user", "content": "6 * 7?"}],
        tools=agent.tools,
        tool_choice={"type": "function", "function": {"name": "lua_repl"}},
        logits_processor=LogitsProcessorList([teacher]),
        temperature=0.0,
    )
    more = agent.turn(response)
    assert [message["role"] for message in more] == ["assistant", "tool"]
    assert more[1]["content"] == "42"


def test_a_call_that_was_cut_off_is_not_run(models: Any, mode: CodeMode) -> None:
    agent = LlamaCpp(mode)
    teacher = Teacher(models["with tools"], written("lua_repl", {"source_code": "x = 2 -- a long script"}), "Sorry.")
    options: Any = {"client": teacher.llama, "logits_processor": LogitsProcessorList([teacher]), "temperature": 0.0}
    done = agent.run("Go.", max_tokens=70, **options)
    assert done.replies[0].text.startswith("error: your answer ended at its token limit")
    assert done.replies[0].run is None


def test_a_conversation_goes_on(models: Any, mode: CodeMode) -> None:
    styles: tuple[tuple[Literal["template", "json"], str], ...] = (("template", "with tools"), ("json", "plain"))
    for style, name in styles:
        agent = LlamaCpp(mode, style=style)
        call = written("lua_repl", SUM) if style == "template" else json.dumps({"tool": "lua_repl", "arguments": SUM})
        answer = "ok" if style == "template" else json.dumps({"answer": "ok"})
        teacher = Teacher(models[name], call, answer, call, answer)
        options: Any = {"client": teacher.llama, "logits_processor": LogitsProcessorList([teacher]), "temperature": 0.0}
        first = agent.run("Count.", conversation=style, **options)
        again = agent.run([*first.messages, {"role": "user", "content": "Again."}], conversation=style, **options)
        assert again.replies[0].text == "40"
        assert teacher.prompts[-1].count(agent.system_prompt) == 1


def test_what_is_refused(models: Any, mode: CodeMode) -> None:
    with pytest.raises(UsageError, match="LlamaCpp needs a model: run"):
        LlamaCpp(mode).run("hi")
    with pytest.raises(UsageError, match="does not show it tools; use LlamaCpp"):
        LlamaCpp(mode).run("hi", client=models["plain"])
