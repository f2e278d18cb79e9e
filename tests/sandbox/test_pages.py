"""`pages` in scripts: every usual form of paging, against tools that page as real servers do."""

from __future__ import annotations

import contextlib
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from moonbox import Limits, Sandbox, Tool
from tests.runs import error_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from moonbox import Run

ITEMS = [{"id": number, "even": number % 2 == 0} for number in range(1, 24)]
TEXT, WHOLE = {"type": "string"}, {"type": "integer"}


def _cut(start: int, size: int = 5) -> list[dict[str, Any]]:
    return ITEMS[start : start + size]


def by_cursor(args: dict[str, Any]) -> Any:
    at = int(args.get("cursor", "c0")[1:])
    return {"items": _cut(at), "next_cursor": f"c{at + 5}" if at + 5 < len(ITEMS) else None}


def by_page_token(args: dict[str, Any]) -> Any:
    at = int(args.get("pageToken") or 0)
    return {"files": _cut(at), "kind": "list", "nextPageToken": str(at + 5) if at + 5 < len(ITEMS) else ""}


def by_nested_cursor(args: dict[str, Any]) -> Any:
    at = int(args.get("after") or 0)
    return {"nodes": _cut(at), "pageInfo": {"endCursor": str(at + 5), "hasNextPage": at + 5 < len(ITEMS)}}


def by_last_id(args: dict[str, Any]) -> Any:
    at = args.get("starting_after", 0)
    return {"object": "list", "data": _cut(at), "has_more": at + 5 < len(ITEMS)}


def by_link(args: dict[str, Any]) -> Any:
    at = int(args.get("cursor", "a&0").split("&")[1])
    following = f"https://example.com/v1/list?size=5&cursor={quote(f'a&{at + 5}', safe='')}"
    return {"results": _cut(at), "links": {"next": following if at + 5 < len(ITEMS) else None}}


def by_offset(args: dict[str, Any]) -> Any:
    at = args.get("offset", 0)
    return {"offset": at, "limit": 5, "total": len(ITEMS), "issues": _cut(at)}


def by_offset_alone(args: dict[str, Any]) -> Any:
    return _cut(args.get("offset", 0), args.get("limit", 5))


def by_page(args: dict[str, Any]) -> Any:
    page = args.get("page", 1)
    return {"data": _cut(page * 5 - 5), "page": page, "total_pages": 5}


def by_page_from_0(args: dict[str, Any]) -> Any:
    page = args.get("page", 0)
    return {"data": _cut(page * 5), "page": page, "has_more": page * 5 + 5 < len(ITEMS)}


def by_page_alone(args: dict[str, Any]) -> Any:
    return _cut(args.get("page_number", 1) * 5 - 5)


def by_page_with_an_idle_cursor(args: dict[str, Any]) -> Any:
    return {"data": _cut(args.get("page", 1) * 5 - 5), "total": len(ITEMS), "next_cursor": None}


def at_once(args: dict[str, Any]) -> Any:
    return {"items": ITEMS, "total": len(ITEMS)}


def endless(args: dict[str, Any]) -> Any:
    at = int(args.get("cursor", "0"))
    return {"items": [{"id": at}], "next_cursor": str(at + 1)}


def again(args: dict[str, Any]) -> Any:
    return {"items": _cut(0), "next_cursor": "same"}


def deaf(args: dict[str, Any]) -> Any:
    return _cut(0)


def without_cursor(args: dict[str, Any]) -> Any:
    return {"items": _cut(0), "has_more": True, "where": "x"}


def without_parameter(args: dict[str, Any]) -> Any:
    return {"items": _cut(0), "has_more": True}


def without_items(args: dict[str, Any]) -> Any:
    return {"good": [1], "bad": [2], "cursor": None}


PARAMETERS: dict[Callable[[dict[str, Any]], Any], dict[str, Any]] = {
    by_cursor: {"cursor": TEXT},
    by_page_token: {"pageToken": {"anyOf": [TEXT, {"type": "null"}]}, "pageSize": WHOLE},
    by_nested_cursor: {"after": TEXT, "first": WHOLE},
    by_last_id: {"starting_after": WHOLE, "limit": WHOLE},
    by_link: {"cursor": TEXT},
    by_offset: {"offset": WHOLE},
    by_offset_alone: {"offset": WHOLE, "limit": WHOLE},
    by_page: {"page": WHOLE},
    by_page_from_0: {"page": WHOLE},
    by_page_alone: {"page_number": WHOLE},
    by_page_with_an_idle_cursor: {"page": WHOLE},
    at_once: {"query": TEXT},
}
BROKEN: dict[Callable[[dict[str, Any]], Any], tuple[dict[str, Any], str]] = {
    again: ({"cursor": TEXT}, "does not end: page 2 has the cursor same again"),
    deaf: ({"page": WHOLE}, "does not end: page 2 is like the one before, as if 'page' had no effect"),
    without_cursor: (
        {"cursor": TEXT},
        "there is more, but has no cursor: pages looked for next_cursor, nextCursor, next_page_token",
    ),
    without_parameter: (
        {"query": TEXT},
        "no parameter to ask for them: pages looked for cursor, page_token, next_token, starting_after, page, offset",
    ),
    without_items: ({"cursor": TEXT}, "the answer has the keys: bad, good"),
    endless: ({"cursor": TEXT}, "does not end: it has more than 1000 pages"),
}
SCRIPTS = {"lua": "return pages(tools.{}{})", "rhai": 'pages("{}"{})', "python": "pages({}{})"}


NULLS = [
    ("next_page", None, None),
    ("next", None, None),
    ("next_cursor", "", None),
    ("nextPage", False, None),
    ("next_page", None, "pagination"),
    ("next", None, "links"),
]
"""The name of the field with the next page, its value at the end, and the field that holds it."""


def _with_a_next(parameter: str, number: int) -> Tool:
    name, end, inside = NULLS[number]

    def listed(args: dict[str, Any]) -> Any:
        at = args.get("offset", (args.get("page", 1) - 1) * 5)
        following = {"page": at // 5 + 2, "offset": at + 5}[parameter] if at + 5 < len(ITEMS) else end
        says = {name: following}
        return {"items": _cut(at), **({inside: says} if inside else says)}

    return _tool(f"{parameter}_{number}", {parameter: WHOLE}, listed)


def _tool(name: str, parameters: dict[str, Any], call: Callable[[dict[str, Any]], Any]) -> Tool:
    schema = {"type": "object", "properties": parameters}
    return Tool.from_schema(name=name, description="", parameters=schema, call=call)


TOOLS = [
    *(_tool(call.__name__, parameters, call) for call, parameters in PARAMETERS.items()),
    *(_tool(call.__name__, parameters, call) for call, (parameters, _) in BROKEN.items()),
    *(_with_a_next(parameter, number) for parameter in ("page", "offset") for number in range(len(NULLS))),
]


@pytest.fixture(scope="module")
def run_in() -> Iterator[Callable[..., Run]]:
    """Runs a script in a language, in one Sandbox with all tools for each isolation."""
    with contextlib.ExitStack() as stack:

        @cache
        def box(language: str, isolation: Any, check: bool) -> Sandbox:
            return stack.enter_context(Sandbox(TOOLS, language=language, isolation=isolation, check=check))

        def run(
            source: str, language: str = "lua", isolation: str = "process", check: bool = True, **of_run: Any
        ) -> Run:
            return box(language, isolation, check).run(source, **of_run)

        yield run


@pytest.mark.parametrize("isolation", ["process", "inline"])
@pytest.mark.parametrize("language", SCRIPTS)
@pytest.mark.parametrize("call", PARAMETERS, ids=lambda call: call.__name__)
def test_every_form_gives_all_items(run_in: Any, call: Any, language: str, isolation: str) -> None:
    run = run_in(SCRIPTS[language].format(call.__name__, ""), language, isolation)
    assert run.unwrap() == ITEMS
    assert len(run.calls) <= 6  # five pages; a form without an end takes one more


@pytest.mark.parametrize("language", SCRIPTS)
@pytest.mark.parametrize("number", range(len(NULLS)))
@pytest.mark.parametrize("parameter", ["page", "offset"])
def test_a_next_that_is_null_is_the_end(run_in: Any, number: int, parameter: str, language: str) -> None:
    run = run_in(SCRIPTS[language].format(f"{parameter}_{number}", ""), language)
    assert run.unwrap() == ITEMS
    assert len(run.calls) == 5


@pytest.mark.parametrize("language", SCRIPTS)
@pytest.mark.parametrize("call", BROKEN, ids=lambda call: call.__name__)
def test_an_unknown_form_and_an_endless_server_are_errors_that_say_why(run_in: Any, call: Any, language: str) -> None:
    source = SCRIPTS[language].format(call.__name__, "")
    error = run_in(source, language, limits=Limits(max_tool_calls=2000)).error
    assert error is not None
    assert error.kind == "runtime"
    assert error.message.startswith("pages: ")
    assert BROKEN[call][1] in error.message
    assert error.line == 1


@pytest.mark.parametrize(
    ("language", "source", "ids"),
    [
        ("lua", "return pages(tools.by_cursor, {}, {max = 7})", 7),
        ("lua", "return pages(tools.by_cursor, nil, {max = 5})", 5),
        ("lua", "return pages(tools.by_cursor, {}, function(item, index) return item.id < 8 and index < 100 end)", 7),
        ("rhai", 'pages("by_cursor", #{}, #{max: 7})', 7),
        ("rhai", 'pages(Fn("by_cursor"), #{}, |item| item.id < 8)', 7),
        ("python", "pages(by_cursor, max=7)", 7),
        ("python", "pages(tools.by_cursor, {}, 5)", 5),
    ],
)
def test_it_stops_early(run_in: Any, language: str, source: str, ids: int) -> None:
    run = run_in(source, language)
    assert [item["id"] for item in run.unwrap()] == list(range(1, ids + 1))
    assert len(run.calls) == (ids + 4) // 5


def test_arguments_are_kept_and_not_changed(run_in: Any) -> None:
    source = "local args = {limit = 10} local items = pages(tools.by_offset_alone, args) return #items, args"
    run = run_in(source)
    assert run.values == (23, {"limit": 10})
    assert [call.arguments for call in run.calls] == [
        {"limit": 10},
        {"limit": 10, "offset": 10},
        {"limit": 10, "offset": 20},
    ]


@pytest.mark.parametrize("language", SCRIPTS)
def test_the_limit_of_calls_holds(run_in: Any, language: str) -> None:
    run = run_in(SCRIPTS[language].format("endless", ""), language, limits=Limits(max_tool_calls=7))
    assert (error_of(run).kind, error_of(run).limit, len(run.calls)) == ("limit", "calls", 7)


@pytest.mark.parametrize(
    ("language", "source", "message"),
    [
        (
            "lua",
            "return pages('by_cursor')",
            "pages: the first argument must be a tool, such as tools.list_orders, not a string",
        ),
        (
            "lua",
            "return pages(tools.by_cursor, {1})",
            'pages: the arguments of the tool must be a table with names, such as {status = "open"}',
        ),
        ("lua", "return pages(tools.by_cursor, {}, {most = 1})", "pages: the option is 'max', not 'most'"),
        ("lua", "return pages(tools.by_cursor, {}, {max = 0})", "pages: max must be a whole number of at least 1"),
        ("rhai", 'pages("nothing")', "pages: there is no tool 'nothing'"),
        ("python", 'pages("nothing")', "pages: there is no tool 'nothing'"),
    ],
)
def test_wrong_arguments_say_what_to_write(run_in: Any, language: str, source: str, message: str) -> None:
    error = run_in(source, language, check=False).error
    assert error is not None
    assert error.message.startswith(message)


def test_several_tools_are_paged_at_the_same_time(run_in: Any) -> None:
    source = "local function all() return pages(tools.by_cursor) end local r = parallel{all, all} return #r[1] + #r[2]"
    run = run_in(source)
    assert run.unwrap() == 2 * len(ITEMS)
