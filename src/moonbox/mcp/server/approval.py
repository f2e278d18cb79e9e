"""The question to the person behind the client, and what the answer means."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mcp_types import ElicitRequest, ElicitRequestFormParams, ElicitResult

from moonbox.audit.terminal import visible
from moonbox.errors import Denied
from moonbox.sandbox.decisions import Decision
from moonbox.tools.signature import first_sentence

if TYPE_CHECKING:
    from moonbox.sandbox.decisions import ToolCall

__all__ = ["decision", "question", "refusal"]

_LONGEST_ARGUMENT = 1_500
_MOST_ARGUMENTS = 20


def question(call: ToolCall) -> ElicitRequest:
    """A form: accepting allows the call, declining or dismissing it does not."""
    lines = [f"Allow a call of the tool '{visible(call.name, keep='')}'?"]
    described = first_sentence(call.tool.description) if call.tool is not None else ""
    if described:
        lines.append(visible(described, keep=""))
    arguments = call.arguments if isinstance(call.arguments, dict) else {"arguments": call.arguments}
    order = call.tool.parameter_names if call.tool is not None else ()
    arguments = {name: arguments[name] for name in dict.fromkeys([*order, *arguments]) if name in arguments}
    for name, value in list(arguments.items())[:_MOST_ARGUMENTS]:
        lines.append(f"  {visible(str(name), keep='')} = {_shown(value)}")
    if len(arguments) > _MOST_ARGUMENTS:
        lines.append(f"  … and {len(arguments) - _MOST_ARGUMENTS} more arguments that are not shown")
    properties: dict[str, Any] = {}
    if call.repl_id:  # only a script calls again and again
        properties["always"] = {
            "type": "boolean",
            "title": "Allow every further call of this tool in this conversation",
            "default": False,
        }
    schema = {"type": "object", "properties": properties}
    return ElicitRequest(params=ElicitRequestFormParams(message="\n".join(lines), requested_schema=schema))


def decision(answer: ElicitResult) -> Decision:
    """What the person meant."""
    if answer.action == "accept":
        always = (answer.content or {}).get("always") is True
        return Decision("always" if always else "allow")
    return Decision("deny", "" if answer.action == "decline" else "the question was dismissed")


def refusal(call: ToolCall, direct: str | None) -> Denied:
    """For a client through which nobody can be asked."""
    instead = f"; call the tool `{direct}` directly instead of from a script" if direct else "; do without it"
    return Denied(
        f"the tool '{call.name}' needs a person's approval, and this client cannot pass the question on{instead}",
        code="approval_unavailable",
    )


def _shown(value: Any) -> str:
    text = visible(json.dumps(value, ensure_ascii=False, default=str), keep="")
    hidden = len(text) - _LONGEST_ARGUMENT
    return text if hidden <= 0 else f"{text[:_LONGEST_ARGUMENT]} … {hidden:,} more characters are not shown"
