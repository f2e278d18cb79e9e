"""The documents story: fourteen contracts read in full, for the few that match."""

from __future__ import annotations

import random
import re
from typing import Any

from moonbox import tool
from tokens.stories.story import HERE, Story

CONTRACTS = 14
PARAGRAPHS = 22
_CLAUSES = (
    "The supplier keeps records of all deliveries and shows them on request within five working days.",
    "Invoices are due thirty days after receipt; late payment bears interest at the statutory rate.",
    "Neither party is liable for delay caused by events that it could not foresee and could not prevent.",
    "Confidential information stays confidential for three years after the end of this agreement.",
    "Changes of this agreement are made in writing and signed by both parties.",
    "The customer names one person who answers questions and decides on behalf of the customer.",
    "Goods remain the property of the supplier until they have been paid in full.",
    "Disputes that cannot be settled within sixty days are brought before the courts of the supplier's seat.",
)


@tool(hints={"read_only": True})
def search_documents(query: str, kind: str = "any") -> list[dict[str, Any]]:
    """Documents that match, best first: id, title and kind."""
    return [{"id": f"C-{number}", "title": f"Supply agreement {number}", "kind": "contract"} for number in _numbers()]


@tool(hints={"read_only": True})
def read_document(id: str) -> dict[str, Any]:
    """A document's whole text."""
    number = int(id.removeprefix("C-"))
    chance = random.Random(number)
    days = chance.choice((30, 30, 30, 60, 90, 120))
    paragraphs = [chance.choice(_CLAUSES) for _ in range(PARAGRAPHS)]
    paragraphs.insert(
        chance.randrange(PARAGRAPHS), f"Either party may end this agreement with {days} days' notice in writing."
    )
    text = "\n\n".join(f"{place}. {paragraph}" for place, paragraph in enumerate(paragraphs, 1))
    return {"id": id, "title": f"Supply agreement {number}", "text": text}


def _numbers() -> range:
    return range(101, 101 + CONTRACTS)


def _answer(results: list[Any]) -> list[dict[str, Any]]:
    found = []
    for document in results[1:]:
        days = int(re.search(r"with (\d+) days' notice", document["text"])[1])  # type: ignore[index]
        if days > 60:
            found.append({"id": document["id"], "days": days})
    return found


STORY = Story(
    name="documents",
    title="documents: 14 contracts read in full, those with long notice",
    tools=(search_documents, read_document),
    question="Which of our supply agreements can be ended only with more than 60 days' notice?",
    calls=(
        ("search_documents", {"query": "supply agreement", "kind": "contract"}),
        *(("read_document", {"id": f"C-{number}"}) for number in _numbers()),
    ),
    answer=_answer,
    reply=lambda found: "; ".join(f"{item['id']} needs {item['days']} days' notice" for item in found) + ".",
    script=HERE / "documents.lua",
)
