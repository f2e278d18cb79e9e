"""A recorded model: its scripts for each task, and what it says to each request."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wire import Say, Seen, Turn, Use

from moonbox.adapters.loop import Tokens
from moonbox.codemode.catalog import rough_tokens
from trials.many import ERRANDS
from trials.tasks import MARK, TASKS
from trials.world import Shop

if TYPE_CHECKING:
    from trials.many import Errand
    from trials.tasks import Task

__all__ = ["RecordedModel", "scripts"]

FOLDER = Path(__file__).parent / "scripts"
LANGUAGES = ("lua", "rhai")
_HEAD = re.compile(r"^(?:--|//) task: *(\w+)\n", re.MULTILINE)
_SEARCH = {"lua": 'return docs.search("{}")', "rhai": 'docs_search("{}")'}


def scripts(kind: str, language: str) -> dict[str, str]:
    """The script of each task: "plain", with "helpers", or "slips", which do not work."""
    text = (FOLDER / f"{kind}.{language}").read_text(encoding="utf-8")
    _, *parts = _HEAD.split(text)
    return {name: source.strip() for name, source in zip(parts[::2], parts[1::2], strict=True)}


class RecordedModel:
    """Answers each request by what the conversation has so far. It keeps no state but its count of tokens."""

    def __init__(self) -> None:
        self.spent = Tokens()
        """What it has read and written, estimated."""
        self._tasks = {task.prompt: task for task in TASKS}
        self._errands = {errand.prompt: errand for errand in ERRANDS}
        self._scripts = {language: self.recorded(language) for language in LANGUAGES}

    def recorded(self, language: str) -> dict[str, list[str]]:
        """The scripts of each task in the order in which it writes them."""
        slips = scripts("slips", language)
        helpers = scripts("helpers", language)
        return {name: [slips[name], source] if name in slips else [source] for name, source in helpers.items()}

    def __call__(self, seen: Seen) -> Turn:
        said = Turn.of(self._say(seen))
        written = "".join([said.text, *(_text(use.arguments) for use in said.uses)])
        self.spent += Tokens(rough_tokens(_read(seen)), rough_tokens(written))
        return said

    def _say(self, seen: Seen) -> Any:
        prompt = seen.prompts[-1]
        language = next((name for name in LANGUAGES if f"{name}_repl" in seen.tools), None)
        if language is None:
            return _direct(self._tasks[prompt], seen)
        if prompt in self._errands:
            return _errand(self._errands[prompt], language, seen)
        return _written(self._scripts[language][self._tasks[prompt].name], language, seen)


def _written(sources: list[str], language: str, seen: Seen) -> Any:
    """The next script; after the last one, its result."""
    done = len(seen.results)
    if done < len(sources):
        return Use(f"{language}_repl", {"source_code": sources[done]})
    return Say(f"{MARK} {seen.results[-1].text}")


def _errand(errand: Errand, language: str, seen: Seen) -> Any:
    """Search, and call the tool if the search has shown all that the script needs."""
    if len(seen.results) == 1 and (unread := [word for word in errand.needs if word not in seen.results[0].text]):
        return Say(f"I did not find a tool for this: nothing says {', '.join(unread)}.")
    return _written([_SEARCH[language].format(errand.words), errand.script(language)], language, seen)


def _direct(task: Task, seen: Seen) -> Any:
    """The next calls; the answer once there are no more. A real model would have to add up in its head."""
    calls = task.calls(Shop())
    texts = [result.text for result in seen.results]
    try:
        turn = next(calls)
        while texts:
            results, texts = texts[: len(turn)], texts[len(turn) :]
            turn = calls.send([json.loads(text) for text in results])
    except StopIteration:
        return Say(f"{MARK} {json.dumps(task.expected())}")
    return [Use(name, arguments) for name, arguments in turn]


def _read(seen: Seen) -> str:
    """What a request has for the model to read: definitions, prompts, its own calls, their results."""
    definitions = [_text({"name": name, **definition}) for name, definition in seen.tools.items()]
    called = [f"{call.name} {_text(call.arguments)}" for call in seen.called]
    return "\n".join([seen.system, *definitions, *seen.prompts, *called, *(result.text for result in seen.results)])


def _text(arguments: Any) -> str:
    """Arguments as a model writes them: the code tool's script, or JSON."""
    if isinstance(arguments, dict) and list(arguments) == ["source_code"]:
        return str(arguments["source_code"])
    return json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
