"""The forge's workflows: they parse, and the release publishes what it should, with the rights that it needs."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from .environments import ROOT, project

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def read(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / name).read_text("utf-8"))
    return loaded


def steps(job: dict[str, Any]) -> str:
    return yaml.safe_dump(job["steps"])


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_parse_and_ask_for_little(path: Any) -> None:
    workflow = read(path.name)
    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        assert job["timeout-minutes"] <= 120, name
        assert [step for step in job["steps"] if ("uses" in step) == ("run" in step)] == [], name
        assert [step for step in job["steps"] if "uses" in step and "@" not in step["uses"]] == [], name
        assert set(job.get("needs", [])) <= set(workflow["jobs"]), name


def test_every_target_of_make_that_a_workflow_calls_is_there() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    runs = [
        step["run"]
        for path in WORKFLOWS
        for job in read(path.name)["jobs"].values()
        for step in job["steps"]
        if "run" in step
    ]
    called = {word for run in runs for line in re.findall(r"^make (.+)$", run, re.MULTILINE) for word in line.split()}
    targets = {target for target in called if "=" not in target}
    assert {"test", "docs", "dist"} <= targets
    assert [target for target in targets if f"\n{target}:" not in makefile] == []


def test_wheels_for_both_architectures_and_both_kinds_of_libc() -> None:
    jobs = read("release.yml")["jobs"]
    runners = {entry["runner"]: entry["arch"] for entry in jobs["wheels"]["strategy"]["matrix"]["include"]}
    assert runners == {"ubuntu-24.04": "x86_64", "ubuntu-24.04-arm": "aarch64"}
    assert "pypa/cibuildwheel@" in steps(jobs["wheels"])
    settings = project()["tool"]["cibuildwheel"]
    versions = [line.rpartition(" ")[2] for line in project()["project"]["classifiers"] if "Python :: 3." in line]
    assert settings["build"] == [
        f"cp{version.replace('.', '')}-{libc}_*" for version in versions for libc in ("manylinux", "musllinux")
    ]
    assert "tests/release/smoke.py" in settings["test-command"]
    macs = jobs["macos"]["strategy"]["matrix"]["runner"]
    assert macs == ["macos-15", "macos-15-intel"]
    assert "tests/release/smoke.py" in steps(jobs["macos"])


def test_publishing_needs_no_secret() -> None:
    jobs = read("release.yml")["jobs"]
    for name in ("pypi", "npm"):
        assert jobs[name]["permissions"]["id-token"] == "write", name
        assert jobs[name]["environment"] == name
        assert {"sdist", "wheels", "macos"} <= set(jobs[name]["needs"])
    assert "pypa/gh-action-pypi-publish@" in steps(jobs["pypi"])
    assert "npm publish" in steps(jobs["npm"])
    assert 'npm pkg set homepage="$address#readme" repository.type=git' in steps(jobs["sdist"])
    assert "secrets." not in (ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8")
    others = [name for name, job in jobs.items() if "id-token" in job.get("permissions", {})]
    assert others == ["pypi", "npm"]
