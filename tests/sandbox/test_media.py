"""Media: scripts get handles, tools and models get the bytes."""

from __future__ import annotations

import asyncio
import json
import types
from typing import TYPE_CHECKING, Any

import pytest

from moonbox import Media, Run, Sandbox, Tool, tool
from moonbox.audit.sinks import MemorySink
from moonbox.errors import UsageError
from moonbox.media import MediaStore
from tests.runs import error_of

if TYPE_CHECKING:
    from pathlib import Path

PNG = Media(b"\x89PNG\r\n\x1a\n" + bytes(100), name="chart.png")
WAV = Media(b"RIFF\0\0\0\0WAVEfmt ")


@tool
def chart() -> Media:
    """A chart."""
    return PNG


@tool
def sounds() -> dict[str, Any]:
    """Sounds, and more."""
    return {"title": "two", "list": [WAV, {"deep": WAV}]}


@tool
def look(image: Media, note: str = "") -> str:
    """Look at an image."""
    return f"{image.name} {image.size} {note}".strip()


@tool
def count(data: bytes) -> int:
    """Count bytes."""
    return len(data)


def fields(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


SEEN: list[Any] = []
SEND = Tool.from_schema(
    name="send",
    parameters=fields(
        image={"type": "string", "description": "The image as base64."},
        url={"type": "string"},
        coded={"type": "string", "contentEncoding": "base64"},
    ),
    call=SEEN.append,
)
TOOLS = [chart, sounds, look, count, SEND]


@pytest.fixture(params=["process", "inline"])
def box(request: pytest.FixtureRequest) -> Any:
    with Sandbox(TOOLS, isolation=request.param) as made:
        yield made


def test_a_script_sees_a_handle(box: Sandbox) -> None:
    run = box.run("local c = tools.chart{} return c")
    assert set(run.value) == {"media", "type", "size", "name", "hash"}
    assert (run.value["type"], run.value["size"], run.value["name"]) == ("image/png", 108, "chart.png")
    assert run.media == (PNG,)
    assert PNG.base64 not in run.for_model() and PNG.base64 not in run.to_json()


def test_media_within_data(box: Sandbox) -> None:
    run = box.run("return tools.sounds{}")
    assert run.value["title"] == "two" and run.value["list"][0]["type"] == "audio/wav"
    assert run.media == (WAV,), "the same medium once"
    assert box.run("return tools.sounds{}.title").media == ()


def test_other_tools_take_them(box: Sandbox) -> None:
    SEEN.clear()
    run = box.run("""
        local c = tools.chart{}
        tools.send{image = c, url = c, coded = c}
        return tools.look{image = c, note = 'x'}, tools.count{data = c}, tools.look(c)
    """)
    assert run.error is None, run.error
    assert run.values == ("chart.png 108 x", 108, "chart.png 108")
    assert [{"image": PNG.base64, "url": PNG.data_uri, "coded": PNG.base64}] == SEEN
    assert not any(PNG.base64 in json.dumps(call.arguments) for call in run.calls), "records keep the handle"


def test_show_gives_it_to_the_model_beside_the_result(box: Sandbox) -> None:
    run = box.run("show(tools.chart{}) show({rows = 2}) print('done') return 1")
    assert (run.value, run.media) == (1, (PNG,))
    assert run.output.splitlines()[:2] == ["[chart.png: image/png, 108 bytes]", '{"rows":2}']


def test_what_was_shown_before_a_failure_is_not_lost(box: Sandbox) -> None:
    run = box.run("show(tools.chart{}) error('no')")
    assert not run.ok and run.media == (PNG,)


OTHERS = {
    "rhai": "let c = chart(#{}); show(c); send(#{image: c}); [look(#{image: c}), count(c), sounds(#{}).list[0]]",
    "python": "c = chart()\ns = sounds()\nshow(c)\nsend(image=c)\n[look(image=c), count(c), s['list'][0]]",
}


@pytest.mark.parametrize("language", OTHERS)
def test_other_languages(language: str) -> None:
    SEEN.clear()
    with Sandbox(TOOLS, language=language) as box:
        run = box.run(OTHERS[language])
        assert run.error is None
        assert (run.value[:2], run.media) == (["chart.png 108", 108], (PNG, WAV))
        assert run.output == "[chart.png: image/png, 108 bytes]\n" and [{"image": PNG.base64}] == SEEN


def test_a_tool_named_show_hides_the_function_where_tools_are_functions() -> None:
    own = Tool.from_schema(name="show", call=lambda given: "mine")
    for language, script in (("rhai", "show(#{})"), ("python", "show()")):
        with Sandbox([own], language=language) as box:
            assert box.run(script).value == "mine"
    with Sandbox([own]) as box:
        assert box.run("show(1) return tools.show{}").value == "mine"


def test_inputs_answers_and_direct_calls() -> None:
    with Sandbox(TOOLS) as box, box.repl() as repl:
        assert repl.run("return tools.look{image = x}", inputs={"x": PNG}).value == "chart.png 108"
        pause = repl.start("return tools.look{image = tools.chart{}}")
        assert not isinstance(pause, Run)
        again = pause.resume([WAV])
        assert not isinstance(again, Run)
        assert again.resume().value == f"{WAV.name} 16"  # type: ignore[union-attr]
        assert box.call("chart").media == (PNG,)
        assert asyncio.run(box.acall("chart")).media == (PNG,)


def test_it_lives_as_long_as_the_repl() -> None:
    with Sandbox(TOOLS) as box, box.repl() as repl:
        repl.run("c = tools.chart{}")
        assert repl.run("return c").media == (PNG,)
        assert repl.run("return tools.look{image = c}").value == "chart.png 108"


# Attacks


def test_a_handle_of_another_repl_is_worth_nothing() -> None:
    with Sandbox(TOOLS) as box, box.repl() as mine, box.repl() as theirs:
        address = mine.run("return tools.chart{}").value["media"]
        assert (mine.find_medium(address), mine.find_medium({"media": address})) == (PNG, PNG)
        assert (theirs.find_medium(address), mine.find_medium(None)) == (None, None)
        handle = f"{{media = '{address}', type = 'image/png', size = 1, name = 'x'}}"
        run = theirs.run(f"return tools.look{{image = {handle}}}")
        assert run.error is not None and "this medium is unknown here" in run.error.message
        assert theirs.run(f"show({handle}) return {handle}").media == ()
        SEEN.clear()
        theirs.run(f"tools.send{{url = '{address}'}}")
        assert [{"url": address}] == SEEN, "the text stays a text"


def test_handles_cannot_be_guessed_or_forged() -> None:
    addresses = {Media(b"x").address for _ in range(1000)}
    assert len(addresses) == 1000 and all(len(address) >= len("moonbox://media/") + 22 for address in addresses)
    with Sandbox(TOOLS) as box, box.repl() as repl:
        repl.run("c = tools.chart{}")
        for forged in ("{media = 'moonbox://media/'}", "{media = 1}", "{media = {}}", "{media = c}", "{}"):
            assert repl.run(f"show({forged}) return {forged}").media in ((), (PNG,))
            assert not repl.run(f"return tools.look{{image = {forged}}}").ok
        # What the script says of it does not count.
        lied = repl.run("c.type = 'text/html' c.name = '../../x' return c").media
        assert lied == (PNG,)


def test_a_flood_of_shown_values_is_bounded() -> None:
    with Sandbox(TOOLS) as box:
        run = box.run("for i = 1, 100000 do show(('x'):rep(10000)) end")
        assert (error_of(run).code, error_of(run).message) == (
            "limit_show",
            "this run has called show 1000 times; put the values into a table and show that",
        )
        assert len(run.output) <= box.limits.max_output


def test_the_store_has_a_budget() -> None:
    store = MediaStore(max_bytes=1000)
    media = [Media(bytes(200), name=f"{number}.bin") for number in range(7)]
    for medium in media:
        store.keep(medium)
    assert [store.get(medium.address) is not None for medium in media] == [False, False, True, True, True, True, True]
    big = Tool.from_schema(name="big", call=lambda given: Media(bytes(17 * 1024 * 1024)))
    with Sandbox([big]) as box:
        run = box.run("return tools.big{}")
        assert run.error is not None and run.error.code == "result_too_large"
        assert "one medium may have 16,777,216" in run.error.message


# Records


def test_records_have_type_size_and_hash() -> None:
    sink = MemorySink()
    with Sandbox(TOOLS, audit=sink) as box:
        run = box.run("local c = tools.chart{} tools.look{image = c} return c")
    [written] = [sink.get(run.id)]
    assert PNG.base64 not in written.to_json()
    result = written.calls[0].result
    assert (result["type"], result["size"], result["hash"]) == ("image/png", 108, PNG.handle()["hash"])
    assert Run.from_json(written.to_json()).media == ()


# The class


@pytest.mark.parametrize(
    ("medium", "kind", "mime", "name"),
    [
        (Media(b"x", name="a.csv"), "file", "text/csv", "a.csv"),
        (Media(b"\xff\xd8\xff"), "image", "image/jpeg", "image.jpg"),
        (WAV, "audio", "audio/wav", "audio.wav"),
        (Media(b"??"), "file", "application/octet-stream", "file.bin"),
        (Media(b"x", "IMAGE/PNG", "../../etc/passwd"), "image", "image/png", "passwd"),
        (Media(b"x", "image/png", "..\\..\\a\nb\x1b[2J.png"), "image", "image/png", "a_b__2J.png"),
        (Media(b"x", "image/png", "..."), "image", "image/png", "image.png"),
    ],
)
def test_types_and_names(medium: Media, kind: str, mime: str, name: str) -> None:
    assert (medium.kind, medium.type, medium.name) == (kind, mime, name)


def test_wrong_ones() -> None:
    with pytest.raises(UsageError, match="Media takes bytes, not str"):
        Media("text")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="'image' is not a MIME type"):
        Media(b"", "image")
    with pytest.raises(UsageError, match="not base64"):
        Media.from_base64("a b c")


def test_saving_replaces_nothing(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("mine")
    (tmp_path / "chart.png").symlink_to(tmp_path / "secret")
    paths = [PNG.save(tmp_path), PNG.save(tmp_path)]
    assert [path.name for path in paths] == ["chart-2.png", "chart-3.png"]
    assert paths[0].read_bytes() == PNG.data and (tmp_path / "secret").read_text() == "mine"
    assert Media.from_file(paths[0]) == Media(PNG.data, "image/png", "chart-2.png")


def test_pictures_of_libraries_are_known_by_their_names() -> None:
    """Stand-ins: neither library is installed for the tests."""

    class Image:
        def save(self, file: Any, format: str) -> None:
            file.write(b"\x89PNG\r\n\x1a\n" + format.encode())

    class Figure:
        def savefig(self, file: Any, format: str) -> None:
            file.write(b"\x89PNG\r\n\x1a\n" + format.encode())

    Image.__module__, Figure.__module__ = "PIL.Image", "matplotlib.figure"
    values = types.SimpleNamespace(both=[Image(), Figure()])
    pictures = Tool.from_schema(name="pictures", call=lambda given: values.both)
    with Sandbox([pictures]) as box:
        media = box.run("return tools.pictures{}").media
    assert [medium.data[8:] for medium in media] == [b"PNG", b"png"]
