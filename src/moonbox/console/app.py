"""The console's application: sign-in, pages and static files under /console. Its pages speak to the HTTP API."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from moonbox.console.pages import PAGES, Page
from moonbox.console.rendering import templates
from moonbox.errors import AuditError, MoonboxError, UsageError
from moonbox.http.browser import BrowserAccess, cookie_name
from moonbox.scripts.saving import save_run
from moonbox.threads import in_thread, unbroken

if TYPE_CHECKING:
    from starlette.requests import Request

    from moonbox.http.app import Service

PREFIX = "/console"
OPEN_PATHS = (PREFIX, "/")
"""For `Access(open_paths=…)`: the console checks for itself who asks."""
STATIC = Path(__file__).with_name("static")
_RESUME_SECONDS = 2.0  # the page comes back after so long, also where a resumed run has not ended
_HEADERS = {
    # Nothing from elsewhere and nothing inline; and no markup from strings: the modules build elements.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self' data:; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    # Not no-referrer: with it, browsers send forms without their origin, which the sign-in checks.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def console_routes(service: Service, browser: BrowserAccess, *, script: str = "") -> list[BaseRoute]:
    """The routes of the console, to stand beside those of the API; `script` is what the playground begins with."""
    console = _Console(service, browser, script)
    return [
        Route("/", _to_console, methods=["GET"]),
        Mount(
            PREFIX,
            routes=[
                Route("/open", console.open, methods=["GET"]),
                Route("/sign-in", console.sign_in, methods=["POST"]),
                Route("/renew", console.renew, methods=["POST"]),
                Route("/sign-out", console.sign_out, methods=["POST"]),
                Route("/durable/{run}", console.go_on, methods=["POST"]),
                Route("/runs/{run}", console.save, methods=["POST"]),
                Route("/runs/{run}/{deed}", console.go_on, methods=["POST"]),
                Mount("/static/{version}", _Static(directory=STATIC)),
                *(Route(path, console.page(page), methods=["GET"]) for path, page in PAGES.items()),
                Route("/{rest:path}", console.missing, methods=["GET"]),
            ],
        ),
    ]


class _Console:
    def __init__(self, service: Service, browser: BrowserAccess, script: str) -> None:
        self._service, self._browser, self._script = service, browser, script
        self._templates = templates(STATIC, f"{PREFIX}/static")
        self._resumed: set[asyncio.Task[Any]] = set()

    async def open(self, request: Request) -> Response:
        """The address that was printed: its key is worth one sign-in."""
        cookie = self._browser.redeem(request.query_params.get("key", ""))
        if cookie is None:
            if self._browser.knows(request.scope):
                return RedirectResponse(f"{PREFIX}/", 303)
            return self._sign_in_page("This address was used before, or it is wrong.", status=403)
        return _signed_in(cookie, f"{PREFIX}/", request)

    async def sign_in(self, request: Request) -> Response:
        if not _is_own_form(request):
            return self._sign_in_page("Sign in from this page.", status=403)
        form = _form(await request.body())
        cookie = self._browser.sign_in(form.get("token", ""), request.client.host if request.client else "")
        if cookie is None:
            message = "That is not the server's token."
            return self._sign_in_page(message, target=_local(form.get("next", "")), status=403)
        return _signed_in(cookie, _local(form.get("next", "")), request)

    async def renew(self, request: Request) -> Response:
        """Print a new address in the terminal of the server. The response does not contain it."""
        if not _is_own_form(request):
            return self._sign_in_page("Ask from this page.", status=403)
        said = "A new address was printed" if self._browser.renew() else "An address was printed a moment ago"
        return self._sign_in_page(note=f"{said}, in the terminal in which moonbox runs. Open it; it works once.")

    async def sign_out(self, request: Request) -> Response:
        if _is_own_form(request):
            self._browser.sign_out(request.scope)
        response = RedirectResponse(f"{PREFIX}/", 303)
        response.delete_cookie(cookie_name(request.scope), path="/")
        return response

    async def go_on(self, request: Request) -> Response:
        """Continue a run of the journal that a crash cut off, or with a corrected script, or take its calls back.

        What takes long goes on; its run is among the others when it ends.
        """
        form, bench, run = await self._page_form(request), self._service.workbench, request.path_params["run"]
        if form is None:
            return self._sign_in_page("Continue or correct a run from the pages that show it.", status=403)
        deed = request.path_params.get("deed")
        if bench is None or deed not in (None, "patch", "undo"):
            return self._problem(request, 404, "There is no such page.")
        source = form.get("source", "").replace("\r\n", "\n") if deed == "patch" else None

        def work() -> None:
            in_flight = form.get("in_flight") or None
            if deed == "undo":
                bench.sandbox_of(run).undo(run, in_flight)
            else:
                bench.go_on(run, source, in_flight)

        task = asyncio.create_task(unbroken(work))
        self._resumed.add(task)
        task.add_done_callback(self._resumed.discard)
        await asyncio.wait({task}, timeout=_RESUME_SECONDS)
        if task.done() and isinstance(problem := task.exception(), MoonboxError):
            return self._problem(request, 409, str(problem))
        return RedirectResponse(f"{PREFIX}/runs/{run}" if deed else f"{PREFIX}/durable", 303)

    async def save(self, request: Request) -> Response:
        """Make a tool script of a run."""
        form = await self._page_form(request)
        if form is None:
            return self._sign_in_page("Save a run from its page.", status=403)
        run = await in_thread(self._service.find, request.path_params["run"])
        if run is None:
            return self._problem(request, 404, "There is no run with this id.")
        parameters = [{"name": name, "required": True} for name in form.get("parameters", "").split()]
        name, description = form.get("name", ""), form.get("description", "")
        options: Any = {"name": name, "description": description, "parameters": parameters}
        try:
            await unbroken(partial(save_run, self._service.scripts, run, **options))
        except MoonboxError as problem:
            return self._problem(request, 409, str(problem))
        return RedirectResponse(f"{PREFIX}/tools/{name}", 303)

    async def _page_form(self, request: Request) -> dict[str, str] | None:
        """The form that a page sent; None where the page belongs to another session."""
        form, key = _form(await request.body()), self._browser.page_key(request.scope)
        known = self._browser.knows(request.scope) and _is_own_form(request)
        return form if known and hmac.compare_digest(form.get("key", "").encode(), key.encode()) else None

    def page(self, page: Page) -> Callable[[Request], Awaitable[Response]]:
        """The handler of a page: who may not see it is asked to sign in."""

        async def handle(request: Request) -> Response:
            if not self._browser.knows(request.scope):
                return self._sign_in_page(target=_address(request))
            try:
                values = await page.load(self._service, request, self._script)
            except HTTPException as problem:
                return self._problem(request, problem.status_code, str(problem.detail))
            except (AuditError, UsageError) as problem:
                return self._problem(request, 400, str(problem))
            if isinstance(values, Response):
                return values
            values = {"script": page.script, **values}
            return await in_thread(self._render, request, page.template, page.view, values)

        return handle

    async def missing(self, request: Request) -> Response:
        if not self._browser.knows(request.scope):
            return self._sign_in_page(target=_address(request))
        if request.path_params["rest"] in ("", "/"):
            return RedirectResponse(f"{PREFIX}/playground", 303)
        return self._problem(request, 404, "There is no such page.")

    def _problem(self, request: Request, status: int, message: str) -> Response:
        title = "Not found" if status == 404 else "That did not work"
        values = {"title": title, "message": message, "script": "plain.js"}
        return self._render(request, "problem.html", "", values, status)

    def _render(
        self, request: Request, template: str, view: str, values: dict[str, Any], status: int = 200
    ) -> Response:
        bench = self._service.workbench
        common = {
            "view": view,
            "public": self._browser.public,
            "key": self._browser.page_key(request.scope),
            "waiting": len(bench.approvals.pending()) if bench is not None else 0,
        }
        return self._html(template, {**common, **values}, status)

    def _sign_in_page(self, message: str = "", *, note: str = "", target: str = "", status: int = 401) -> Response:
        browser = self._browser
        values = {"message": message, "note": note, "next": target, "with_token": browser.with_token}
        values["renewable"] = browser.on_renewal is not None
        return self._html("sign_in.html", values, status)

    def _html(self, template: str, values: dict[str, Any], status: int) -> Response:
        headers = {**_HEADERS, "Cache-Control": "no-store"}
        text = self._templates.get_template(template).render(values)
        body = text.encode("utf-8", "backslashreplace")  # half a surrogate pair may be in what a script printed
        return Response(body, status, headers, "text/html; charset=utf-8")


async def _to_console(_: Request) -> Response:
    return RedirectResponse(f"{PREFIX}/", 303)


def _signed_in(cookie: str, target: str, request: Request) -> Response:
    response = RedirectResponse(target, 303, {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"})
    secure = request.url.scheme == "https"
    response.set_cookie(cookie_name(request.scope), cookie, httponly=True, samesite="lax", secure=secure, path="/")
    return response


def _is_own_form(request: Request) -> bool:
    """Whether a form was sent by a page of this server."""
    return request.headers.get("origin", "").partition("://")[2] == request.headers.get("host")


def _address(request: Request) -> str:
    return f"{request.url.path}?{request.url.query}" if request.url.query else request.url.path


def _form(body: bytes) -> dict[str, str]:
    """The fields of a form, each once."""
    try:
        return dict(parse_qsl(body.decode(), max_num_fields=4))
    except ValueError:
        return {}


def _local(target: str) -> str:
    """An address of the console, or its first page: a sign-in never leads elsewhere."""
    if target.startswith(f"{PREFIX}/") and "\\" not in target:
        parts = urlsplit(target)
        if not parts.scheme and not parts.netloc:
            return target
    return f"{PREFIX}/"


class _Static(StaticFiles):
    """The files, with the headers of every page; their addresses change with their content."""

    def file_response(self, *given: Any, **more: Any) -> Response:
        response = super().file_response(*given, **more)
        response.headers.update({**_HEADERS, "Cache-Control": "public, max-age=31536000, immutable"})
        return response
