"""Trust: which projects a person has agreed to, and what in a configuration needs that agreement.

A configuration starts programs, sends variables of the environment to servers, and grants files to scripts. It may come
with a folder that somebody else made. So the parts that do such things count only once a person has said so; the
agreement is kept with a hash of those parts, and a changed part asks again.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moonbox.audit.sinks import default_path
from moonbox.errors import ConfigError
from moonbox.files import write_private_file
from moonbox.net.addresses import is_loopback

if TYPE_CHECKING:
    from moonbox.config import Config

_SECTIONS = ("audit", "cluster", "knowledge", "mcp", "openapi", "sandbox", "serve", "sql", "tools")


def powers(config: Config) -> tuple[str, ...]:
    """What the configuration would do that a person must have agreed to, one line each; empty for a harmless one."""
    return tuple(_powers(config.written, config.folder))


def trust_hash(config: Config) -> str:
    """A hash of the parts that need agreement, as they are written: values of variables do not count."""
    parts = {name: config.written.get(name) for name in _SECTIONS}
    # Configurations that were trusted before these sections existed do not have them.
    parts |= {name: config.written[name] for name in ("journal", "llm") if name in config.written}
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def _powers(data: Mapping[str, Any], folder: Path) -> Iterator[str]:
    yield from _servers(data)
    yield from _sources(data, folder)
    yield from _scripts(_table(data.get("tools")), folder)
    yield from _knowledge(_table(data.get("knowledge")))
    if llm := _table(data.get("llm")):
        place = llm.get("url") or llm.get("provider")
        yield f"send prompts of scripts to {place} (the model {llm.get('model', '')}){_variables(llm)}"
    yield from _records(data, folder)
    if cluster := _table(data.get("cluster")).get("address"):
        yield f"run scripts, with the data that they get, on the cluster {cluster}"
    if isinstance(url := _table(data.get("journal")).get("url"), str):
        yield f"write scripts, arguments and results to the database {_without_password(url)}"
    serve = _table(data.get("serve"))
    if not is_loopback(host := str(serve.get("host", "localhost"))):
        yield f"accept requests of other machines on {host}"
    if others := [*_texts(serve.get("origins")), *_texts(serve.get("hosts"))]:
        yield f"let pages of {', '.join(others)} use the server"
    if _table(data.get("sandbox")).get("isolation") == "inline":
        yield "run scripts without isolation"


def _servers(data: Mapping[str, Any]) -> Iterator[str]:
    for name, server in _table(_table(data.get("mcp")).get("servers")).items():
        table = _table(server)
        if "command" in table:
            words = " ".join([str(table["command"]), *_texts(table.get("args"))])
            yield f"start the program `{words}` (the MCP server {name}){_variables(table)}"
        else:
            yield f"connect to {table.get('url')} (the MCP server {name}){_variables(table)}"


def _sources(data: Mapping[str, Any], folder: Path) -> Iterator[str]:
    """Of specifications and databases."""
    for name, api in _table(data.get("openapi")).items():
        table = _table(api)
        spec, whose = str(table.get("spec")), f"(the OpenAPI specification {name})"
        if _may_leave(folder, spec):
            yield f"read {_without_password(spec)} {whose}"
        yield f"send requests to {table.get('base_url') or f'the server that {spec} names'} {whose}{_variables(table)}"
        if token_url := _table(table.get("auth")).get("token_url"):
            yield f"send credentials to {token_url} {whose}"
    for name, database in _table(data.get("sql")).items():
        table = _table(database)
        deed = "read and change" if table.get("execute") else "read"
        yield f"{deed} the database {_without_password(str(table.get('url')))} (the SQL source {name})"
        if folders := _texts(table.get("folders")):
            yield f"read the files in {', '.join(folders)} (the SQL source {name})"


def _scripts(tools: Mapping[str, Any], folder: Path) -> Iterator[str]:
    """Of Python tools and tool scripts."""
    for reference in _texts(tools.get("python")):
        yield f"run the Python code of {reference}"
    if isinstance(saved := tools.get("saved"), str):
        who = " and let a model add to them, with approval" if tools.get("model_saves") else ""
        yield f"let the scripts in {saved} call the tools of the project{who}"
    for outside in _script_places(tools, folder):
        yield f"read the tool scripts in {outside}"
    for name, script in _table(tools.get("script")).items():
        if granted := _granted(_table(script)):
            yield f"give the tool script {name}: {granted}"


def _knowledge(knowledge: Mapping[str, Any]) -> Iterator[str]:
    for name, source in _table(knowledge.get("sources")).items():
        table = _table(source)
        places = [table.get("path"), *_texts(table.get("urls")), *_texts(table.get("sitemaps"))]
        where = ", ".join(place for place in places if isinstance(place, str))
        yield f"read the source {name} ({table.get('connector', 'unknown')}){f': {where}' if where else ''}"
        if granted := _granted(table):
            yield f"give the script of the source {name}: {granted}"
    embeddings = _table(knowledge.get("embeddings"))
    if embeddings and embeddings.get("provider") != "local":
        place = embeddings.get("url", "an embedding service")
        yield f"send texts of the knowledge base to {place}{_variables(embeddings)}"


def _records(data: Mapping[str, Any], folder: Path) -> Iterator[str]:
    """Of files that are written, and cut."""
    audit = _table(data.get("audit"))
    if bounds := [key for key in ("max_bytes", "max_runs", "max_days") if audit.get(key) and not audit.get("path")]:
        yield f"delete old runs from your own audit trail ({', '.join(f'{key} = {audit[key]}' for key in bounds)})"
    for what, path in (
        ("audit trail", audit.get("path")),
        ("journal", _table(data.get("journal")).get("path")),
        ("knowledge base", _table(data.get("knowledge")).get("path")),
    ):
        if isinstance(path, str) and _may_leave(folder, path):
            yield f"write the {what} to {path}"


def _script_places(tools: Mapping[str, Any], folder: Path) -> Iterator[str]:
    """The tool scripts, their examples, and folders of them that are outside of the project's folder, or may be."""
    scripts = _table(tools.get("script")).items()
    places = [str(_table(script).get("path") or f"{name}.lua") for name, script in scripts]
    places += [f"{os.path.splitext(path)[0]}.examples.json" for path in places]  # noqa: PTH122 - stays as it is written
    for inside in (*_texts(tools.get("folders")), *_texts([tools.get("saved")])):
        places.append(inside)
        if not _may_leave(folder, inside):  # a file in it may be a link
            files = [file for kind in ("*.lua", "*.examples.json") for file in sorted((folder / inside).glob(kind))]
            places += [str(file.relative_to(folder)) for file in files]
    yield from (place for place in dict.fromkeys(places) if _may_leave(folder, place))


def _variables(table: Mapping[str, Any]) -> str:
    """The environment variables whose values a server gets."""
    named = [f"${{{table['key_env']}}}"] if "key_env" in table else []
    names = re.findall(r"(?<!\$)\$\{(\w+)", json.dumps([table, *named], default=str))
    return f", with the variables {', '.join(dict.fromkeys(names))}" if names else ""


def _without_password(url: str) -> str:
    return re.sub(r"(?<=://)[^/?#]*@", "", url)


def _granted(script: Mapping[str, Any]) -> str:
    keys = ("http", "env", "secrets", "read", "write", "tools")
    return ", ".join(f"{key} {script[key]}" for key in keys if script.get(key))


def _may_leave(folder: Path, path: str) -> bool:
    """Whether a path may be outside of the project's folder: as it is written, or because a link leads there."""
    place = path.removeprefix("sqlite:").removeprefix("jsonl:")
    if place.startswith(("/", "~")) or "${" in place or "\0" in place or "://" in place or ".." in Path(place).parts:
        return True
    return not Path(os.path.realpath(folder / place)).is_relative_to(folder)


def _texts(value: Any) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def trusts_all() -> bool:
    """Whether the environment says, for CI, that every configuration is trusted."""
    return os.environ.get("MOONBOX_TRUST") == "1"


@dataclass(frozen=True, slots=True)
class TrustStore:
    """The file that holds the agreements, by the resolved path of each configuration."""

    path: Path

    @classmethod
    def default(cls) -> TrustStore:
        """Below $MOONBOX_HOME, or else in the user's folder for state."""
        base = default_path().parent
        return cls((base / "state" if os.environ.get("MOONBOX_HOME") else base) / "trust.json")

    def is_trusted(self, config: Config) -> bool:
        """Whether a person has agreed to this configuration as it is now, or it needs no agreement."""
        if config.path is None or not powers(config):
            return True
        return self.entries().get(_key(config.path)) == trust_hash(config)

    def knows(self, path: Path) -> bool:
        """Whether a person has agreed to this configuration at some time."""
        return _key(path) in self.entries()

    def trust(self, config: Config) -> None:
        if config.path is not None:
            self._write({**self.entries(), _key(config.path): trust_hash(config)})

    def revoke(self, path: Path) -> bool:
        """Revoke an agreement. Returns whether there was one."""
        entries = self.entries()
        if entries.pop(_key(path), None) is None:
            return False
        self._write(entries)
        return True

    def entries(self) -> dict[str, str]:
        """The hash for each path; a damaged file holds no agreement."""
        try:
            data = json.loads(self.path.read_bytes())
        except (FileNotFoundError, ValueError, RecursionError):
            return {}
        except OSError as problem:
            raise ConfigError(f"'{self.path}' cannot be read: {problem.strerror}") from None
        entries = data.get("trusted") if isinstance(data, dict) else None
        if not isinstance(entries, dict):
            return {}
        return {path: hash for path, hash in entries.items() if isinstance(hash, str)}

    def _write(self, entries: Mapping[str, str]) -> None:
        text = json.dumps({"version": 1, "trusted": dict(sorted(entries.items()))}, indent=2) + "\n"
        try:
            write_private_file(self.path, text.encode())
        except OSError as problem:
            raise ConfigError(f"{self.path} cannot be written: {problem}") from None


def _key(path: Path) -> str:
    return os.path.realpath(path)
