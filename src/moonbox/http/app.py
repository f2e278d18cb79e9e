"""The application: the routes of the HTTP API, and the service behind them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from moonbox._version import __version__
from moonbox.audit.sinks import MemorySink
from moonbox.errors import AuditError, PoolTimeout, UsageError, WorkerError
from moonbox.http.failures import Refused, failure, of_script, of_tool
from moonbox.http.guard import Access, Guard
from moonbox.http.openapi import document
from moonbox.values import to_jsonable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from starlette.requests import Request

    from moonbox.audit.records import Run
    from moonbox.sandbox.sandbox import Sandbox
    from moonbox.tools.tool import Tool

__all__ = ["Service", "create_app", "routes"]

_MAX_LISTED_RUNS = 500
_REMEMBERED_RUNS = 200


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

    def tools(self) -> list[dict[str, Any]]:
        self.refresh()
        return [self.describe(tool) for tool in self.sandbox.toolbox]

    def describe(self, tool: Tool) -> dict[str, Any]:
        return {
            "name": tool.path,
            "description": tool.description,
            "builtin": tool.path in self.builtin,
            "parameters": tool.parameters,
            "returns": tool.returns,
        }

    async def call(self, name: str, arguments: dict[str, Any]) -> Run:
        self.refresh()
        return self._remember(await self.sandbox.acall(name, arguments))

    async def run(self, source: str) -> Run:
        return self._remember(await self.sandbox.arun(source))

    def runs(self, limit: int, offset: int) -> list[dict[str, Any]]:
        return [summary.to_dict() for summary in self._readable().list(limit, offset)]

    def find(self, run: str) -> Run | None:
        try:
            record: Run = self._readable().get(run)
        except (AuditError, UsageError):
            return None
        return record

    def _remember(self, run: Run) -> Run:
        if self.trail is None:
            self.recent.write(run)
        return run

    def _readable(self) -> Any:
        return self.trail if self.trail is not None else self.recent


def create_app(service: Service, access: Access | None = None) -> Starlette:
    """An ASGI application, for any ASGI server."""
    return Starlette(
        routes=routes(service),
        middleware=[Middleware(Guard, access=access or Access())],
        exception_handlers={Refused: _refused, HTTPException: _http, Exception: _broken},
    )


def routes(service: Service) -> list[Route]:
    """Only the routes, for an application that has others too."""
    api = _Api(service)
    return [
        Route("/health", api.health, methods=["GET"]),
        Route("/tools/list", api.list_tools, methods=["GET"]),
        Route("/tools/{name:path}", api.call_tool, methods=["POST"]),
        Route("/run", api.run, methods=["POST"]),
        Route("/runs", api.list_runs, methods=["GET"]),
        Route("/runs/{id}", api.get_run, methods=["GET"]),
        Route("/openapi.json", api.openapi, methods=["GET"]),
    ]


class _Api:
    def __init__(self, service: Service) -> None:
        self._service = service

    async def health(self, _: Request) -> Response:
        return JSONResponse({"status": "ok", "version": __version__, "tools": len(self._service.sandbox.toolbox)})

    async def list_tools(self, _: Request) -> Response:
        return JSONResponse({"tools": self._service.tools()})

    async def call_tool(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name == "list" and name not in self._service.sandbox.toolbox:
            raise HTTPException(405, headers={"Allow": "GET"})
        arguments = await _object(request, allow_empty=True)
        try:
            run = await self._service.call(name, arguments)
        except (PoolTimeout, WorkerError) as problem:
            raise Refused(503, "busy", str(problem)) from None
        if run.error is not None:
            return of_tool(run.error, run.id)
        return JSONResponse({"result": to_jsonable(run.value), "run": run.id})

    async def run(self, request: Request) -> Response:
        body = await _object(request)
        source = body.pop("source_code", None)
        if not isinstance(source, str) or body:
            raise Refused(400, "invalid_arguments", 'send {"source_code": "<script>"}')
        try:
            run = await self._service.run(source)
        except (PoolTimeout, WorkerError) as problem:
            raise Refused(503, "busy", str(problem)) from None
        if run.error is not None:
            return of_script(run.error, run.id)
        values = [to_jsonable(value) for value in run.values]
        return JSONResponse(
            {"result": values[0] if values else None, "values": values, "output": run.output, "run": run.id}
        )

    async def list_runs(self, request: Request) -> Response:
        limit, offset = _number(request, "limit", 50, _MAX_LISTED_RUNS), _number(request, "offset", 0, 10**9)
        return JSONResponse({"runs": self._service.runs(limit, offset)})

    async def get_run(self, request: Request) -> Response:
        run = self._service.find(request.path_params["id"])
        if run is None:
            raise Refused(404, "unknown_run", "unknown run id")
        return JSONResponse(run.to_dict())

    async def openapi(self, _: Request) -> Response:
        return JSONResponse(document(self._service.tools()))


async def _object(request: Request, *, allow_empty: bool = False) -> dict[str, Any]:
    """The body as a JSON object."""
    raw = await request.body()
    if not raw and allow_empty:
        return {}
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Refused(415, "unsupported_media_type", "send the body as application/json")
    try:
        data = json.loads(raw, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise Refused(400, "invalid_json", "the body is not valid JSON") from None
    if not isinstance(data, dict):
        raise Refused(400, "invalid_arguments", "the body must be a JSON object")
    return data


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def _number(request: Request, name: str, default: int, maximum: int) -> int:
    text = request.query_params.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 12 and int(text) <= maximum):
        raise Refused(400, "invalid_arguments", f"{name} must be a whole number from 0 to {maximum}")
    return int(text)


async def _refused(_: Request, problem: Exception) -> Response:
    assert isinstance(problem, Refused)
    return failure(problem.status, problem.code, problem.message, headers=problem.headers)


async def _http(_: Request, problem: Exception) -> Response:
    assert isinstance(problem, HTTPException)
    code = {404: "not_found", 405: "method_not_allowed"}.get(problem.status_code, "bad_request")
    headers = dict(problem.headers) if problem.headers else None
    return failure(problem.status_code, code, str(problem.detail), headers=headers)


async def _broken(_: Request, __: Exception) -> Response:
    return failure(500, "internal", "internal error; the log of moonbox has the details")
