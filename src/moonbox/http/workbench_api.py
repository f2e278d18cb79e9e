"""The API of the workbench.

GET    /events                     server-sent events: run, approval, answered, and those of one session
POST   /sessions                   {"language"}; a new session
GET    /sessions/{id}              its state
DELETE /sessions/{id}              end it
POST   /sessions/{id}/run          {"source_code", "step", "limits"}; what happens comes as events
POST   /sessions/{id}/resume       {"answers"}; go on from a pause
POST   /sessions/{id}/stop
GET    /sessions/{id}/globals
POST   /check                      {"source_code", "language", "session"}
GET    /approvals                  what waits for a person, and the latest answers
POST   /approvals/{id}             {"decision", "reason", "arguments"}
GET    /knowledge/search           ?q&mode&limit&source
GET    /knowledge/sources
GET    /media/{id}                 an image, sound or file that a tool returned
GET    /doctor
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from moonbox.codemode.sessions import TooManySessions
from moonbox.errors import ArgumentError, MoonboxError, UsageError
from moonbox.http.events import EventStream
from moonbox.http.playground import SessionBusy
from moonbox.http.requests import Refused, json_object, number, text
from moonbox.languages.registry import DEFAULT_LANGUAGE
from moonbox.sandbox.decisions import Decision

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.requests import Request

    from moonbox.http.playground import Session
    from moonbox.http.workbench import Workbench
    from moonbox.knowledge.base import KnowledgeBase

__all__ = ["routes"]

_SHOWN_MEDIA = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_DECISIONS = ("allow", "always", "edit", "deny")


def routes(workbench: Workbench) -> list[Route]:
    """The routes of the workbench."""
    api = _Api(workbench)
    return [
        Route("/events", api.events, methods=["GET"]),
        Route("/sessions", api.open_session, methods=["POST"]),
        Route("/sessions/{id}", api.session, methods=["GET", "DELETE"]),
        Route("/sessions/{id}/run", api.run, methods=["POST"]),
        Route("/sessions/{id}/resume", api.resume, methods=["POST"]),
        Route("/sessions/{id}/stop", api.stop, methods=["POST"]),
        Route("/sessions/{id}/globals", api.globals, methods=["GET"]),
        Route("/check", api.check, methods=["POST"]),
        Route("/approvals", api.approvals, methods=["GET"]),
        Route("/approvals/{id}", api.answer, methods=["POST"]),
        Route("/knowledge/search", api.search, methods=["GET"]),
        Route("/knowledge/sources", api.sources, methods=["GET"]),
        Route("/media/{id}", api.medium, methods=["GET"]),
        Route("/doctor", api.doctor, methods=["GET"]),
    ]


class _Api:
    def __init__(self, workbench: Workbench) -> None:
        self._bench = workbench

    async def events(self, request: Request) -> Response:
        bench, id = self._bench, text(request, "session") or ""
        after = number(request, "after", 0, 10**9)
        last = request.headers.get("last-event-id", "")
        if last.isascii() and last.isdigit() and len(last) < 12:
            after = max(after, int(last))
        session = bench.playground.get(id)
        await bench.watch_trail()
        past = tuple if session is None else functools.partial(session.past, after)
        return EventStream(bench.events.subscribe(id, past))

    async def open_session(self, request: Request) -> Response:
        body = await json_object(request)
        language = body.get("language", self._bench.playground.languages[0])
        with _usage_errors():
            session = await self._bench.playground.open(str(language))
        return JSONResponse(session.to_dict(), 201)

    async def session(self, request: Request) -> Response:
        session = self._session(request)
        if request.method != "DELETE":
            return JSONResponse(session.to_dict())
        await self._bench.playground.close(session.id)
        return Response(status_code=204)

    async def run(self, request: Request) -> Response:
        session, body = self._session(request), await json_object(request)
        source, limits = body.get("source_code"), body.get("limits", {})
        if not isinstance(source, str) or not isinstance(limits, dict):
            raise Refused(400, "invalid_arguments", 'send {"source_code": "<script>", "step": false, "limits": {}}')
        with _usage_errors():
            session.start(source, step=bool(body.get("step", False)), limits=limits)
        return JSONResponse(session.to_dict(), 202)

    async def resume(self, request: Request) -> Response:
        session, body = self._session(request), await json_object(request)
        answers = body.get("answers")
        if answers is not None and not (isinstance(answers, list) and all(isinstance(each, dict) for each in answers)):
            raise Refused(400, "invalid_arguments", "answers must be a list of objects")
        with _usage_errors():
            session.resume(answers)
        return JSONResponse(session.to_dict(), 202)

    async def stop(self, request: Request) -> Response:
        await json_object(request)
        session = self._session(request)
        await session.stop()
        return JSONResponse(session.to_dict())

    async def globals(self, request: Request) -> Response:
        session = self._session(request)
        try:
            return JSONResponse({"globals": await asyncio.to_thread(session.globals)})
        except MoonboxError as problem:
            raise Refused(503, "unavailable", str(problem)) from None

    async def check(self, request: Request) -> Response:
        body = await json_object(request)
        source, language = body.get("source_code"), body.get("language", DEFAULT_LANGUAGE)
        if not isinstance(source, str) or language not in self._bench.playground.languages:
            raise Refused(400, "invalid_arguments", 'send {"source_code": "<script>", "language": "lua"}')
        session = body.get("session")
        known = session if isinstance(session, str) else None
        try:
            findings = await self._bench.playground.check(source, language, known)
        except MoonboxError as problem:
            raise Refused(503, "unavailable", str(problem)) from None
        return JSONResponse({"findings": findings})

    async def approvals(self, _: Request) -> Response:
        bench = self._bench
        pending = [bench.question(question) for question in bench.approvals.pending()]
        return JSONResponse({"pending": pending, "answered": [each.to_dict() for each in bench.approvals.answered()]})

    async def answer(self, request: Request) -> Response:
        body = await json_object(request)
        kind, reason, arguments = body.get("decision"), body.get("reason", ""), body.get("arguments")
        if kind not in _DECISIONS or not isinstance(reason, str):
            raise Refused(400, "invalid_arguments", f"decision must be one of {', '.join(_DECISIONS)}")
        if kind == "edit" and not isinstance(arguments, dict):
            raise Refused(400, "invalid_arguments", "arguments must be a JSON object")
        try:
            self._bench.approvals.answer(request.path_params["id"], Decision(kind, reason[:500], arguments))
        except ArgumentError as problem:
            raise Refused(400, "invalid_arguments", problem.message) from None
        except UsageError as problem:
            raise Refused(404, "unknown_approval", str(problem)) from None
        return JSONResponse({"ok": True})

    async def search(self, request: Request) -> Response:
        base = self._knowledge()
        query, source = text(request, "q") or "", text(request, "source")
        mode: Any = text(request, "mode") or "keyword"
        limit = number(request, "limit", 12, 50)
        try:
            hits = await asyncio.to_thread(base.search, query, mode, max(1, limit), source)
        except MoonboxError as problem:
            raise Refused(400, "invalid_arguments", str(problem)) from None
        return JSONResponse({"hits": [hit.to_dict() for hit in hits], "mode": hits.mode, "notes": hits.notes})

    async def sources(self, _: Request) -> Response:
        sources = await asyncio.to_thread(self._knowledge().sources)
        return JSONResponse({"sources": [source.to_dict() for source in sources]})

    async def medium(self, request: Request) -> Response:
        medium = self._bench.find_medium(f"moonbox://media/{request.path_params['id']}")
        if medium is None:
            raise Refused(404, "unknown_medium", "unknown medium")
        # What is not a plain picture is downloaded, never shown as a page of ours.
        shown = medium.type in _SHOWN_MEDIA
        disposition = "inline" if shown else "attachment"
        headers = {
            "Cache-Control": "no-store",
            "Content-Disposition": f"{disposition}; filename*=UTF-8''{quote(medium.name, safe='')}",
            "Content-Security-Policy": "default-src 'none'; sandbox",
            "Cross-Origin-Resource-Policy": "same-origin",
            "X-Content-Type-Options": "nosniff",
        }
        kind = medium.type if shown or medium.type.startswith(("audio/", "video/", "image/")) else _BINARY
        return Response(medium.data, media_type=kind, headers=headers)

    async def doctor(self, _: Request) -> Response:
        if self._bench.diagnose is None:
            raise Refused(404, "not_found", "there is no diagnosis here")
        return JSONResponse(await asyncio.to_thread(self._bench.diagnose))

    def _session(self, request: Request) -> Session:
        session = self._bench.playground.get(request.path_params["id"])
        if session is None:
            raise Refused(404, "unknown_session", "unknown session; it may have ended")
        return session

    def _knowledge(self) -> KnowledgeBase:
        if self._bench.knowledge is None:
            raise Refused(404, "not_found", "no knowledge base is configured")
        return self._bench.knowledge


_BINARY = "application/octet-stream"


@contextlib.contextmanager
def _usage_errors() -> Iterator[None]:
    """What a session refuses, as answers."""
    try:
        yield
    except (SessionBusy, TooManySessions) as problem:
        raise Refused(409, "conflict", str(problem)) from None
    except UsageError as problem:
        raise Refused(400, "invalid_arguments", str(problem)) from None
