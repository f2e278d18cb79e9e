"""The commands `moonbox approvals list` and `answer`: calls that wait for a person, of any process with the journal."""

from __future__ import annotations

import json
import time
from typing import Annotated, Any

import typer

from moonbox.cli.durable import open_place
from moonbox.cli.options import ConfigFile, Json, Place, argument, flag, option
from moonbox.cli.output import print_json, user_name
from moonbox.cli.run_options import json_or_text
from moonbox.errors import UsageError
from moonbox.wording import seconds, visible

app = typer.Typer(name="approvals", help="List and answer calls that wait for a person.", no_args_is_help=True)
_LONGEST = 2_000  # characters of the arguments in the list


@app.command("list")
def list_approvals(journal: Place = None, config: ConfigFile = None, as_json: Json = False) -> None:
    """List the calls that wait for a person, oldest first."""
    from moonbox.journal.questions import Questions
    from moonbox.sandbox.approvals import Question

    opened = open_place(journal, config)
    found = [Question.of_kept(kept).to_dict() for kept in Questions(opened.backend).pending()]
    opened.close()
    if as_json:
        print_json(found)
        return
    if not found:
        typer.echo("no calls wait for approval")
    for each in found:
        arguments = json.dumps(each["arguments"], ensure_ascii=False)
        cut = len(arguments) - _LONGEST
        more = f" … {cut:,} more characters: use --json" if cut > 0 else ""
        labels = [f"{name}={text}" for name, text in each["labels"].items()]
        age, left = (seconds(max(0.0, span)) for span in (time.time() - each["asked"], each["expires"] - time.time()))
        about = ", ".join([f"asked {age} ago", f"expires in {left}", f"run {each['run']}", *each["hints"], *labels])
        typer.echo(visible(f"{each['id']}  {each['tool']} {arguments[:_LONGEST]}{more}", keep=""))
        typer.echo(visible(f"  {about}", keep=""))


@app.command("answer")
def answer(
    id: Annotated[str, argument(help="The approval's id, from `moonbox approvals list`.", metavar="ID")],
    allow: Annotated[bool, flag("--allow", help="Run the call.")] = False,
    deny: Annotated[bool, flag("--deny", help="Do not run the call.")] = False,
    edit: Annotated[
        str | None, option("--edit", metavar="JSON", help="With --allow: arguments to change, as a JSON object.")
    ] = None,
    reason: Annotated[str, option("--reason", metavar="TEXT", help="Why; a script whose call is denied gets it.")] = "",
    journal: Place = None,
    config: ConfigFile = None,
) -> None:
    """Answer a call that waits for a person.

    The first answer counts. The process that waits continues within a second;
    if it has died, `moonbox resume` uses the answer.
    """
    from moonbox.journal.questions import Questions

    if allow == deny or (edit is not None and deny):
        raise UsageError("say what you decide: --allow, --allow --edit JSON, or --deny")
    decision: dict[str, Any] = {"kind": "allow" if allow else "deny", "reason": reason, "by": user_name()}
    if edit is not None:
        changes = json_or_text(edit)
        if not isinstance(changes, dict):
            raise UsageError('--edit takes a JSON object, such as {"amount": 5}')
        decision |= {"kind": "edit", "changes": changes}
    opened = open_place(journal, config)
    try:
        Questions(opened.backend).answer(id, decision)
    finally:
        opened.close()
    typer.echo("allowed" if allow else "denied")
