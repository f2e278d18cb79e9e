"""The commands `moonbox sync`, `search`, `get`, `sources` and `stats`."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from moonbox.cli.options import ConfigFile, Json, option
from moonbox.cli.output import are_to_show, columns_table, console, print_json
from moonbox.cli.trust import Trust, trusted_config
from moonbox.config import FILE_NAME
from moonbox.errors import ConfigError, UsageError
from moonbox.wording import counted, noun, seconds, size, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from rich.text import Text

    from moonbox.knowledge.base import KnowledgeBase
    from moonbox.knowledge.config import KnowledgeConfig
    from moonbox.knowledge.records import Hits, Progress, SyncReport

SHOWN_PROBLEMS = 10
MARKS = ("\ue000", "\ue001")  # characters for private use, which do not occur in ordinary text

_NO_SOURCE = "no sources are configured; add a table [knowledge.sources.<name>] to the configuration"


def sync(
    names: Annotated[list[str] | None, typer.Argument(help="Only these sources.", metavar="[SOURCE]...")] = None,
    config: ConfigFile = None,
    wait: Annotated[float, typer.Option(help="Seconds to wait for another sync of the same source.")] = 0.0,
    prune: Annotated[bool, typer.Option("--prune", help="Remove sources that are no longer configured.")] = False,
    as_json: Json = False,
    trust: Trust = False,
) -> None:
    """Bring the knowledge base up to date with its sources."""
    settings = _configured(config, trust=trust)
    reports = []
    try:
        with _opened(settings, read_only=False) as base:
            if prune:
                for info in base.sources():
                    if not info.configured:
                        count = counted(base.forget(info.name, wait=wait), "document")
                        typer.echo(f"{visible(info.name)}: removed with {count}", err=True)
            for name in names or list(settings.sources):
                with _progress_bar(name) as progress:
                    report = base.sync(name, progress=progress, wait=wait)
                reports.append(report)
                if not as_json:
                    _print_report(report)
    except KeyboardInterrupt:
        typer.echo("interrupted; the next sync continues from here", err=True)
        raise typer.Exit(130) from None
    if as_json:
        print_json([report.to_dict() for report in reports])
    elif not reports:
        typer.echo(_NO_SOURCE)
    if not all(report.ok for report in reports):
        raise typer.Exit(1)


def search(
    words: Annotated[list[str], typer.Argument(help='Words, "phrases", -exclusions, pre*.', metavar="QUERY...")],
    config: ConfigFile = None,
    mode: Annotated[
        Literal["keyword", "semantic", "hybrid"],
        typer.Option("--mode", "-m", metavar="MODE", help="keyword, semantic or hybrid."),
    ] = "keyword",
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="The most documents to show.")] = 12,
    source: Annotated[list[str] | None, option("--source", "-s", help="Only this source.")] = None,
    as_json: Json = False,
) -> None:
    """Search the documents."""
    if all(word.startswith("-") for word in words):
        raise UsageError("name words to find, too, beside the words to leave out")
    with _opened(_configured(config)) as base:
        query = " ".join(words)
        if as_json:
            print_json([hit.to_dict() for hit in base.search(query, mode, limit, source)])
            return
        hits = base.search(query, mode, limit, source, marks=MARKS)
        for note in hits.notes:
            typer.echo(f"note: {visible(note)}", err=True)
        if hits:
            _print_hits(hits)
        else:
            typer.echo("nothing found")


def get(
    id: Annotated[str, typer.Argument(help="The id from a search: source:source_id.", metavar="ID")],
    config: ConfigFile = None,
    as_json: Json = False,
) -> None:
    """Show one document."""
    with _opened(_configured(config)) as base:
        document = base.get(id)
        if as_json:
            print_json(document.to_dict())
            return
        about = (document.source_url, document.author, document.updated_at)
        typer.echo(visible(f"{document.title}\n{document.id}"))
        typer.echo(visible(" · ".join(filter(None, about))) + "\n")
        typer.echo(visible(document.body))


def sources(config: ConfigFile = None, as_json: Json = False) -> None:
    """List the sources and their state."""
    from moonbox.knowledge.base import never_synchronised

    settings = _configured(config)
    if settings.path.exists():
        with _opened(settings) as base:
            infos = base.sources()
    else:
        infos = [never_synchronised(name) for name in sorted(settings.sources)]
    if not are_to_show(infos, _NO_SOURCE, as_json=as_json):
        return
    rows = []
    for info in infos:
        state = "not configured" if not info.configured else "healthy" if info.healthy else "see notes"
        notes = visible("\n".join(info.notes))
        rows.append((visible(info.name), state, f"{info.documents:,}", info.last_sync or "never", notes))
    names = ("source", "state", "documents", "last sync", "notes")
    console().print(columns_table(names, rows, right=("documents",), folded=("notes",)))


def stats(config: ConfigFile = None, as_json: Json = False) -> None:
    """Show the size of the knowledge base."""
    with _opened(_configured(config)) as base:
        figures = base.stats().to_dict()
    if as_json:
        print_json(figures)
        return
    figures["bytes"] = size(figures["bytes"])
    for name, value in figures.items():
        text = "none" if value is None else f"{value:,}" if isinstance(value, int) else visible(value)
        typer.echo(f"{name:<10}{text}")


def _configured(path: Path | None, *, trust: bool = False) -> KnowledgeConfig:
    from moonbox.project.sections import read_knowledge

    config = trusted_config(path, trust=trust)
    if config.path is None:
        raise ConfigError(f"no {FILE_NAME} in this folder or above; create one with `moonbox init`, or use --config")
    return read_knowledge(config)


def _opened(config: KnowledgeConfig, *, read_only: bool = True) -> KnowledgeBase:
    from moonbox.knowledge.base import KnowledgeBase

    return KnowledgeBase.from_config(config, read_only=read_only)


@contextlib.contextmanager
def _progress_bar(name: str) -> Iterator[Callable[[Progress], None] | None]:
    """A bar with counts and rate on a terminal, nothing elsewhere."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name, total=None, rate="")

        def show(progress: Progress) -> None:
            rate = f"{progress.rate:,.0f}/s" if progress.rate else ""
            described = f"{name}: {PHASES[progress.phase]}"
            bar.update(task, description=described, completed=progress.done, total=progress.total, rate=rate)
            if progress.phase == "done":
                bar.refresh()  # show the last numbers even if the sync was faster than the display

        yield show


PHASES = {"scan": "reading", "remove": "removing", "embed": "embedding", "done": "done"}


def _print_report(report: SyncReport) -> None:
    changes = [
        f"{count:,} {what}"
        for count, what in (
            (report.added, "added"),
            (report.updated, "updated"),
            (report.removed, "removed"),
            (report.skipped, "skipped"),
            (report.problem_count, "could not be read"),
            (report.embedded, f"{noun(report.embedded, 'passage')} embedded"),
        )
        if count
    ]
    documents = counted(report.documents, "document")
    what = "failed" if report.error is not None else "no changes"
    typer.echo(f"{visible(report.source)}: {documents} ({', '.join(changes) or what}) in {seconds(report.seconds)}")
    for note in report.notes:
        typer.echo(f"  {visible(note)}", err=True)
    for problem in report.problems[:SHOWN_PROBLEMS]:
        typer.echo(f"  {visible(problem.source_id)}: {visible(problem.message)}", err=True)
    if report.problem_count > SHOWN_PROBLEMS:
        typer.echo(f"  and {report.problem_count - SHOWN_PROBLEMS:,} more", err=True)
    if report.error is not None:
        typer.echo(f"  the scan failed, and nothing was removed: {visible(report.error)}", err=True)


def _print_hits(hits: Hits) -> None:
    from rich.text import Text

    screen = console()
    for hit in hits:
        screen.print(Text(visible(hit.title, keep=""), style="bold"), soft_wrap=True)
        about = f"  {hit.id}" + (f" · {hit.updated_at[:10]}" if hit.updated_at else "")
        screen.print(Text(visible(about, keep=""), style="dim"), soft_wrap=True)
        screen.print(Text("  ").append_text(_highlighted(hit.snippet)), soft_wrap=True)


def _highlighted(snippet: str) -> Text:
    from rich.text import Text

    text = Text()
    for part in snippet.split(MARKS[0]):
        word, mark, rest = part.partition(MARKS[1])
        if mark:
            text.append(visible(word, keep=""), style="bold green")
        text.append(visible(rest if mark else word, keep=""))
    return text
