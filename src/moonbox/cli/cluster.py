"""The command `moonbox cluster`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from moonbox.cli.options import ConfigFile, Json  # noqa: TC001 - read at run time by Typer
from moonbox.cli.output import columns_table, console, print_json

app = typer.Typer(name="cluster", help="Show the nodes of a cluster and what they do.", no_args_is_help=True)


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
    from moonbox.cluster.membership import cluster_status
    from moonbox.config import Config
    from moonbox.config.sections import ClusterSettings

    found = Config.load(config) if address is None else Config()
    result = cluster_status(address or found.read(ClusterSettings, "cluster").address or "auto")
    if as_json:
        print_json(result)
        return
    nodes = [
        {**node, "node": node["node"][:8], "free memory": f"{node.get('free_memory', 0) / 2**30:.1f} GiB"}
        for node in result["nodes"]
    ]
    ends = [{"front end": each["name"], **each["repls"], **each["workers"]} for each in result["front_ends"]]
    _print_table(nodes, "node", "address", "workers", "room", "free memory", "version", "problem")
    _print_table(ends, "front end", "awake", "asleep", "running", "waiting")


def _print_table(rows: list[dict[str, Any]], *columns: str) -> None:
    console().print(columns_table(columns, [[str(row.get(column, "–")) for column in columns] for row in rows]))
