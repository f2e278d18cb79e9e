"""Embedders: the wire format of OpenAI over real HTTP, and the local model."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from moonbox.errors import ConfigError, MissingExtra
from moonbox.knowledge import Embedder, EmbeddingError, KnowledgeBase
from moonbox.knowledge.embedding import LocalEmbedder, OpenAIEmbedder, OpenAIEmbeddings

from .meaning import answer_embeddings, vector_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from .conftest import Site

    Make = Callable[..., tuple[OpenAIEmbedder, list[float]]]


@pytest.fixture
def embedder(site: Site) -> Iterator[Callable[..., tuple[OpenAIEmbedder, list[float]]]]:
    site.pages["/v1/embeddings"] = answer_embeddings  # in reverse order
    made: list[OpenAIEmbedder] = []

    def make(**more: Any) -> tuple[OpenAIEmbedder, list[float]]:
        pauses: list[float] = []
        options = OpenAIEmbeddings(**{"url": f"{site.url}/v1", "model": "meaning", **more})
        made.append(OpenAIEmbedder(options, pause=pauses.append))
        return made[-1], pauses

    yield make
    for one in made:
        one.close()


def sent(site: Site) -> list[dict[str, Any]]:
    return [json.loads(headers["sent"]) for _, headers in site.requests]


def test_the_wire_format(site: Site, monkeypatch: pytest.MonkeyPatch, embedder: Make) -> None:
    monkeypatch.setenv("MY_KEY", "sk-secret\n")
    made, _ = embedder(key_env="MY_KEY", dimensions=16, query_prefix="query: ", document_prefix="text: ")
    assert isinstance(made, Embedder)
    assert made.name == "meaning@16 after 'text: '"
    assert made.embed(["a cat"], "query") == [vector_of("query: a cat")]
    assert made.embed(["a cat"], "document") == [vector_of("text: a cat")]
    (_, headers), _ = site.requests
    assert headers["authorization"] == "Bearer sk-secret"
    assert sent(site)[0] == {
        "model": "meaning",
        "input": ["query: a cat"],
        "encoding_format": "float",
        "dimensions": 16,
    }


def test_texts_go_in_batches_and_come_back_in_order(site: Site, embedder: Make) -> None:
    made, _ = embedder(batch=3)
    texts = [f"text {number}" for number in range(8)]
    assert made.embed(texts, "document") == [vector_of(text) for text in texts]
    assert [len(body["input"]) for body in sent(site)] == [3, 3, 2]
    assert "authorization" not in site.requests[0][1]


def test_one_connection_serves_many_requests(site: Site, embedder: Make) -> None:
    made, _ = embedder()
    made.embed(["a"], "query")
    made.embed(["b"], "query")
    assert len({headers["port"] for _, headers in site.requests}) == 1
    made.close()
    made.close()
    assert made.embed(["c"], "query") == [vector_of("c")]
    assert len({headers["port"] for _, headers in site.requests}) == 2
    made.close()


def test_failures_that_pass_are_tried_again(site: Site, embedder: Make) -> None:
    answers = [(429, {"retry-after": "7"}, b"slow down"), (503, {}, b""), (500, {"retry-after": "1000"}, b"")]

    def moody(headers: dict[str, str], body: bytes) -> Any:
        return answers.pop(0) if answers else answer_embeddings(headers, body)

    site.pages["/v1/embeddings"] = moody
    made, pauses = embedder()
    assert made.embed(["x"], "query") == [vector_of("x")]
    assert pauses == [7.0, 2.0, 30.0]


def test_failures_that_stay(site: Site, embedder: Make) -> None:
    made, pauses = embedder(attempts=2)
    site.pages["/v1/embeddings"] = (502, {}, b"bad\ngateway")
    with pytest.raises(EmbeddingError) as caught:
        made.embed(["x"], "query")
    assert str(caught.value) == f"{site.url}/v1/embeddings responded with status 502: bad gateway (2 attempts)"
    assert len(pauses) == 1
    site.pages["/v1/embeddings"] = (401, {}, b"")
    with pytest.raises(EmbeddingError, match=r"status 401: \(empty response\)$"):
        made.embed(["x"], "query")
    assert len(pauses) == 1
    nobody, pauses = embedder(url="http://127.0.0.1:1/v1", attempts=3)
    with pytest.raises(EmbeddingError, match=r"^http://127.0.0.1:1/v1/embeddings did not respond: .* \(3 attempts\)$"):
        nobody.embed(["x"], "query")
    assert pauses == [1.0, 2.0]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"<html>", "did not respond in OpenAI's format: <html>"),
        (b"[]", "did not respond in OpenAI's format: []"),
        (b'{"data": [{"index": 0}]}', "did not respond in OpenAI's format"),
        (b'{"data": [{"index": 0, "embedding": [1' + b"0" * 400 + b"]}]}", "did not respond in OpenAI's format"),
        (b"[" * 100_000, "did not respond in OpenAI's format"),
        (b'{"data": []}', "returned 0 vectors for 2 texts"),
        (
            b'{"data": [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]}',
            "returned 2 vectors for 2 texts",
        ),
        (
            b'{"data": [{"index": 0, "embedding": [1]}, {"index": 1, "embedding": [1, 2]}]}',
            "vectors of different lengths",
        ),
        (
            b'{"data": [{"index": 0, "embedding": [NaN]}, {"index": 1, "embedding": [1]}]}',
            "a number that is not finite",
        ),
        (b'{"data": [{"index": 0, "embedding": []}, {"index": 1, "embedding": []}]}', "vectors of different lengths"),
    ],
)
def test_answers_that_are_nonsense(site: Site, body: bytes, message: str, embedder: Make) -> None:
    site.pages["/v1/embeddings"] = (200, {"content-type": "application/json"}, body)
    with pytest.raises(EmbeddingError) as caught:
        embedder()[0].embed(["a", "b"], "document")
    assert message in str(caught.value)


def test_a_key_that_is_not_there(site: Site, monkeypatch: pytest.MonkeyPatch, embedder: Make) -> None:
    monkeypatch.delenv("MY_KEY", raising=False)
    with pytest.raises(ConfigError) as caught:
        embedder(key_env="MY_KEY")[0].embed(["x"], "query")
    assert str(caught.value) == "the environment variable MY_KEY (embeddings.key_env) is not set"


def test_redirects_are_not_followed_with_the_key(site: Site, monkeypatch: pytest.MonkeyPatch, embedder: Make) -> None:
    monkeypatch.setenv("MY_KEY", "sk-secret")
    site.pages["/v1/embeddings"] = (307, {"location": "/elsewhere"}, b"")
    with pytest.raises(EmbeddingError, match=r"status 307"):
        embedder(key_env="MY_KEY")[0].embed(["x"], "query")
    assert site.asked() == ["/v1/embeddings"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"url": "localhost:80", "model": "m"}, "url must be an http or https address, not 'localhost:80'"),
        ({"url": "http://x", "model": "m", "batch": 0}, "batch must be more than 0, not 0"),
    ],
)
def test_options_that_are_wrong(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        OpenAIEmbeddings(**options)
    assert str(caught.value) == message


def test_the_local_model_tells_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra) as caught:
        LocalEmbedder().embed(["x"], "query")
    assert str(caught.value) == (
        "the local embedding model needs the package 'wordllama'; "
        "install it with: pip install 'moonbox[local-embeddings]'"
    )


def test_the_local_model_knows_what_is_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moonbox.knowledge.embedding._BATCH", 2)
    texts = ["a cat sleeps", "kittens are napping", "corporate tax law", ""]
    cat, kitten, tax, nothing = LocalEmbedder().embed(texts, "document")
    assert len(cat) == 256
    assert nothing == [0.0] * 256

    def alike(one: list[float], other: list[float]) -> float:
        return sum(a * b for a, b in zip(one, other, strict=True))

    assert alike(cat, cat) == pytest.approx(1.0, abs=1e-5)
    assert alike(cat, kitten) > 0.3 > 0.1 > alike(cat, tax)


def test_the_local_model_needs_no_network_and_no_torch(tmp_path: Path) -> None:
    script = """
import socket, sys
def refuse(*_): raise OSError("no network here")
socket.socket.connect = refuse
from moonbox.knowledge.embedding import LocalEmbedder
LocalEmbedder().embed(["a cat"], "query")
print(sorted({"torch", "transformers", "wordllama", "requests"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stdout == "[]\n"


def test_the_local_model_is_loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[str] = []
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: found.append(name) or find(name))
    embedder = LocalEmbedder()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: embedder.warm(), range(4)))
    embedder.embed(["x"], "query")
    assert found.count("wordllama") == 1


def test_a_knowledge_base_warms_its_model(tmp_path: Path) -> None:
    class Warmed(LocalEmbedder):
        warmed = 0

        def warm(self) -> None:
            self.warmed += 1

    embedder = Warmed()
    with KnowledgeBase(tmp_path / "store.db", embedder=embedder) as base:
        base.warm()
    assert embedder.warmed == 1
    with KnowledgeBase(tmp_path / "store.db") as base:
        base.warm()  # nothing to load
