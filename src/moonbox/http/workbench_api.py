"""The API of the workbench: sessions, approvals, events, knowledge, media, diagnosis, and recorded runs.

Recorded runs are found in the journal, looked at call by call, and forked with other answers.
"""

from __future__ import annotations

import contextlib
import re
import secrets
import time
from collections.abc import Mapping
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from msgspec import structs
from starlette.responses import Response

from moonbox.audit.query import labels_of, moment
from moonbox.audit.records import Run
from moonbox.codemode.sessions import TooManySessions
from moonbox.durable.index import JournalFilter
from moonbox.errors import ArgumentError, MoonboxError, UsageError
from moonbox.http.events import event_stream
from moonbox.http.playground import PlaygroundSession, SessionBusy, answer_of, run_dict
from moonbox.http.requests import JsonAnswer, Refused, json_object, number, refusing, text
from moonbox.languages.registry import DEFAULT_LANGUAGE
from moonbox.runs.decisions import Decision
from moonbox.threads import in_thread, own_thread, unbroken
from moonbox.values import from_jsonable

if TYPE_CHECKING:
    from starlette.requests import Request

    from moonbox.durable.views import RunView
    from moonbox.http.workbench import Workbench
    from moonbox.knowledge.base import KnowledgeBase

_SHOWN_MEDIA = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_BINARY = "application/octet-stream"
_MAX_FOLLOWED = 64
_NUMBER = re.compile(r"\d{0,9}", re.ASCII)
_BY = "console"  # the console has no accounts: this name stands for everyone who has signed in
_DECISIONS = ("allow", "always", "edit", "deny")
_FORK = 'send {"at": 7, "answers": [{"id": 7, "kind": "value", "value": 1}], "dry": false}'


class WorkbenchApi:
    """The handlers."""

    def __init__(self, workbench: Workbench) -> None:
        self._bench = workbench

    async def events(self, request: Request) -> Response:
        bench, wanted = self._bench, _followed(request)
        known = [(session, after) for id, after in wanted.items() if (session := bench.sessions.get(id)) is not None]
        await bench.watch_trail()
        past = lambda: [event for session, after in known for event in session.past(after)]  # noqa: E731
        return event_stream(bench.events.subscribe(wanted, past))

    async def open_session(self, request: Request) -> Response:
        bench, body = self._bench, await json_object(request)
        language, id = str(body.get("language", bench.languages[0])), secrets.token_urlsafe(9)
        if language not in bench.languages:
            known = ", ".join(bench.languages)
            raise Refused(400, "invalid", f"unknown language {language!r}; known languages: {known}")
        with refusing(400, "invalid", UsageError), refusing(409, "conflict", TooManySessions):
            sandbox = await in_thread(bench.sandbox_in, language)
            make = partial(PlaygroundSession, id, bench.events, sandbox, language, bench.watch)
            session = bench.sessions.open(id, make)
        return JsonAnswer(session.to_dict(), 201)

    async def get_session(self, request: Request) -> Response:
        return JsonAnswer(self._session(request).to_dict())

    async def close_session(self, request: Request) -> Response:
        session = self._session(request)
        self._bench.sessions.take(session.id)
        await session.close()
        return Response(status_code=204)

    async def run_in_session(self, request: Request) -> Response:
        session, body = self._session(request), await json_object(request)
        source, limits = body.get("source_code"), body.get("limits", {})
        if not isinstance(source, str) or not isinstance(limits, dict):
            raise Refused(400, "invalid", 'send {"source_code": "<script>", "step": false, "limits": {}}')
        with refusing(400, "invalid", UsageError), refusing(409, "conflict", SessionBusy, TooManySessions):
            session.start(source, step=bool(body.get("step", False)), limits=limits)
        return JsonAnswer(session.to_dict(), 202)

    async def resume(self, request: Request) -> Response:
        session, body = self._session(request), await json_object(request)
        answers = body.get("answers")
        if answers is not None and not (isinstance(answers, list) and all(isinstance(each, dict) for each in answers)):
            raise Refused(400, "invalid", "answers must be a list of objects")
        with refusing(400, "invalid", UsageError), refusing(409, "conflict", SessionBusy, TooManySessions):
            session.resume(answers)
        return JsonAnswer(session.to_dict(), 202)

    async def stop(self, request: Request) -> Response:
        await json_object(request)
        session = self._session(request)
        await session.stop()
        return JsonAnswer(session.to_dict())

    async def globals(self, request: Request) -> Response:
        session = self._session(request)
        with refusing(503, "unavailable", MoonboxError):
            return JsonAnswer({"globals": await in_thread(session.globals)})

    async def check(self, request: Request) -> Response:
        bench, body = self._bench, await json_object(request)
        source, language = body.get("source_code"), body.get("language", DEFAULT_LANGUAGE)
        if not isinstance(source, str) or language not in bench.languages:
            raise Refused(400, "invalid", 'send {"source_code": "<script>", "language": "lua"}')
        session = bench.sessions.get(str(body.get("session")))
        with refusing(503, "unavailable", MoonboxError), contextlib.ExitStack() as closing:
            if session is None or session.language != language:
                sandbox = await in_thread(bench.sandbox_in, language)
                repl = closing.enter_context(contextlib.closing(sandbox.repl()))
            else:
                repl = session.repl
            findings = await in_thread(repl.check, source)
        return JsonAnswer({"findings": [finding.to_dict() for finding in findings]})

    async def list_approvals(self, _: Request) -> Response:
        bench = self._bench
        pending = [bench.question(question) for question in await in_thread(bench.approvals.pending)]
        return JsonAnswer(
            {"pending": pending, "answered": [bench.answered(each) for each in bench.approvals.answered()]}
        )

    async def answer_approval(self, request: Request) -> Response:
        body = await json_object(request)
        kind, reason, scope = body.get("decision"), body.get("reason", ""), body.get("scope", "repl")
        if kind not in _DECISIONS or not isinstance(reason, str):
            raise Refused(400, "invalid", f"decision must be one of {', '.join(_DECISIONS)}")
        if kind == "edit" and not isinstance(body.get("arguments"), dict):
            raise Refused(400, "invalid", "arguments must be a JSON object")
        try:
            arguments, when = (from_jsonable(body.get(name)) for name in ("arguments", "when"))
        except (TypeError, ValueError):
            raise Refused(400, "invalid", "arguments contain an invalid $bytes, $float or $pairs") from None
        if kind != "always" and (when is not None or scope != "repl"):
            raise Refused(400, "invalid", "when and scope belong to the decision always")
        with refusing(400, "invalid", UsageError):
            decision = Decision(kind, reason[:500], arguments, _BY, when, scope)
        with refusing(400, "invalid", ArgumentError), refusing(404, "unknown_approval", UsageError):
            await unbroken(self._bench.approvals.answer, request.path_params["id"], decision)
        return JsonAnswer({"ok": True})

    async def search_knowledge(self, request: Request) -> Response:
        base = self._knowledge()
        query, source = text(request, "q") or "", text(request, "source")
        mode: Any = text(request, "mode") or "keyword"
        limit = number(request, "limit", 12, 50)
        with refusing(400, "invalid", MoonboxError):
            hits = await in_thread(base.search, query, mode, max(1, limit), source)
        return JsonAnswer({"hits": [hit.to_dict() for hit in hits], "mode": hits.mode, "notes": hits.notes})

    async def list_sources(self, _: Request) -> Response:
        sources = await in_thread(self._knowledge().sources)
        return JsonAnswer({"sources": [source.to_dict() for source in sources]})

    async def get_medium(self, request: Request) -> Response:
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
        return JsonAnswer(await in_thread(self._bench.diagnose))

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
            raise Refused(400, "invalid", _FORK)
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

    def _session(self, request: Request) -> PlaygroundSession:
        session = self._bench.sessions.get(request.path_params["id"])
        if session is None:
            raise Refused(404, "unknown_session", "unknown session; it may have ended")
        return session

    def _knowledge(self) -> KnowledgeBase:
        if self._bench.knowledge is None:
            raise Refused(404, "not_found", "no knowledge base is configured")
        return self._bench.knowledge


def _followed(request: Request) -> dict[str, int]:
    """The sessions that a stream follows, each with the number of the last event that is known."""
    ids = [id for id in (text(request, "session") or "").split(",") if id]
    numbers = (text(request, "after") or "").split(",")
    last = request.headers.get("last-event-id", "").rpartition(":")
    if len(ids) > _MAX_FOLLOWED or not all(_NUMBER.fullmatch(each) for each in numbers):
        raise Refused(
            400, "invalid", f"follow at most {_MAX_FOLLOWED} sessions; after has a number for each, with commas"
        )
    wanted = {id: int(number or 0) for id, number in zip_longest(ids, numbers[: len(ids)], fillvalue="")}
    if last[0] in wanted and last[2] and _NUMBER.fullmatch(last[2]):
        wanted[last[0]] = max(wanted[last[0]], int(last[2]))
    return wanted
