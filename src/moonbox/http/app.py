"""The application: the routes of the HTTP API, and the service behind them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from time import time
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from moonbox._version import __version__
from moonbox.audit.query import RunFilter, RunPage, labels_of, moment
from moonbox.audit.records import RUN_STATES, Run
from moonbox.audit.reports import compare, economy_of
from moonbox.audit.sinks import MemorySink
from moonbox.codemode.catalog import rough_tokens
from moonbox.durable.approvals import hint_names
from moonbox.errors import AuditError, PoolTimeout, ToolError, UsageError, WorkerError
from moonbox.http.guard import Access, ApiGuard
from moonbox.http.openapi import (
    api_operations,
    document,
    routes_of,
    server_operations,
    workbench_operations,
)
from moonbox.http.playground import parameter_order, run_report
from moonbox.http.requests import (
    JsonAnswer,
    Refused,
    choice,
    failure,
    flag,
    json_object,
    number,
    of_script,
    of_tool,
    refusing,
    text,
    while_connected,
)
from moonbox.http.workbench_api import WorkbenchApi
from moonbox.threads import in_thread
from moonbox.values import to_jsonable

if TYPE_CHECKING:
    from moonbox.http.workbench import Workbench
    from moonbox.sandbox.sandbox import Sandbox

_MAX_LISTED_RUNS = 500
_REMEMBERED_RUNS = 200
_SHOWN_SECONDS = 60.0


@dataclass(slots=True)
class Service:
    """What the API serves: the tools and runs, without any HTTP."""

    sandbox: Sandbox
    builtin: Collection[str] = ()
    """Paths of the tools that are part of moonbox."""
    trail: Any = None
    """Where runs are read from; without one the latest runs are kept in memory."""
    refresh: Callable[[], object] = field(default=lambda: None)
    """Called before tools are listed or called: picks up changed files."""
    recent: MemorySink = field(default_factory=lambda: MemorySink(_REMEMBERED_RUNS))
    servers: Any = None
    """The `Upstreams` whose tools there are, if any."""
    workbench: Workbench | None = None
    """Sessions, approvals and live events, for a person at a screen."""
    scripts: Any = None
    """The `ScriptLibrary` among whose scripts runs are saved, if any."""

    def tools(self) -> list[dict[str, Any]]:
        self.refresh()
        return [
            {
                "name": tool.path,
                "description": tool.description,
                "builtin": tool.path in self.builtin,
                "parameters": tool.parameters,
                "returns": tool.returns,
                "policy": tool.policy,
                "hints": hint_names(tool),
            }
            for tool in self.sandbox.toolbox
        ]

    async def call(self, name: str, arguments: dict[str, Any]) -> Run:
        self.refresh()
        return self._remember(await self.sandbox.acall(name, arguments))

    async def run(self, source: str) -> Run:
        return self._remember(await self.sandbox.arun(source))

    @property
    def readable(self) -> Any:
        """The trail that runs are read from."""
        return self.trail if self.trail is not None else self.recent

    def page(self, limit: int, before: str | None, where: RunFilter) -> RunPage:
        """A page of runs; UsageError when `before` is not the id of a run."""
        page: RunPage = self.readable.page(limit, before=before, where=where)
        known = {run.id for run in page.runs}
        going = MemorySink()
        for run in self.going() if before is None else ():
            going.write(run)
        return replace(page, runs=(*(run for run in going.page(where=where).runs if run.id not in known), *page.runs))

    def going(self) -> list[Run]:
        """Runs that are not in the trail yet: of the playground, and those that wait for a person."""
        return [] if self.workbench is None else self.workbench.going()

    def details(self, id: str) -> dict[str, Any]:
        """What a listing of runs does not have: labels, and the tokens that the run spared a model."""
        run = self.find(id)
        if run is None:
            return {}
        spared = None if run.running else economy_of(run, run.for_model(), rough_tokens)["spared"]
        return {"labels": dict(run.labels), "spared": spared}

    def find(self, run: str) -> Run | None:
        try:
            record: Run = self.readable.get(run)
        except (AuditError, UsageError):
            return next((going for going in self.going() if going.id == run), None)
        return record

    def _remember(self, run: Run) -> Run:
        if self.trail is None:
            self.recent.write(run)
        return run


def create_app(service: Service, access: Access | None = None, *, more: Sequence[BaseRoute] = ()) -> Starlette:
    """An ASGI application, for any ASGI server; `more` are routes of other parts beside the API's own."""
    return Starlette(
        routes=[*routes(service), *more],
        middleware=[Middleware(ApiGuard, access=access or Access())],
        exception_handlers={HTTPException: _refused, ClientDisconnect: _gone, Exception: _broken},
    )


def routes(service: Service) -> list[BaseRoute]:
    """Only the routes, for an application that has others too."""
    api, any_tool = _Api(service), "/tools/{name:path}"
    found = [*routes_of(api, api_operations()), Route(any_tool, api.call_tool, methods=["POST"])]
    if service.workbench is None:
        return found
    servers = [] if service.servers is None else routes_of(api, server_operations())
    return [*routes_of(WorkbenchApi(service.workbench), workbench_operations()), *servers, *found]


class _Api:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._logins: set[asyncio.Future[Any]] = set()

    async def health(self, _: Request) -> Response:
        return JsonAnswer({"status": "ok", "version": __version__, "tools": len(self._service.sandbox.toolbox)})

    async def list_tools(self, _: Request) -> Response:
        return JsonAnswer({"tools": self._service.tools()})

    async def call_tool(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name in ("list", "search") and name not in self._service.sandbox.toolbox:
            raise HTTPException(405, headers={"Allow": "GET"})
        background, arguments = flag(request, "background"), await json_object(request, allow_empty=True)
        with refusing(503, "busy", PoolTimeout, WorkerError):
            calling = self._service.call(name, arguments)
            run = await (calling if background else while_connected(request, calling))
        if run.error is not None:
            return of_tool(run.error, run.id)
        return JsonAnswer({"result": to_jsonable(run.value), "run": run.id})

    async def run(self, request: Request) -> Response:
        body = await json_object(request)
        source, background = body.pop("source_code", None), body.pop("background", False)
        if not isinstance(source, str) or not isinstance(background, bool) or body:
            raise Refused(400, "invalid", 'send {"source_code": "<script>"}, with "background": true or without')
        running = self._service.run(source)
        with refusing(503, "busy", PoolTimeout, WorkerError):
            run = await (running if background else while_connected(request, running))
        if run.error is not None:
            return of_script(run.error, run.id)
        values = [to_jsonable(value) for value in run.values]
        return JsonAnswer(
            {"result": values[0] if values else None, "values": values, "output": run.output, "run": run.id}
        )

    async def search_tools(self, request: Request) -> Response:
        words = text(request, "q")
        if words is None:
            raise Refused(400, "invalid", "q must not be empty")
        self._service.refresh()
        return JsonAnswer({"tools": self._service.sandbox.docs.search(words, number(request, "limit", 10, 50))})

    async def list_runs(self, request: Request) -> Response:
        limit, offset = number(request, "limit", 50, _MAX_LISTED_RUNS), number(request, "offset", 0, 10**9)
        where: dict[str, Any] = {name: text(request, name) for name in ("kind", "tool", "repl", "language")}
        where |= {"ok": flag(request, "ok"), "state": choice(request, "state", RUN_STATES), "text": text(request, "q")}
        with refusing(400, "invalid", UsageError):
            where["labels"] = labels_of(request.query_params.getlist("label"))
            for name in ("since", "until"):
                given = text(request, name)
                where[name] = None if given is None else moment(given, time())
        before = text(request, "before")
        if offset and before is None:
            runs = await in_thread(partial(self._service.readable.list, limit, offset, **where))
            return JsonAnswer({"runs": [run.to_dict() for run in runs]})
        try:
            page = await in_thread(self._service.page, limit, before, RunFilter(**where))
        except UsageError:
            raise Refused(404, "unknown_run", "before must be the id of a run") from None
        rows = [run.to_dict() for run in page.runs]
        total = None
        if flag(request, "details"):
            rows = await in_thread(lambda: [{**row, **self._service.details(row["id"])} for row in rows])
            if where["text"] is None and not where["labels"]:  # which would read every record
                total = await in_thread(self._service.readable.count, RunFilter(**where))
        return JsonAnswer({"runs": rows, "next": page.next, "searched_back_to": page.searched_back_to, "total": total})

    async def get_run(self, request: Request) -> Response:
        run = await self._find(request.path_params["id"])
        return JsonAnswer(run.to_dict())

    async def get_report(self, request: Request) -> Response:
        run = await self._find(request.path_params["id"])
        return JsonAnswer(await in_thread(run_report, run))

    async def get_call(self, request: Request) -> Response:
        run = await self._find(request.path_params["id"])
        index = request.path_params["index"]
        for call in run.calls:
            if call.index == index:
                return JsonAnswer({**call.to_dict(), "order": parameter_order(call.tool, self._service.sandbox)})
        raise Refused(404, "unknown_call", "unknown call")

    async def compare(self, request: Request) -> Response:
        first, second = text(request, "a"), text(request, "b")
        if first is None or second is None:
            raise Refused(400, "invalid", "a and b must be ids of runs")
        return JsonAnswer(await in_thread(compare, await self._find(first), await self._find(second)))

    async def list_servers(self, _: Request) -> Response:
        return JsonAnswer({"servers": [status.to_dict() for status in self._service.servers.statuses()]})

    async def retry_server(self, request: Request) -> Response:
        await json_object(request)
        with refusing(404, "unavailable", ToolError, UsageError):
            self._service.servers.retry(request.path_params["name"])
        return JsonAnswer({"ok": True}, 202)

    async def log_in(self, request: Request) -> Response:
        """Begin a login; the answer has the address that a person must open on the machine of this server."""
        await json_object(request)
        shown: Future[str] = Future()

        async def show(address: str) -> None:  # on the servers' loop
            shown.set_result(address)

        task = asyncio.ensure_future(self._service.servers.log_in(request.path_params["name"], show))
        self._logins.add(task)
        task.add_done_callback(self._logins.discard)
        address = asyncio.wrap_future(shown)
        await asyncio.wait({task, address}, timeout=_SHOWN_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        with refusing(404, "unavailable", ToolError, UsageError):
            return JsonAnswer({"address": address.result() if address.done() else task.done() and task.result()}, 202)

    async def _find(self, id: str) -> Run:
        """A run as every client may see it: tracebacks of tools are on the console's page alone."""
        run = await in_thread(self._service.find, id)
        if run is None:
            raise Refused(404, "unknown_run", "unknown run id")
        return run.without_details()

    async def metrics(self, _: Request) -> Response:
        metrics = self._service.sandbox.metrics
        if metrics is None:
            raise Refused(404, "not_found", "metrics need the extra: pip install 'moonbox[metrics]'")
        return Response(await in_thread(metrics.text), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def openapi(self, _: Request) -> Response:
        service = self._service
        has_workbench = service.workbench is not None
        servers = has_workbench and service.servers is not None
        return JsonAnswer(document(service.tools(), workbench=has_workbench, servers=servers))


async def _refused(_: Request, problem: Exception) -> Response:
    assert isinstance(problem, HTTPException)
    code = {404: "not_found", 405: "method_not_allowed"}.get(problem.status_code, "bad_request")
    code = problem.code if isinstance(problem, Refused) else code
    headers = dict(problem.headers) if problem.headers else None
    return failure(problem.status_code, code, str(problem.detail), headers=headers)


async def _gone(_: Request, __: Exception) -> Response:
    """The client has closed the connection. The answer is not read; its status is in the log."""
    return Response(status_code=499)


async def _broken(_: Request, __: Exception) -> Response:
    return failure(500, "internal", "internal error; the log of moonbox has the details")
