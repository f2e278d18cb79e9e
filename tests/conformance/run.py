"""Runs the shared cases in every host: python tests/conformance/run.py [--hosts node,deno,bun] [--groups lua,rhai] [-v]

With --write it writes the table of docs/javascript.md. With --results FILE hosts and cases can be run one by one: what
other runs have put into the file stays, and the table is made from all of it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from pathlib import Path

if not __package__:
    sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.conformance.cases import GROUPS, SharedCase, conformance_tools, shared_cases
from tests.conformance.hosts import HOSTS, open_host, why_missing

Results = dict[str, dict[str, dict[str, list[str]]]]
"""By host, then by group, then by case: what differs."""


def run_cases(hosts: list[str], cases: list[SharedCase], *, report: bool = False) -> Results:
    results: Results = defaultdict(lambda: defaultdict(dict))
    tools = conformance_tools()
    reference = open_host("process", tools)
    try:
        for name in hosts:
            host = reference if name == "process" else open_host(name, tools)
            try:
                for case in cases:
                    try:
                        differences = case.play(host, reference)
                    except RuntimeError as problem:
                        differences = [f"host: {problem}"]
                    results[name][case.group][case.stem] = differences
                    if report and differences:
                        print(f"{name:9} {case.name}: {'; '.join(differences)[:400]}", flush=True)
            finally:
                if host is not reference:
                    host.close()
    finally:
        reference.close()
    return results


def _kept(file: Path, results: Results) -> Results:
    """All results, those of this run over those of earlier ones."""
    before: Results = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    for name, groups in results.items():
        for group, cases in groups.items():
            before.setdefault(name, {}).setdefault(group, {}).update(cases)
    file.write_text(json.dumps(before), encoding="utf-8")
    return before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", default=",".join(HOSTS))
    parser.add_argument("--groups", default=",".join(GROUPS))
    parser.add_argument("--only", default="", help="a part of the names of cases")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--results", type=Path, default=None)
    parser.add_argument("-v", action="store_true")
    options = parser.parse_args()
    hosts = []
    for name in options.hosts.split(","):
        if missing := why_missing(name):
            print(f"{name}: left out: {missing}")
        else:
            hosts.append(name)
    cases = [case for case in shared_cases(tuple(options.groups.split(","))) if options.only in case.name]
    results = run_cases(hosts, cases, report=options.v)
    if options.results is not None:
        results = _kept(options.results, results)
    for name, groups in results.items():
        for group, found in groups.items():
            passed = sum(not differences for differences in found.values())
            print(f"{name:9} {group:11} {passed:4} of {len(found)}")
    if options.write:
        from tests.conformance.table import write_table

        write_table(results)


if __name__ == "__main__":
    main()
