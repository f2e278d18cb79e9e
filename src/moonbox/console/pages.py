"""The pages: for each its address, its template, its module, and what it is filled with."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from msgspec.structs import asdict
from starlette.exceptions import HTTPException

from moonbox.audit.query import RunSummary
from moonbox.audit.records import RUN_STATES, Run
from moonbox.audit.reports import compare, tracebacks
from moonbox.compact import short
from moonbox.console.rendering import as_json, sample
from moonbox.durable.approvals import hint_names
from moonbox.errors import ERROR_KINDS, MoonboxError
from moonbox.http.playground import run_report, timeline_of
from moonbox.languages.registry import LANGUAGES
from moonbox.limits import PRESETS
from moonbox.schema.tree import SchemaNode
from moonbox.schema.type_reader import type_text
from moonbox.scripts.saving import can_save
from moonbox.threads import in_thread, own_thread
from moonbox.tools.signature import render
from moonbox.wording import seconds, size

if TYPE_CHECKING:
    from starlette.requests import Request

    from moonbox.audit.query import ToolStats
    from moonbox.http.app import Service
    from moonbox.http.workbench import Workbench
    from moonbox.tools.tool import Tool

Load = Callable[["Service", "Request", str], Awaitable[dict[str, Any]]]

_MODES = ("keyword", "semantic", "hybrid")
_PATIENCE = 0.1
"""Seconds that a page may take before it comes without its slow part."""
_MOST_REPLS = 500
_ANSWER_CHARS = 20_000
_STATS_RUNS = 2_000
"""Counts and latencies are those of so many of the latest runs, so that a page takes the same time with any trail."""
_PER_PAGE = 200
_COMPLETED_TOOLS = 2_000
_DOCUMENT_CHARS = 20_000
_MARKDOWN = re.compile(r"```\w*|`|\*\*|(?<!\S)#{1,6}\s|!?\[(?=[^\]]*\]\()|\]\([^\s)]*(?:\)|…|$)")
_TABLE = re.compile(r"\s*(?:(?<!\S)\|(?:[:-]+\|)*(?!\S)\s*)+")
"""What separates the cells and rows of a table."""
_MARKS = ("\ue000", "\ue001")
"""Around the found words of a passage: characters for private use, which documents hardly have."""


@dataclass(frozen=True, slots=True)
class Page:
    """One view: `load` gives the values of its template."""

    template: str
    view: str
    script: str
    load: Load


async def playground(service: Service, request: Request, script: str) -> dict[str, Any]:
    bench = _bench(service)
    languages = bench.languages
    source, language = None, languages[0]
    session = bench.sessions.get(request.path_params.get("session", ""))
    if session is not None:
        language = session.language
    if id := request.query_params.get("run", ""):
        run = await _run(service, id)
        source, language = run.source, run.language if run.language in languages else languages[0]
    data = {
        "session": request.path_params.get("session", ""),
        "session_source": None if session is None else session.source,
        "run": id,
        "source": source,
        "scripts": {languages[0]: script} if script else {},
        "samples": {name: sample(name) for name in languages},
        "catalog": _catalog_of(service),
    }
    return {
        "title": "Playground",
        "data": as_json(data),
        "languages": languages,
        "language": language,
        "presets": ("default", *PRESETS),
        "limits": [
            (name, "none" if value is None else value) for name, value in service.sandbox.limits.to_dict().items()
        ],
    }


async def runs(service: Service, request: Request, _: str) -> dict[str, Any]:
    given = {name: request.query_params.get(name, "")[:1000] for name in _RUN_FILTERS}
    return {
        "title": "Runs",
        "filters": given,
        "filtered": any(given.values()),
        "kinds": ERROR_KINDS,
        "states": RUN_STATES,
        "tools": sorted(tool.path for tool in service.sandbox.toolbox)[:500],
    }


async def run(service: Service, request: Request, _: str) -> dict[str, Any]:
    record = await _run(service, request.path_params["id"])
    report = await in_thread(run_report, record)
    earlier, later = await in_thread(service.readable.neighbours, record)
    bench = service.workbench
    return {
        "title": f"Run {record.id[:8]}",
        "run": record,
        "savable": can_save(service.scripts, record),
        "summary": RunSummary.of(record),
        "neighbours": {"earlier": earlier, "later": later},
        "timeline": as_json({"run": record.id, **report["timeline"]}),
        "usage": _usage(record),
        "tracebacks": tracebacks(record),
        "media": as_json([] if bench is None else bench.media_of(record.id)),
        "plan": () if bench is None else await in_thread(bench.undo_plan, record.id),
        "walkable": bench is not None and await in_thread(bench.is_recorded, record),
        "model": report["model"],
        "economy": report["economy"],
    }


async def comparison(service: Service, request: Request, _: str) -> dict[str, Any]:
    a = await _run(service, request.query_params.get("a", ""))
    b = await _run(service, request.query_params.get("b", ""))
    result = await in_thread(compare, a, b)
    calls = [
        {**pair, **{f"{side}_text": _call_text(pair[f"{side}_status"], pair[f"{side}_duration"]) for side in "ab"}}
        for pair in result["calls"]
    ]
    return {
        **result,
        "title": "Comparison",
        "a": RunSummary.of(a),
        "b": RunSummary.of(b),
        "figures": [_figure(name, *values) for name, values in result["figures"].items() if any(values)],
        "calls": calls,
        "first": next((number for number, pair in enumerate(calls, 1) if not pair["same"]), 0),
        "answer_a": a.for_model(_ANSWER_CHARS),
        "answer_b": b.for_model(_ANSWER_CHARS),
        "timeline_a": as_json({"run": a.id, **timeline_of(a)}),
        "timeline_b": as_json({"run": b.id, **timeline_of(b)}),
    }


async def approvals(service: Service, _: Request, __: str) -> dict[str, Any]:
    _bench(service)
    return {"title": "Approvals"}


async def durable(service: Service, _: Request, __: str) -> dict[str, Any]:
    box = service.sandbox
    values: dict[str, Any] = {"title": "Durable runs", "journal": box.has_journal, "interrupted": [], "repls": ()}
    if box.has_journal:
        found, repls = await in_thread(lambda: (box.interrupted(), box.journal.repls(most=_MOST_REPLS)))
        values["repls"] = repls
        for each in found:
            calls = [
                {"tool": call.tool, "arguments": short(call.arguments, 500), "repeatable": call.repeatable}
                for call in each.pending
            ]
            doubt = not all(call.repeatable for call in each.pending)
            values["interrupted"].append({**asdict(each), "pending": calls, "in_doubt": doubt})
    return values


async def tools(service: Service, request: Request, _: str) -> dict[str, Any]:
    query = request.query_params.get("q", "")[:500]
    page = request.query_params.get("page", "1")
    number = int(page) if page.isascii() and page.isdigit() and len(page) < 6 else 1
    return {"title": "Tools", **await in_thread(_tools_page, service, query, max(1, number))}


async def tool(service: Service, request: Request, _: str) -> dict[str, Any]:
    wanted = service.sandbox.toolbox.get(request.path_params["path"])
    if wanted is None:
        raise HTTPException(404, "There is no tool of this name.")
    shape = service.sandbox.toolbox.learned.schema(wanted.path)
    return {
        "title": wanted.path,
        "tool": _describe(wanted, await in_thread(_stats, service)),
        "parameters": as_json(wanted.parameters),
        "returns": as_json(wanted.returns) if wanted.returns else "",
        "learned": type_text(SchemaNode(shape), nested=3) if shape else "",
        "stats_runs": _STATS_RUNS,
    }


async def servers(service: Service, _: Request, __: str) -> dict[str, Any]:
    _bench(service)
    return {"title": "MCP servers", "available": service.servers is not None}


async def knowledge(service: Service, request: Request, _: str) -> dict[str, Any]:
    base = _bench(service).knowledge
    if base is None:
        return {"title": "Knowledge", "available": False, "stats": None}
    query = request.query_params.get("q", "")[:500]
    mode, source = request.query_params.get("mode", "keyword"), request.query_params.get("source", "")
    mode = mode if mode in _MODES else "keyword"
    sources, stats = await in_thread(lambda: (base.sources(), base.stats()))
    hits, problem = [], ""
    if query.strip():
        try:
            hits = await in_thread(_search, base, query, mode, source or None)
        except MoonboxError as failure:
            problem = str(failure)
    asked = {"q": query, "mode": mode, "modes": _MODES, "source": source, "hits": hits, "problem": problem}
    return {"title": "Knowledge", "available": True, "stats": stats, "sources": sources, **asked}


async def doctor(service: Service, request: Request, _: str) -> dict[str, Any]:
    diagnose = _bench(service).diagnose
    if diagnose is None:
        raise HTTPException(404, "There is no diagnosis here.")
    work = asyncio.ensure_future(in_thread(diagnose, start=own_thread))
    if "wait" not in request.query_params:
        await asyncio.wait({work}, timeout=_PATIENCE)
        if not work.done():  # the page comes at once, and asks for the rest by itself
            return {"title": "Doctor", "diagnosis": None}
    return {"title": "Doctor", "diagnosis": await work}


PAGES: dict[str, Page] = {
    "/playground": Page("playground.html", "playground", "playground.js", playground),
    "/playground/{session}": Page("playground.html", "playground", "playground.js", playground),
    "/runs": Page("runs.html", "runs", "runs.js", runs),
    "/runs/{id}": Page("run.html", "runs", "run.js", run),
    "/compare": Page("compare.html", "runs", "compare.js", comparison),
    "/approvals": Page("approvals.html", "approvals", "approvals.js", approvals),
    "/durable": Page("durable.html", "durable", "plain.js", durable),
    "/tools": Page("tools.html", "tools", "tools.js", tools),
    "/tools/{path:path}": Page("tool.html", "tools", "tools.js", tool),
    "/mcp": Page("mcp.html", "mcp", "mcp.js", servers),
    "/knowledge": Page("knowledge.html", "knowledge", "knowledge.js", knowledge),
    "/doctor": Page("doctor.html", "doctor", "doctor.js", doctor),
}


def _bench(service: Service) -> Workbench:
    if service.workbench is None:
        raise HTTPException(404, "This server has no workbench.")
    return service.workbench


async def _run(service: Service, id: str) -> Run:
    run = await in_thread(service.find, id)
    if run is None:
        raise HTTPException(404, "There is no run with this id.")
    return run


def _catalog_of(service: Service) -> dict[str, Any]:
    """What the editor completes: tools with their signatures and fields, and the words of the language."""
    tools = [tool for tool in service.sandbox.toolbox if tool.policy != "direct"]
    alias = service.sandbox.toolbox.alias
    return {
        "tools": [
            {
                "call": f"tools.{alias(tool.path)}",
                "signature": render(tool, "signature", name=""),
                "fields": [*tool.parameter_names, *_result_fields(tool)],
            }
            for tool in islice(tools, _COMPLETED_TOOLS)
        ],
        "words": sorted(LANGUAGES[service.sandbox.language].docs),
    }


def _tools_page(service: Service, query: str, page: int) -> dict[str, Any]:
    """The tools in groups; with a query, the ones that scripts would find, best first."""
    service.refresh()
    toolbox, stats, count = service.sandbox.toolbox, _stats(service), 1
    spaces: dict[str, list[dict[str, Any]]] = {}
    if query := query.strip():
        page = 1
        for tool in service.sandbox.docs.find_tools(query, 50):
            spaces.setdefault("Best matches first", []).append(_describe(tool, stats))
    else:
        tools = sorted(toolbox, key=lambda tool: (tool.namespace or "", tool.name))
        count = max(1, -(-len(tools) // _PER_PAGE))
        page = min(page, count)
        for tool in tools[(page - 1) * _PER_PAGE : page * _PER_PAGE]:
            origin = "Built in" if tool.path in service.builtin else tool.namespace or "Without a namespace"
            spaces.setdefault(origin, []).append(_describe(tool, stats))
    groups = [{"name": name, "tools": members, "total": len(members)} for name, members in spaces.items()]
    known = {"total": len(toolbox), "stats_runs": _STATS_RUNS}
    return {**known, "q": query, "groups": groups, "page": page, "page_count": count}


def _describe(tool: Tool, stats: dict[str, ToolStats]) -> dict[str, Any]:
    return {
        "path": tool.path,
        "description": tool.description,
        "signature": render(tool, "signature"),
        "policy": tool.policy,
        "hints": hint_names(tool),
        "timeout": tool.timeout,
        "max_concurrency": tool.max_concurrency,
        "stats": stats.get(tool.path),
    }


def _stats(service: Service) -> dict[str, ToolStats]:
    return {item.tool: item for item in service.readable.stats(latest=_STATS_RUNS).tools}


def _result_fields(tool: Tool) -> list[str]:
    """The names of the result's fields, also those of the rows of a list."""
    node = tool.returned
    for _ in range(4):
        node = node.items if node.items.says else node
    return list(node.fields)[:50]


def _usage(run: Run) -> list[dict[str, Any]]:
    """What the run spent, beside its own limits, where they are known."""
    usage, limits = run.usage, {} if run.limits is None else run.limits.to_dict()

    def row(label: str, value: float, limit: float | None, text: Callable[[float], str]) -> dict[str, Any]:
        share = None if not limit else min(1.0, value / limit)
        of = f" of {text(limit)}" if limit else ""
        return {"label": label, "text": text(value) + of, "share": share}

    printed = len(run.output.encode("utf-8", "replace")) + run.output_cut
    operations = [] if usage.operations is None else [("operations", usage.operations, "max_operations", _whole)]
    rows: list[tuple[str, float, str, Callable[[float], str]]] = [
        ("time", usage.wall, "timeout", seconds),
        ("memory, at most", usage.peak_memory, "max_memory", size),
        ("calls", usage.calls, "max_tool_calls", _whole),
        ("printed", printed, "max_output", size),
        *operations,
        ("processor time", usage.cpu, "", seconds),
        ("bytes to the script", usage.bytes_in, "", size),
        ("bytes from the script", usage.bytes_out, "", size),
    ]
    return [row(label, value, limits.get(limit), text) for label, value, limit, text in rows]


def _figure(name: str, a: float, b: float) -> dict[str, str]:
    """A row of the comparison: both values and how much they differ."""
    label, text = _FIGURES[name]
    share = round(100 * (b - a) / a) if a else 0
    return {
        "label": label,
        "a": text(a),
        "b": text(b),
        "change": f"{share:+}%" if share else "" if a or not b else "new",
    }


def _call_text(status: str | None, duration: float | None) -> str:
    return "not called" if status is None else f"{status.replace('_', ' ')}, {seconds(duration or 0.0)}"


def _whole(value: float) -> str:
    return f"{value:,.0f}"


def _search(base: Any, query: str, mode: str, source: str | None) -> list[dict[str, Any]]:
    def shown(hit: Any) -> dict[str, Any]:
        chunks, room = [], _DOCUMENT_CHARS
        for chunk in base.get(hit.id).chunks:
            if room > 0:
                chunks.append({"heading": chunk.heading, "text": chunk.text[:room]})
            room -= len(chunk.text)
        told = {"url": _safe_url(hit.source_url), "snippet": passage(hit.snippet), "chunks": chunks, "cut": room <= 0}
        return {"title": hit.title, "source": hit.source, "source_id": hit.source_id, **told}

    return [shown(hit) for hit in base.search(query, mode, 12, source, marks=_MARKS)]


def passage(snippet: str) -> list[tuple[bool, str]]:
    """The parts of a snippet without marks of Markdown, and which of them were found."""
    parts: list[tuple[bool, str]] = []
    for piece in _TABLE.sub(" · ", _MARKDOWN.sub("", snippet)).split(_MARKS[0]):
        match, mark, rest = piece.partition(_MARKS[1])
        parts += [(True, match), (False, rest)] if mark else [(False, piece)]
    return [part for part in parts if part[1]]


def _safe_url(url: str | None) -> str | None:
    """A link that leads to a page: documents come from anywhere, and so do their addresses."""
    with contextlib.suppress(ValueError):
        return url if url is not None and urlsplit(url).scheme in ("http", "https") else None
    return None


_FIGURES: dict[str, tuple[str, Callable[[float], str]]] = {
    "wall": ("time", seconds),
    "cpu": ("processor time", seconds),
    "operations": ("operations", _whole),
    "peak_memory": ("memory, at most", size),
    "calls": ("calls", _whole),
    "failed_calls": ("calls that were not ok", _whole),
    "bytes_in": ("bytes to the script", size),
    "bytes_out": ("bytes from the script", size),
    "output": ("printed characters", _whole),
}
_RUN_FILTERS = ("q", "state", "kind", "tool", "repl", "language", "label", "since", "until", "before")
