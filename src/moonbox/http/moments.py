"""Recorded runs: found in the journal, looked at call by call, and forked with other answers."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import structs

from moonbox.audit.query import labels_of, moment
from moonbox.audit.records import Run
from moonbox.durable.index import JournalFilter
from moonbox.errors import MoonboxError, UsageError
from moonbox.http.playground import answer_of, run_dict
from moonbox.http.requests import JsonAnswer, Refused, json_object, number, refusing, text
from moonbox.threads import in_thread, own_thread

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from moonbox.durable.views import RunView
    from moonbox.http.workbench import Workbench

_SHAPE = 'send {"at": 7, "answers": [{"id": 7, "kind": "value", "value": 1}], "dry": false}'


class MomentsApi:
    """The handlers."""

    def __init__(self, workbench: Workbench) -> None:
        self._bench = workbench

    async def list_journal(self, request: Request) -> Response:
        """The runs of the journal that fit, the latest first."""
        given = {name: text(request, name) or "" for name in ("state", "tool", "since", "text", "label")}
        limit, page = number(request, "limit", 100, 1_000), max(1, number(request, "page", 1, 1_000_000))
        with refusing(400, "invalid", UsageError):
            label, since = given.pop("label"), given.pop("since")
            wanted = JournalFilter(
                **given,
                since=moment(since, time.time()) if since else 0.0,
                labels=labels_of([label] if label else []) or {},
            )
        with refusing(409, "unavailable", MoonboxError):
            found = await in_thread(partial(self._bench.journal.runs, wanted, most=limit + 1, skip=limit * (page - 1)))
        return JsonAnswer({"runs": [structs.asdict(run) for run in found[:limit]], "more": len(found) > limit})

    async def get_moment(self, request: Request) -> Response:
        view = await self._view(request, request.path_params["index"])
        return JsonAnswer(self._view_dict(view))

    async def fork_run(self, request: Request) -> Response:
        """It answers when the fork has ended, or stops; a client that does not wait for that does not end it."""
        body = await json_object(request)
        at, answers, dry = body.get("at"), body.get("answers", []), body.get("dry", False)
        listed = isinstance(answers, list) and all(isinstance(each, dict) for each in answers)
        if isinstance(at, bool) or not isinstance(at, int) or not listed or not isinstance(dry, bool):
            raise Refused(400, "invalid", _SHAPE)
        with refusing(400, "invalid", UsageError):
            given = dict(answer_of(answer) for answer in answers)
        view = await self._view(request, at)
        with refusing(409, "unavailable", MoonboxError):
            came_to = await view.afork(given, dry=dry)
        if not isinstance(came_to, Run):
            return JsonAnswer({"run": None, "output": came_to.output, "stopped": self._view_dict(came_to)})
        return JsonAnswer({"run": run_dict(came_to), "output": came_to.output, "stopped": None})

    async def _view(self, request: Request, at: int) -> RunView:
        run = request.path_params["id"]

        def look() -> RunView:
            return self._bench.sandbox_of(run).replay(run, until=at)

        with refusing(409, "unavailable", MoonboxError):
            return await in_thread(look, start=own_thread)

    def _view_dict(self, view: RunView) -> Mapping[str, Any]:
        """A view without the answers of all calls, which a page has already."""
        told = {name: value for name, value in view.to_dict().items() if name != "calls"}
        return {**told, "call": {**told["call"], "order": self._bench.order(view.call.tool)}}
