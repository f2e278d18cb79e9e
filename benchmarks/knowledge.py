"""How long the knowledge base takes: synchronising a folder of Markdown files, and searching it.

python benchmarks/knowledge.py [FILES]        10,000 files of 2 to 6 kB unless told otherwise
"""

from __future__ import annotations

import argparse
import itertools
import random
import statistics
import tempfile
import time
from pathlib import Path

from moonbox.knowledge import KnowledgeBase
from moonbox.knowledge.connectors.filesystem import Filesystem

SYLLABLES = (
    "con", "fig", "ser", "ver", "ta", "ble", "re", "quest", "pro", "cess", "lim", "it", "mem", "ory", "net", "work",
    "da", "in", "dex", "que", "ry", "sto", "hand", "ler", "ses", "sion", "tok", "en", "er", "ror", "ing", "ed", "ment",
    "ation", "al", "ly", "un", "de",
)  # fmt: skip
LITTLE_WORDS = (
    "the", "of", "and", "to", "in", "a", "is", "that", "for", "it", "as", "with", "on", "be", "this", "are", "by", "or",
    "from", "an", "at", "can", "not", "which", "when", "if", "use", "you", "will",
)  # fmt: skip
REPEATS = 30


class Writer:
    """Markdown of made-up words whose frequencies fall as those of a real language do."""

    def __init__(self, seed: int = 7) -> None:
        self.chance = random.Random(seed)
        made = ("".join(self.chance.choice(SYLLABLES) for _ in range(self.chance.randint(1, 4))) for _ in range(30_000))
        self.words = list(dict.fromkeys((*LITTLE_WORDS, *made)))
        self._weights = list(itertools.accumulate(1 / (rank + 2) for rank in range(len(self.words))))

    def some(self, count: int) -> list[str]:
        return self.chance.choices(self.words, cum_weights=self._weights, k=count)

    def document(self) -> str:
        blocks, size, wanted = [f"# {' '.join(self.some(4)).title()}\n"], 0, self.chance.randint(2_000, 6_000)
        while size < wanted:
            blocks.append(self._block())
            size += len(blocks[-1])
        return "\n".join(blocks)

    def _block(self) -> str:
        kind = self.chance.random()
        if kind < 0.18:
            return f"{self.chance.choice(('##', '##', '###'))} {' '.join(self.some(3)).title()}\n"
        if kind < 0.28:
            return "```python\n" + "\n".join("{} = {}({})".format(*self.some(3)) for _ in range(5)) + "\n```\n"
        if kind < 0.4:
            return "\n".join("- " + " ".join(self.some(8)) for _ in range(4)) + "\n"
        sentences = (" ".join(self.some(self.chance.randint(6, 18))) for _ in range(self.chance.randint(2, 6)))
        return " ".join(f"{sentence.capitalize()}." for sentence in sentences) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="?", type=int, default=10_000)
    files = parser.parse_args().files
    with tempfile.TemporaryDirectory(prefix="moonbox-bench-") as folder:
        root, writer = Path(folder) / "docs", Writer()
        size = make_files(root, files, writer)
        print(f"{files:,} Markdown files, {size / 1e6:.1f} MB")
        with KnowledgeBase(Path(folder) / "kb.db", sources={"docs": Filesystem(path=root)}) as base:
            time_sync(base, "first sync")
            time_sync(base, "sync without changes")
            for path in list(root.rglob("*.md"))[: files // 100]:
                path.write_text(writer.document())
            time_sync(base, "sync with 1 % changed")
            stats = base.stats()
            print(f"{stats.documents:,} documents in {stats.chunks:,} chunks, {stats.bytes / 1e6:.0f} MB on disk\n")
            for name, query in queries(writer.words):
                time_search(base, name, query)


def make_files(root: Path, count: int, writer: Writer) -> int:
    size = 0
    for number in range(count):
        path = root / f"{number % 100:02}" / f"doc{number:06}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        size += path.write_text(writer.document())
    return size


def time_sync(base: KnowledgeBase, name: str) -> None:
    started, worked = time.perf_counter(), time.process_time()
    report = base.sync("docs")
    took, worked = time.perf_counter() - started, time.process_time() - worked
    changes = f"{report.added:,} added, {report.updated:,} updated, {report.unchanged:,} unchanged"
    print(f"{name:24} {took:7.2f} s  ({worked:.2f} s of processor time; {changes})")


def queries(words: list[str]) -> list[tuple[str, str]]:
    return [
        ("a rare word", words[12_000]),
        ("a usual word", words[200]),
        ("two usual words", f"{words[60]} {words[300]}"),
        ("four usual words", " ".join(words[80:84])),
        ("a question", f"how do i {words[400]} the {words[700]} for {words[900]}"),
        ("words that never meet", " ".join(words[9_000:9_004])),
        ("a phrase", f'"{words[40]} {words[41]}"'),
        ("a beginning", "conf*"),
        ("an exclusion", f"{words[100]} -{words[101]}"),
        ("a word in every chunk", "the"),
    ]


def time_search(base: KnowledgeBase, name: str, query: str) -> None:
    times, worked = [], []
    for _ in range(REPEATS):
        started, began = time.perf_counter(), time.process_time()
        hits = base.search(query)
        worked.append((time.process_time() - began) * 1000)
        times.append((time.perf_counter() - started) * 1000)
    figures = f"{statistics.median(times):6.2f} ms median, {max(times):6.2f} ms worst"
    print(f"search: {name:24}{figures}  ({statistics.median(worked):.2f} ms of processor time; {len(hits)} hits)")


if __name__ == "__main__":
    main()
