"""Questions over our own documentation: the right page is among the first three."""

from __future__ import annotations


def test_questions_over_the_docs_find_their_pages() -> None:
    from search_recall import FIRST, QUESTIONS, ask_the_docs

    assert len(QUESTIONS) >= 15
    positions = ask_the_docs()
    late = {question: positions[question] for question in QUESTIONS if (positions[question] or 99) > FIRST}
    assert late == {}
