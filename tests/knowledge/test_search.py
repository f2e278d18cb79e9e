"""Keyword search over real stores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moonbox.errors import ArgumentError, ToolError, UsageError
from moonbox.knowledge import DocumentNotFound, KnowledgeBase
from moonbox.knowledge import search as search_module
from moonbox.knowledge.base import knowledge_tools
from tests.long import times

from .conftest import Listed, item

if TYPE_CHECKING:
    from pathlib import Path

    from moonbox.tools.tool import Tool

Filled = Callable[..., KnowledgeBase]
LONG = "Some filling words that stand between the passages of a longer document. " * 30


def found(base: KnowledgeBase, query: str, **more: Any) -> list[str]:
    return [hit.source_id for hit in base.search(query, **more)]


def test_a_row_has_everything(filled: Filled) -> None:
    base = filled(
        item(
            "setup.md",
            "# Setup\n\nInstall the running server with care.",
            title="Setting up",
            source_url="https://example.org/setup",
            updated_at="2024-05-06",
        )
    )
    (hit,) = base.search("servers run")
    assert hit.to_dict() == {
        "id": "notes:setup.md",
        "score": hit.score,
        "source": "notes",
        "source_id": "setup.md",
        "title": "Setting up",
        "snippet": "# Setup Install the **running** **server** with care.",
        "source_url": "https://example.org/setup",
        "updated_at": "2024-05-06T00:00:00Z",
    }
    assert hit.score > 0


def test_the_more_words_the_better(filled: Filled) -> None:
    base = filled(
        item("one", "cherry"),
        item("most", "apple banana"),
        item("all", "apple banana cherry"),
        item("none", "unrelated"),
    )
    assert found(base, "apple banana cherry") == ["all", "most", "one"]
    assert set(found(base, "apple banana missing")) == {"all", "most"}
    assert set(found(base, "cherry missing")) == {"all", "one"}
    assert found(base, "missing words only") == []


def test_a_full_match_does_not_hide_partial_ones(filled: Filled) -> None:
    """All words by chance in a long text, most of them in the page about the matter."""
    base = filled(
        item("changes", f"Use it. {LONG} With an agent, {LONG} or LangChain. {LONG}", title="Changes"),
        item("langchain", "Give the tools to LangChain: create an agent and call it.", title="LangChain"),
        item("other", "Something else altogether.", title="Other"),
    )
    assert found(base, "use with LangChain agent") == ["langchain", "changes"]


def test_phrases_in_quotes_are_required_while_there_are_any(filled: Filled) -> None:
    base = filled(item("phrase", "red green, and blue"), item("words", "green red blue blue blue"))
    assert found(base, '"red green" blue') == ["phrase"]
    assert found(base, '"blue red" blue') == ["words", "phrase"]


def test_words_in_different_chunks_of_a_document_count_as_together(filled: Filled) -> None:
    base = filled(
        item("half", f"apple {LONG} pear"), item("spread", f"apple {LONG} banana"), item("close", "apple banana")
    )
    assert found(base, "apple banana") == ["close", "spread", "half"]


def test_one_row_for_each_document_with_its_best_chunk(filled: Filled) -> None:
    base = filled(item("long", f"The zebra is mentioned. {LONG}\n\n# Zebra\n\nzebra zebra zebra stripes"))
    (hit,) = base.search("zebra")
    assert "stripes" in hit.snippet


def test_many_chunks_of_one_document_do_not_crowd_out_others(filled: Filled) -> None:
    crowd = "\n\n".join(f"# Zebra {number}\n\n" + "zebra " * 200 for number in range(120))
    others = [item(f"other{number}", f"one zebra among many words {LONG}") for number in range(5)]
    base = filled(item("crowd", crowd, title="Zebra"), *others)
    assert set(found(base, "zebra", limit=6)) == {"crowd", *(other.source_id for other in others)}


def test_titles_weigh_more_than_headings_and_headings_more_than_text(filled: Filled) -> None:
    base = filled(
        item("text", f"walrus {LONG}", title="One"),
        item("heading", f"# Walrus\n\n{LONG}", title="Two"),
        item("title", LONG, title="Walrus"),
    )
    assert found(base, "walrus") == ["title", "heading", "text"]


def test_phrases_prefixes_and_exclusions(filled: Filled) -> None:
    base = filled(
        item("ab", "red green blue"),
        item("ba", "green red blue"),
        item("draft", f"red green {LONG} draft"),
        item("code", "call get_user_name(id) at api.example.org/v1"),
    )
    assert set(found(base, '"red green"')) == {"ab", "draft"}
    assert found(base, '"red green" -draft') == ["ab"]
    assert found(base, '"red green" NOT draft') == ["ab"]
    assert set(found(base, "gree*")) == {"ab", "ba", "draft"}
    assert found(base, "get_user_name") == ["code"]
    assert found(base, "api.example.org") == ["code"]
    assert found(base, "user/get name") == ["code"]
    assert found(base, "-draft") == []


def test_alternatives_and_words_without_meaning(filled: Filled) -> None:
    base = filled(
        item("both", "apple pear"), item("apple", "apple"), item("how", "how do I"), item("dash", "well-known")
    )
    assert found(base, "apple OR cherry pear")[0] == "both"
    assert set(found(base, "apple OR cherry")) == set(found(base, "OR apple")) == {"both", "apple"}
    assert set(found(base, "how do I find the apple?")) == {"both", "apple"}
    assert found(base, "how") == ["how"]
    assert found(base, "ap*") == [], "a prefix has three letters"
    assert found(base, '"apple pe') == [] and found(base, '"apple pear') == ["both"]
    assert set(found(base, "apple - pear")) == {"both", "apple"}
    assert found(base, "well-known") == ["dash"]
    assert found(base, "x" * 1_000_000 + " apple") == [], "what is far too long is cut"
    assert set(found(base, "apple " * 10_000)) == {"both", "apple"}


def test_accents_case_and_endings_do_not_matter(filled: Filled) -> None:
    base = filled(item("a", "Das Café der Übungen; configured connections"))
    for query in ("cafe", "CAFÉ", "ubungen", "configuring connection"):
        assert found(base, query) == ["a"]


@pytest.mark.parametrize("query", ["東京", "京都大学", "서울", "ภาษา", "データ"])
def test_languages_without_spaces(filled: Filled, query: str) -> None:
    base = filled(
        item("cjk", "私は東京の京都大学で学びました。서울에서 ภาษาไทย データベース", title="東京の本"),
        item("b", "京東 学大"),
    )
    (hit,) = base.search(query)
    assert hit.source_id == "cjk"
    assert hit.title == "東京の本"
    assert "\u200b" not in hit.snippet + base.get(hit.id).body


def test_snippets_mark_what_was_found(filled: Filled) -> None:
    base = filled(item("a", f"{LONG} The needle is here. {LONG}"), item("b", LONG, title="Needle"))
    hits = base.search("needle", marks=("<", ">"))
    snippets = {hit.source_id: hit.snippet for hit in hits}
    assert "The <needle> is here." in snippets["a"]
    assert snippets["a"].startswith("…")
    assert snippets["b"].startswith("Some filling words")
    assert len(snippets["b"]) <= 241


def test_sources_limit_what_is_searched(store: Path) -> None:
    sources = {name: Listed(item(f"{name}.md", "shared words")) for name in ("one", "two", "three")}
    with KnowledgeBase(store, sources=sources) as base:
        for name in sources:
            base.sync(name)
        assert set(found(base, "shared")) == {"one.md", "two.md", "three.md"}
        assert found(base, "shared", source="two") == ["two.md"]
        assert set(found(base, "shared words", source=["one", "three"] * 1000)) == {"one.md", "three.md"}
        assert found(base, "shared -words", source="one") == []
        sources["one"].scanned = [item("one.md", f"shared {LONG} apart")]
        sources["two"].scanned = [item("two.md", "shared apart")]
        for name in ("one", "two"):
            base.sync(name)
        assert found(base, "shared apart", source="one") == ["one.md"]
        with pytest.raises(UsageError, match=r"^unknown source 'tow'; did you mean 'two'\?$"):
            base.search("shared", source="tow")


def test_common_words_are_ranked_by_title_and_what_came_last(filled: Filled, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_module, "MOST_RANKED", 30)
    monkeypatch.setattr(search_module, "NEWEST", 30)
    items = [item(f"doc{number:03}", "common words") for number in range(100)]
    base = filled(item("named", "something", title="Common"), item("rare", "unusual common"), *items)
    hits = found(base, "common", limit=5)
    assert hits[0] == "named"
    assert len(hits) == 5
    assert found(base, "unusual common")[:2] == ["rare", "named"]
    assert found(base, "unusual missing") == ["rare"]
    assert len(found(base, "common missing")) == 12


def test_wrong_arguments(filled: Filled) -> None:
    base = filled(item("a", "text"))
    bad: Any
    for bad, message in [
        ({"mode": "fuzzy"}, "mode must be one of keyword, semantic, hybrid, not 'fuzzy'"),
        ({"limit": 0}, "limit must be an integer from 1 to 200, not 0"),
        ({"limit": True}, "limit must be an integer from 1 to 200, not True"),
        ({"query": 7}, "query must be a string, not int"),
    ]:
        with pytest.raises(UsageError) as caught:
            base.search(**{"query": "x", **bad})
        assert str(caught.value) == message


def test_get_gives_the_document_back(filled: Filled) -> None:
    body = f"# Title\n\n{LONG}\n\n## Part\n\n{LONG * 3}東京{LONG}"
    base = filled(item("dir/doc.md", body, title="T", author="Ann", metadata={"tags": ["a"], "n": 1}))
    document = base.get(base.search("title")[0].id)
    assert document.body == body
    data = document.to_dict()
    assert data.pop("chunks")[-1]["heading"] == "Title > Part"
    assert data == {
        "id": "notes:dir/doc.md",
        "source": "notes",
        "source_id": "dir/doc.md",
        "title": "T",
        "source_url": None,
        "updated_at": None,
        "author": "Ann",
        "metadata": {"tags": ["a"], "n": 1},
        "body": body,
    }


@pytest.mark.parametrize("id", ["notes:other", "other:a", "1", "9" * 30, "nothing", "\ud800:x", "٣", "", ":", "notes:"])
def test_documents_that_are_not_there(filled: Filled, id: Any) -> None:
    with pytest.raises(DocumentNotFound) as caught:
        filled(item("a", "text")).get(id)
    assert str(caught.value) == f"unknown document {id!r}; search returns valid ids"


def test_ids_are_strings_that_stay(filled: Filled) -> None:
    base = filled(item("a:b/c.md", "some text"))
    (hit,) = base.search("text")
    assert hit.id == base.get(hit.id).id == "notes:a:b/c.md"
    assert base.sync("notes").documents == 1
    assert base.search("text")[0].id == hit.id
    with pytest.raises(UsageError, match=r'^id must be a string "source:source_id", not 1$'):
        base.get(1)  # type: ignore[arg-type]  # on purpose


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBase]:
    path = tmp_path_factory.mktemp("fuzz") / "kb.db"
    with KnowledgeBase(path, sources={"notes": Listed(item("a", "alpha beta"), item("b", "東京 gamma"))}) as base:
        base.sync("notes")
        yield base


SYNTAX = st.lists(
    st.sampled_from([
        '"', "'", "*", "-", "^", "(", ")", "{", "}", ":", "+", "NEAR", "NEAR(", "AND", "OR", "NOT", "title", "rowid",
        "alpha", "東", " ", "\x00", "\ud800", ",", "%", "_", "\\", ";--", "'; DROP TABLE documents", "\u200b", "é",
        "🙂", "a" * 500,
    ])
).map(" ".join)  # fmt: skip


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=times(300))
@given(st.one_of(st.text(), SYNTAX, SYNTAX.map(lambda text: text.replace(" ", ""))))
def test_no_query_is_an_error(small: KnowledgeBase, query: str) -> None:
    for hit in small.search(query):
        assert hit.source_id in ("a", "b")


@pytest.fixture
def tools(filled: Callable[..., KnowledgeBase]) -> dict[str, Tool]:
    base = filled(item("a.md", "# Zebra\n\nstripes", title="Animals"), item("b.md", "other"))
    return {tool.name: tool for tool in knowledge_tools(base)}


def call(tool: Tool, **arguments: Any) -> Any:
    result = tool.convert_result(tool.invoke(tool.bind(arguments)))
    assert tool.returns is not None
    jsonschema_rs.validate(tool.returns, result)
    return result


def test_what_the_tools_give(tools: dict[str, Tool]) -> None:
    (row,) = call(tools["search"], query="zebra", mode="keyword", limit=3, source="notes")
    assert (row["title"], row["snippet"]) == ("Animals", "# **Zebra** stripes")
    document = call(tools["get"], id=row["id"])
    assert document["chunks"] == [{"position": 0, "heading": "Zebra", "text": "# Zebra\n\nstripes"}]
    assert call(tools["get"], id="notes:b.md")["chunks"][0]["text"] == "other"
    (source,) = call(tools["sources"])
    assert (source["name"], source["documents"], source["healthy"]) == ("notes", 2, True)
    assert all(tool.hints.read_only for tool in tools.values())


def test_what_goes_wrong_is_told_to_the_script(tools: dict[str, Tool]) -> None:
    with pytest.raises(ArgumentError, match=r"^unknown source 'nots'; did you mean 'notes'\?$"):
        call(tools["search"], query="x", source="nots")
    with pytest.raises(ArgumentError, match=r"^semantic search needs an embedder"):
        call(tools["search"], query="x", mode="semantic")
    with pytest.raises(ToolError, match=r"^unknown document 'notes:99'; search returns valid ids$") as caught:
        call(tools["get"], id="notes:99")
    assert (caught.value.code, caught.value.retryable) == ("not_found", False)
    assert call(tools["search"], query='" OR (NEAR') == []
