"""Parts of specifications: styles of parameters, filters, authentication, waits, and what is wrong with them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pytest

from moonbox import Limits, Sandbox, Toolbox
from moonbox.errors import UsageError
from tests.loopback_servers import Answer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.loopback_servers import Request, Server

SECRET = "s3cret:of-the-test"
OK = {"200": {"description": "ok"}}


def operation(**more: Any) -> dict[str, Any]:
    return {"responses": OK, **more}


def spec(paths: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"openapi": "3.1.0", "info": {"title": "t", "version": "1"}, "paths": paths, **more}


def one_tool(
    server: Server, method: str = "get", path: str = "/a", *, operation: Any = None, **options: Any
) -> Toolbox:
    """A tool `a` of that server, which scripts may call."""
    data = spec({path: {method: {"operationId": "a", "responses": OK, **(operation or {})}}})
    return Toolbox.from_openapi(data, base_url=server.url, policy={"*": "auto"}, **options)


def call(tools: Toolbox, source: str = "return tools.a()", **limits: Any) -> Any:
    with Sandbox(tools, limits=Limits(timeout=30, max_tool_calls=50).replace(**limits)) as box:
        return box.run(source)


def code_of(tools: Toolbox, source: str = "return tools.a()") -> str:
    """The code of the error with which the script fails."""
    error = call(tools, source).error
    assert error is not None
    return str(error.code)


@pytest.fixture
def echo(serve: Callable[..., Server]) -> Server:
    """Answers with what it was asked."""
    return serve({"/a": lambda request: Answer.json({"path": unquote(request.path), "headers": request.headers})})


@pytest.mark.parametrize(
    ("parameter", "value", "written"),
    [
        ({"in": "query"}, "{1, 2}", "/a?v=1&v=2"),
        ({"in": "query", "explode": False}, "{1, 2}", "/a?v=1,2"),
        ({"in": "query", "style": "spaceDelimited", "explode": False}, "{1, 2}", "/a?v=1 2"),
        ({"in": "query", "style": "pipeDelimited", "explode": False}, "{1, 2}", "/a?v=1|2"),
        ({"in": "query", "style": "deepObject"}, "{x = 1, y = true}", "/a?v[x]=1&v[y]=true"),
        ({"in": "query"}, "{x = 1, y = 'a&b'}", "/a?x=1&y=a&b"),
        ({"in": "query", "explode": False}, "{x = 1}", "/a?v=x,1"),
        ({"in": "query", "content": {"application/json": {}}}, "{x = {1}}", '/a?v={"x": [1]}'),
        ({"in": "query"}, "'a/b?c&d=e f'", "/a?v=a/b?c&d=e f"),
    ],
)
def test_parameters_are_written_in_their_styles(echo: Server, parameter: Any, value: str, written: str) -> None:
    tools = one_tool(echo, operation={"parameters": [{"name": "v", **parameter}]})
    assert call(tools, f"return tools.a{{v = {value}}}.path").unwrap() == written


def test_a_path_with_a_query_of_its_own(echo: Server) -> None:
    tools = one_tool(echo, path="/a?kind=b", operation={"parameters": [{"name": "v", "in": "query"}]})
    assert call(tools, "return tools.a{v = 1}.path").unwrap() == "/a?kind=b&v=1"


def test_several_files_in_one_part(echo: Server) -> None:
    file = {"$ref": "#/components/schemas/file"}
    body = {"multipart/form-data": {"schema": {"properties": {"files": {"type": "array", "items": file}}}}}
    data = spec({"/a": {"post": operation(operationId="a", requestBody={"content": body})}})
    data["components"] = {"schemas": {"file": {"type": "string", "format": "binary"}}}
    tools = Toolbox.from_openapi(data, base_url=echo.url, policy={"*": "auto"})
    assert call(tools, 'return tools.a{files = {"one", "\\xff"}}').ok
    sent = echo.requests[0].body
    assert sent.count(b'name="files"; filename="files"\r\ncontent-type: application/octet-stream\r\n\r\n') == 2
    assert b"\r\n\r\none\r\n" in sent
    assert b"\r\n\r\n\xff\r\n" in sent


@pytest.mark.parametrize(("required", "body"), [(True, b"{}"), (False, b"")])
def test_a_required_body_is_sent_without_fields_too(echo: Server, required: bool, body: bytes) -> None:
    content = {"application/json": {"schema": {"properties": {"x": {"type": "string"}}}}}
    tools = one_tool(echo, "post", operation={"requestBody": {"content": content, "required": required}})
    assert call(tools).ok
    assert echo.requests[0].body == body


def test_a_field_of_a_form_with_the_name_of_another_parameter(echo: Server) -> None:
    form = {"application/x-www-form-urlencoded": {"schema": {"properties": {"id": {"type": "string"}}}}}
    more = {"parameters": [{"name": "id", "in": "query"}], "requestBody": {"content": form}}
    tools = one_tool(echo, "post", operation=more)
    assert call(tools, "return tools.a{id = 'old', body = {id = 'new'}}.path").unwrap() == "/a?id=old"
    assert echo.requests[0].body == b"id=new"


@pytest.mark.parametrize("charset", ["iso-8859-1", '"windows-1252"', "ISO-8859-99"])
def test_text_in_another_charset(serve: Callable[..., Server], charset: str) -> None:
    header = {"content-type": f"text/plain; charset={charset}"}
    tools = one_tool(serve({"/a": lambda _: Answer(200, "café".encode("latin-1"), header)}))
    value = call(tools).unwrap()
    assert value["size"] == 4 if "99" in charset else value == "café"


@pytest.mark.parametrize("path", ["/x/{id}/a", "/x/{id}"])
@pytest.mark.parametrize("value", ["'..'", "'.'", "''", "{}", "json.null"])
def test_a_parameter_cannot_leave_its_path(echo: Server, path: str, value: str) -> None:
    parameters = [{"name": "id", "in": "path", "required": True, "schema": {}}]
    tools = one_tool(echo, path=path, operation={"parameters": parameters})
    assert (code_of(tools, f"return tools.a{{id = {value}}}"), echo.requests) == ("invalid", [])
    call(tools, "return tools.a{id = '../a?x=1#'}")
    assert echo.requests[0].path == path.replace("{id}", "..%2Fa%3Fx%3D1%23")


def test_text_that_is_not_utf8_is_written_as_it_is(serve: Callable[..., Server]) -> None:
    server = serve({"/a/%FF": lambda request: Answer.json(request.headers["x-v"].encode("latin-1").hex())})
    parameters = [{"name": "id", "in": "path", "required": True}, {"name": "q", "in": "query"}]
    tools = one_tool(server, path="/a/{id}", operation={"parameters": [*parameters, {"name": "x-v", "in": "header"}]})
    assert call(tools, 'return tools.a{id = "\\xff", q = "\\xfe", ["x-v"] = "\\xfd"}').unwrap() == "fd"
    assert server.requests[0].path == "/a/%FF?q=%FE"


def test_a_header_cannot_bring_another(echo: Server) -> None:
    tools = one_tool(echo, operation={"parameters": [{"name": "X-V", "in": "header"}]})
    assert (code_of(tools, 'return tools.a{["X-V"] = "1\\r\\nHost: other"}'), echo.requests) == ("invalid", [])


def test_a_cookie_or_a_part_cannot_bring_another(echo: Server) -> None:
    cookie = {"name": "v", "in": "cookie"}
    body = {"multipart/form-data": {"schema": {"properties": {'x"\r\ny': {"type": "string"}}}}}
    auth = {"api_key": SECRET, "api_key_in": "cookie:k"}
    tools = one_tool(echo, "post", operation={"parameters": [cookie], "requestBody": {"content": body}}, auth=auth)
    call(tools, """return tools.a{v = '1; k=2\\r\\nX: y', ['x"\\r\\ny'] = '--'}""")
    sent = echo.requests[0]
    assert sent.headers["cookie"] == f"k={SECRET}; v=1%3B%20k%3D2%0D%0AX%3A%20y"
    assert b'; name="x%22%0D%0Ay"\r\n\r\n--\r\n--' in sent.body


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"include": ["tag:a"]}, ["get_one", "add_one"]),
        ({"include": ["GET *"]}, ["get_one", "get_two"]),
        ({"include": ["/two*"]}, ["get_two"]),
        ({"include": ["get_*"], "exclude": ["tag:b"]}, ["get_one"]),
        ({"exclude": ["POST /*"]}, ["get_one", "get_two"]),
    ],
)
def test_filters_by_tag_path_method_and_name(options: dict[str, Any], names: list[str]) -> None:
    one = {"get": operation(operationId="get_one", tags=["a"]), "post": operation(operationId="add_one", tags=["a"])}
    data = spec({"/one": one, "/two/x": {"get": operation(operationId="get_two", tags=["b"])}})
    tools = Toolbox.from_openapi(data, base_url="https://example.com", **options)
    assert [tool.name for tool in tools] == names


def test_what_cannot_be_used_is_reported_operation_by_operation() -> None:
    loop = {"a": {"$ref": "#/components/parameters/b"}, "b": {"$ref": "#/components/parameters/a"}}
    tree = {"type": "object", "properties": {"children": {"items": {"$ref": "#/components/schemas/tree"}}}}
    answer = {
        "200": {"description": "", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/tree"}}}}
    }
    deep: Any = {"type": "string"}
    for _ in range(500):
        deep = {"type": "array", "items": deep}
    data = spec(
        {
            "/fine": {"get": {"operationId": "fine", "responses": answer}, "trace": operation()},
            "/broken": {"get": operation(parameters=[{"$ref": "#/components/parameters/none"}])},
            "/loop": {"get": operation(parameters=[{"$ref": "#/components/parameters/a"}])},
            "/out": {"post": operation(requestBody={"$ref": "other.yaml#/body"})},
            "/twice": {"get": operation(operationId="fine")},
            "/odd/{id}": {"get": operation()},
            "/style": {"get": operation(parameters=[{"name": "x", "in": "query", "style": "matrix"}])},
            "/deep": {"get": operation(parameters=[{"name": "x", "in": "query", "schema": deep}])},
            "/pattern": {"get": operation(parameters=[{"name": "x", "in": "query", "schema": {"type": "nothing"}}])},
            "/words": {"get": "no"},
        },
        components={"schemas": {"tree": tree}, "parameters": loop},
    )
    tools = Toolbox.from_openapi(data, base_url="https://example.com")
    assert [tool.name for tool in tools] == ["fine", "get_twice"]
    assert [problem.partition(": ")[0] for problem in sorted(tools.problems)] == [
        *("GET /broken", "GET /deep", "GET /loop", "GET /odd/{id}", "GET /pattern", "GET /style", "GET /twice"),
        *("GET /words", "POST /out", "TRACE /fine"),
    ]
    assert "GET /broken: the reference '#/components/parameters/none' leads nowhere" in tools.problems
    assert "GET /twice: the name 'fine' is taken; it is offered as 'get_twice'" in tools.problems


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is neither JSON nor YAML"),
        ("a: " + "[" * 200_000, "is neither JSON nor YAML: it is nested too deeply"),
        ("- " * 200_000, "is neither JSON nor YAML: it is nested too deeply"),
        ("[1]", "is not an OpenAPI specification"),
        ('{"swagger": "2.0"}', "only OpenAPI 3.0 and 3.1 are supported; the specification has swagger 2.0"),
        ('{"openapi": "3.0.1", "paths": {}}', None),
        ("openapi: 3.1.0\npaths: {}", None),
        ("openapi: 3.0\npaths: {}", None),
        ("a: &a [x]\nopenapi: *a", "only OpenAPI 3.0 and 3.1"),
    ],
)
def test_files(tmp_path: Path, text: str, message: str | None) -> None:
    (tmp_path / "spec.yaml").write_text(text)
    if message is None:
        assert len(Toolbox.from_openapi(tmp_path / "spec.yaml", base_url="https://example.com")) == 0
        return
    with pytest.raises(UsageError, match=message):
        Toolbox.from_openapi(tmp_path / "spec.yaml")


def test_a_bomb_of_aliases(tmp_path: Path) -> None:
    lines = ["a0: &a0 {type: string}"]
    lines += [f"a{n}: &a{n} {{properties: {{x: *a{n - 1}, y: *a{n - 1}}}}}" for n in range(1, 40)]
    (tmp_path / "spec.yaml").write_text("\n".join(["openapi: 3.1.0", *lines, "paths: {}"]))
    with pytest.raises(UsageError, match="its aliases stand for more than"):
        Toolbox.from_openapi(tmp_path / "spec.yaml", base_url="https://example.com")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"auth": {"bearer": "x"}}, "auth and headers require base_url"),
        ({"base_url": "http://example.com", "auth": {"bearer": "x"}}, "base_url must begin with https"),
        ({"base_url": "https://example.com", "auth": {"bearer": "x", "api_key": "y"}}, "exactly one of"),
        ({"inclde": ["x"]}, "unknown setting 'inclde'"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Toolbox.from_openapi(spec({}), **options)


# Where requests go, and what they carry


@pytest.mark.parametrize(
    ("auth", "header"),
    [
        ({"bearer": SECRET}, ("authorization", f"Bearer {SECRET}")),
        ({"api_key": SECRET, "api_key_in": "header:X-Own-Key"}, ("x-own-key", SECRET)),
        ({"api_key": SECRET, "api_key_in": "cookie:k"}, ("cookie", f"k={SECRET}")),
        ({"api_key": SECRET, "api_key_in": "query:k"}, ("path", f"/a?k={SECRET}")),
    ],
)
def test_credentials_are_sent_and_never_seen(echo: Server, auth: dict[str, str], header: tuple[str, str]) -> None:
    run = call(one_tool(echo, auth=auth))
    sent = {**echo.requests[0].headers, "path": unquote(echo.requests[0].path)}
    assert sent[header[0]] == header[1]
    assert SECRET not in json.dumps(run.to_dict())
    assert "[secret " in json.dumps(run.value)


def test_nothing_is_sent_to_another_host(echo: Server, serve: Callable[..., Server]) -> None:
    other = serve({"/a": lambda _: Answer.json("reached")})
    first = serve({"/a": lambda _: Answer.redirect(f"{other.url}/a", 307), "/b": lambda _: Answer.json("never")})
    data = spec(
        {
            "/a": {"post": operation(operationId="a")},
            "/b": {"get": operation(operationId="b", servers=[{"url": echo.url}])},
        },
        servers=[{"url": other.url}],
    )
    tools = Toolbox.from_openapi(data, base_url=first.url, auth={"bearer": SECRET}, policy={"*": "auto"})
    assert (code_of(tools), other.requests) == ("denied", [])
    assert call(tools, "return tools.b()").value == "never"
    assert echo.requests == []


def test_servers_of_a_specification_are_not_in_this_network(echo: Server) -> None:
    data = spec({"/a": {"get": operation(operationId="a")}}, servers=[{"url": echo.url}])
    assert (code_of(Toolbox.from_openapi(data)), echo.requests) == ("denied", [])


def test_client_credentials_are_cached_and_renewed(serve: Callable[..., Server]) -> None:
    tokens: list[str] = []

    def token(request: Request) -> Answer:
        assert request.headers["authorization"].startswith("Basic ")
        assert request.body == b"grant_type=client_credentials&scope=read+write"
        tokens.append(f"access-token-{len(tokens)}")
        return Answer.json({"access_token": tokens[-1], "expires_in": 3600})

    def data(request: Request) -> Answer:
        if request.headers["authorization"] != f"Bearer {tokens[-1]}" or (
            len(tokens) == 1 and len(server.requests) > 4
        ):
            return Answer.json({"message": f"{request.headers['authorization']} has expired"}, status=401)
        return Answer.json(len(tokens))

    server = serve({"/token": token, "/a": data})
    auth = {"client_id": "me", "client_secret": SECRET, "token_url": f"{server.url}/token", "scopes": ["read", "write"]}
    run = call(one_tool(server, auth=auth), "return {tools.a(), tools.a(), tools.a(), tools.a()}")
    assert run.value == [1, 1, 1, 2]
    assert len(tokens) == 2


@pytest.mark.parametrize(
    ("status", "after", "code"),
    [(429, "3600", "rate_limited"), (503, "3600", "unavailable"), (503, None, "unavailable")],
)
def test_waits_are_bounded_by_the_run(serve: Callable[..., Server], status: int, after: str | None, code: str) -> None:
    server = serve({"/a": lambda _: Answer(status, b"busy", {"retry-after": after} if after else {})})
    script = "local ok, e = pcall(tools.a) return e.code, e.retryable, e.data.retry_after"
    run = call(one_tool(server, max_wait=100_000), script, timeout=20)
    assert run.values == (code, True, 3600 if after else None)
    assert len(server.requests) == 1


def test_a_service_that_is_busy_for_a_moment(serve: Callable[..., Server]) -> None:
    answers = [Answer.json(1), Answer(429), Answer(429)]
    server: Server = serve({"/a": lambda _: answers.pop()})
    assert call(one_tool(server, "post")).value == 1
    assert len(server.requests) == 3


def test_a_busy_service_is_not_asked_without_a_pause(serve: Callable[..., Server]) -> None:
    server = serve({"/a": lambda _: Answer(429, b"", {"retry-after": "0"})})
    assert code_of(one_tool(server, max_wait=1)) == "rate_limited"
    assert 1 < len(server.requests) < 20


def test_a_response_that_is_too_large(serve: Callable[..., Server]) -> None:
    server = serve({"/a": lambda _: Answer(200, b"x" * 2000)})
    assert code_of(one_tool(server, max_bytes=1000)) == "result_too_large"
