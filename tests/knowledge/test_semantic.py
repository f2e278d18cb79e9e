"""Semantic and hybrid search with sqlite-vec and an endpoint on loopback."""

from __future__ import annotations

import math
import random
import sqlite3
import sys
from typing import TYPE_CHECKING, Any, Literal

import pytest

from moonbox.errors import MissingExtra, UsageError
from moonbox.knowledge import EmbeddingError, KnowledgeBase, vectors
from moonbox.knowledge.embedding import OpenAIEmbedder, OpenAIEmbeddings
from moonbox.knowledge.store import open_store
from moonbox.knowledge.vectors import connect_with_vectors

from .conftest import Listed, item
from .meaning import answer_embeddings, vector_of
from .test_sync import check_index

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from .conftest import Site


class Meaning:
    """The test's model without a server; counts what it is asked."""

    def __init__(self, name: str = "meaning") -> None:
        self.name = name
        self.asked: list[str] = []
        self.fails: Exception | None = None

    def embed(self, texts: Sequence[str], kind: Literal["document", "query"]) -> list[list[float]]:
        if self.fails:
            raise self.fails
        if kind == "document":
            self.asked += texts
        return [vector_of(text) for text in texts]


DOCUMENTS = (
    item("pets/cats", "Whiskers and purr: a kitten", title="Small hunters"),
    item("pets/dogs", "A puppy on a leash", title="Loyal friends"),
    item("money", "The accountant and the revenue audit", title="Spring work"),
    item("machines", "kernel memory of a computer", title="Boxes"),
)


@pytest.fixture
def listed() -> Listed:
    return Listed(*DOCUMENTS)


@pytest.fixture
def meaning() -> Meaning:
    return Meaning()


@pytest.fixture
def base(store: Path, listed: Listed, meaning: Meaning) -> Iterator[KnowledgeBase]:
    with KnowledgeBase(store, sources={"notes": listed}, embedder=meaning) as base:
        yield base
    check_index(store)


def found(base: KnowledgeBase, query: str, **more: Any) -> list[str]:
    return [hit.source_id for hit in base.search(query, **more)]


def test_meaning_finds_what_words_do_not(store: Path, site: Site) -> None:
    site.pages["/v1/embeddings"] = answer_embeddings
    embedder = OpenAIEmbedder(OpenAIEmbeddings(url=f"{site.url}/v1", model="meaning"))
    with KnowledgeBase(store, sources={"notes": Listed(*DOCUMENTS)}, embedder=embedder) as base:
        report = base.sync("notes")
        assert (report.added, report.embedded, report.notes) == (4, 4, ())
        assert found(base, "feline") == []
        hits = base.search("feline", mode="semantic", limit=2)
        assert hits.mode == "semantic"
        assert hits[0].source_id == "pets/cats"
        assert hits[0].score == pytest.approx(1, abs=0.01)
        assert hits[0].snippet == "Whiskers and purr: a kitten"
        assert hits[1].score < 0.7
        stats = base.stats()
        assert (stats.embedded, stats.embedder) == (4, "meaning")


def test_hybrid_joins_both_rankings(base: KnowledgeBase) -> None:
    base.sync("notes")
    hits = base.search("feline accountant", mode="hybrid", limit=3)
    assert hits.mode == "hybrid"
    assert hits[0].source_id == "money"  # found by both
    assert "**accountant**" in hits[0].snippet
    assert hits[0].score == pytest.approx(1 / 61 + 1 / 61, abs=0.001)
    assert "pets/cats" in [hit.source_id for hit in hits]


def test_sources_limit_semantic_search(store: Path, meaning: Meaning) -> None:
    sources = {"one": Listed(DOCUMENTS[0]), "two": Listed(DOCUMENTS[1], DOCUMENTS[2])}
    with KnowledgeBase(store, sources=sources, embedder=meaning) as base:
        for name in sources:
            base.sync(name)
        assert found(base, "feline", mode="semantic", source="two")[0] != "pets/cats"
        assert len(found(base, "feline", mode="semantic", source=["one", "two"])) == 3
        assert found(base, "feline", mode="semantic", source="one") == ["pets/cats"]


def test_one_row_for_each_document(base: KnowledgeBase, listed: Listed) -> None:
    listed.scanned = [item("long", "\n\n".join(["A kitten sleeps here. " * 40] * 6)), DOCUMENTS[1]]
    base.sync("notes")
    assert base.stats().embedded > 4
    assert found(base, "cat", mode="semantic") == ["long", "pets/dogs"]


def test_only_new_passages_are_embedded(base: KnowledgeBase, listed: Listed, meaning: Meaning) -> None:
    long = [f"# Part {number}\n\n" + f"Sentence {number} is here. " * 40 for number in range(6)]
    listed.scanned = [item("long", "\n\n".join(long), title="T")]
    base.sync("notes")
    before = len(meaning.asked)
    assert before == 6
    assert meaning.asked[0].startswith("T > Part 0\n\n# Part 0")
    base.sync("notes")
    assert len(meaning.asked) == before
    long[3] = "# Part 3\n\n" + "A puppy was added. " * 40
    listed.scanned = [item("long", "\n\n".join(long), title="T")]
    report = base.sync("notes")
    assert (report.updated, report.embedded) == (1, 1)
    assert base.stats().embedded == 6
    assert "puppy" in base.search("canine", mode="semantic")[0].snippet


def test_vectors_go_with_their_documents(base: KnowledgeBase, listed: Listed) -> None:
    base.sync("notes")
    listed.scanned = listed.scanned[1:]
    base.sync("notes")
    assert base.stats().embedded == 3
    assert "pets/cats" not in found(base, "feline", mode="semantic")
    base.forget("notes")
    assert base.stats().embedded == 0


def test_another_model_makes_all_vectors_anew(store: Path, listed: Listed) -> None:
    with KnowledgeBase(store, sources={"notes": listed}, embedder=Meaning("old")) as base:
        base.sync("notes")
    with KnowledgeBase(store, sources={"notes": listed}, embedder=Meaning("new")) as base:
        with pytest.raises(UsageError, match=r"^the store has no vectors of new yet; run `moonbox sync` to make them$"):
            base.search("feline", mode="semantic")
        report = base.sync("notes")
        assert (report.unchanged, report.embedded) == (4, 4)
        assert base.stats().embedder == "new"
        assert found(base, "feline", mode="semantic")[0] == "pets/cats"


def test_an_embedder_that_fails_leaves_keyword_search_whole(base: KnowledgeBase, meaning: Meaning) -> None:
    meaning.fails = EmbeddingError("the endpoint sleeps")
    report = base.sync("notes")
    assert report.ok
    assert report.notes == ("some documents cannot be found by semantic search: the endpoint sleeps",)
    assert found(base, "kitten") == ["pets/cats"]
    hits = base.search("kitten", mode="hybrid")
    assert (hits.mode, hits.notes) == ("keyword", ("keyword search only: the endpoint sleeps",))
    meaning.fails = None
    assert base.sync("notes").embedded == 4


def test_a_model_that_changes_its_size_is_refused(store: Path, listed: Listed, meaning: Meaning) -> None:
    with KnowledgeBase(store, sources={"notes": listed}, embedder=meaning) as base:
        base.sync("notes")
        listed.scanned.append(item("new", "new"))
        meaning.embed = lambda texts, kind: [[1.0] * 5 for _ in texts]  # type: ignore[method-assign]
        (note,) = base.sync("notes").notes
        assert note.startswith(
            "some documents cannot be found by semantic search: meaning returned vectors of 5 dimensions, but those in"
        )


def test_embedders_that_answer_nonsense(base: KnowledgeBase, meaning: Meaning) -> None:
    for answer, told in [
        ([], "meaning returned 0 vectors for 4 texts"),
        ([[0.0] * 12] * 4, "the embedder returned a vector that is all zeros or not finite"),
        ([[1.0] * 11 + [math.nan]] * 4, "the embedder returned a vector that is all zeros or not finite"),
        ([[math.inf] * 12] * 4, "the embedder returned a vector that is all zeros or not finite"),
    ]:
        meaning.embed = lambda texts, kind, answer=answer: answer  # type: ignore[method-assign, misc]
        assert base.sync("notes").notes == (f"some documents cannot be found by semantic search: {told}",)
    assert base.stats().embedded == 0


def test_without_an_embedder(store: Path, listed: Listed) -> None:
    with KnowledgeBase(store, sources={"notes": listed}) as base:
        base.sync("notes")
        told = (
            "semantic search needs an embedder: set [knowledge.embeddings] with provider = "
            '"openai" (url and model of any compatible endpoint) or "local"'
        )
        with pytest.raises(UsageError) as caught:
            base.search("kitten", mode="semantic")
        assert str(caught.value) == told
        hits = base.search("kitten", mode="hybrid")
        assert ([hit.source_id for hit in hits], hits.notes) == (["pets/cats"], (f"keyword search only: {told}",))


def test_without_sqlite_vec(base: KnowledgeBase, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base.sync("notes")
    monkeypatch.setitem(sys.modules, "sqlite_vec", None)
    with pytest.raises(MissingExtra) as caught:
        base.search("feline", mode="semantic")
    assert str(caught.value) == (
        "semantic search needs the package 'sqlite-vec'; install it with: pip install 'moonbox[semantic]'"
    )
    hits = base.search("kitten", mode="hybrid")
    assert (hits.mode, len(hits), len(hits.notes)) == ("keyword", 1, 1)


def test_other_connections_get_nothing_of_the_extension(base: KnowledgeBase) -> None:
    base.sync("notes")
    base.search("feline", mode="semantic")
    other = sqlite3.connect(":memory:")
    with pytest.raises(sqlite3.OperationalError, match="no such function: vec_version"):
        other.execute("SELECT vec_version()")
    other.close()
    database = open_store(base.path, read_only=True)
    with database.reading(connect_with_vectors) as db:
        assert db.execute("SELECT vec_version()").fetchone()
    with database.reading() as db, pytest.raises(sqlite3.OperationalError, match="no such function"):
        db.execute("SELECT vec_version()")
    database.close()


def test_empty_queries(base: KnowledgeBase) -> None:
    base.sync("notes")
    with pytest.raises(UsageError, match=r"^semantic search needs some words to search for$"):
        base.search("  ", mode="semantic")
    assert base.search("  ", mode="hybrid") == []


@pytest.mark.parametrize(("candidates", "right"), [(3_000, 100), (200, 90)])
def test_the_nearest_documents_are_those_of_an_exact_ranking(
    store: Path, monkeypatch: pytest.MonkeyPatch, candidates: int, right: int
) -> None:
    monkeypatch.setattr(vectors, "CANDIDATES", candidates)
    chance = random.Random(7)
    centres = [[chance.gauss(0, 1) for _ in range(64)] for _ in range(20)]
    places = {f"doc{n}": [x + chance.gauss(0, 0.7) for x in chance.choice(centres)] for n in range(600)}
    queries = {f"query{n}": [x + chance.gauss(0, 0.7) for x in chance.choice(centres)] for n in range(10)}

    class Places:
        name = "places"

        def embed(self, texts: Sequence[str], kind: Literal["document", "query"]) -> list[list[float]]:
            return [{**places, **queries}[text] for text in texts]

    listed = Listed(*(item(name, name) for name in places))
    with KnowledgeBase(store, sources={"notes": listed}, embedder=Places()) as base:
        base.sync("notes")
        same = 0
        for query, vector in queries.items():
            near = {name: cosine(place, vector) for name, place in places.items()}
            exact = sorted(near, key=lambda name: -near[name])[:10]
            same += len(set(exact) & set(found(base, query, mode="semantic", limit=10)))
    assert same >= right - 2  # two neighbours may change places where a byte is too coarse


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    dot = sum(a * b for a, b in zip(one, other, strict=True))
    return dot / math.sqrt(sum(a * a for a in one) * sum(b * b for b in other))
