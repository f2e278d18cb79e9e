"""Stories with large intermediate results, and one with none: tools, a question, the calls, and a script."""

from __future__ import annotations

from tokens.stories import documents, expenses, letters, logs, lookup
from tokens.stories.story import Story

__all__ = ["STORIES", "Story"]

STORIES = (expenses.STORY, logs.STORY, documents.STORY, letters.STORY, lookup.STORY)
