"""The command `moonbox cluster`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from moonbox.cli.options import ConfigFile, Json  # noqa: TC001 - read at run time by Typer
from moonbox.cli.output import console, print_json

if TYPE_CHECKING:
    from collections.abc import Sequence

app = typer.Typer(name="cluster", help="Show the nodes of a cluster and what they do.", no_args_is_help=True)
_NODE = ("node", "address", "workers", "room", "front_ends", "free_memory", "version")
_FRONT_END = ("name", "repls", "asleep", "runs", "waiting")


@app.callback()
def group() -> None:
    """Show the nodes of a cluster and what they do."""


@app.command()
def status(
    address: Annotated[str | None, typer.Option(help="The cluster: auto, ray://host:port or host:port.")] = None,
    config: ConfigFile = None,
    as_json: Json = False,
) -> None:
    """Show nodes, workers, front ends, Repls, runs and queues.

    Without --address, the cluster is the one of [cluster] in moonbox.toml,
    or the one that this machine belongs to.
    """
    from moonbox.cluster.registry import cluster_status
    from moonbox.config import Config
    from moonbox.project.sections import read_cluster

    found = Config.load(config) if address is None else Config()
    result = cluster_status(address or read_cluster(found).address or "auto")
    if as_json:
        print_json(result)
        return
    screen = console()
    screen.print(_table(_NODE, [_node_row(node) for node in result["nodes"]]))
    screen.print(_table(_FRONT_END, result["front_ends"]))


def _node_row(node: dict[str, Any]) -> dict[str, Any]:
    memory = f"{node['free_memory'] / 2**30:.1f} GiB" if "free_memory" in node else node.get("problem", "")
    return {**node, "node": node["node"][:8], "free_memory": memory}


def _table(columns: Sequence[str], rows: Sequence[dict[str, Any]]) -> Any:
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column.replace("_", " "), no_wrap=True)
    for row in rows:
        table.add_row(*(str(row.get(column, "–")) for column in columns))
    return table
