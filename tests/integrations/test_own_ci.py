"""This repository's own workflow and pipeline: both run what anybody can run, and are given no more than they need."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest
import yaml

from tests.cli.runs import REPOSITORY
from tests.integrations.scripts import fits_schema

GITHUB = REPOSITORY / ".github/workflows/ci.yml"
GITLAB = REPOSITORY / ".gitlab-ci.yml"
WORKFLOW: dict[str, Any] = yaml.safe_load(GITHUB.read_text(encoding="utf-8"))
PIPELINE: dict[str, Any] = yaml.safe_load(GITLAB.read_text(encoding="utf-8"))
STEPS = [step for job in WORKFLOW["jobs"].values() for step in job["steps"]]
_PINNED = re.compile(r"uses: ([\w-]+/[\w-]+)@([0-9a-f]{40}) # (v\d+\.\d+\.\d+)$", re.MULTILINE)


def test_it_is_what_github_calls_a_workflow() -> None:
    done = fits_schema(GITHUB, "vendor.github-workflows")

    assert done.code == 0, done.out


def test_it_is_what_gitlab_calls_a_pipeline() -> None:
    done = fits_schema(GITLAB, "vendor.gitlab-ci")

    assert done.code == 0, done.out


def test_both_run_what_anybody_can_run() -> None:
    assert {"run": ".ci/run"} in WORKFLOW["jobs"]["all"]["steps"]
    assert PIPELINE["all"]["script"] == [".ci/run"]
    assert (REPOSITORY / ".ci/run").stat().st_mode & 0o100


def test_a_strangers_request_gets_nothing_worth_stealing() -> None:
    assert WORKFLOW["permissions"] == {"contents": "read"}
    assert not any("permissions" in job for job in WORKFLOW["jobs"].values())
    assert "secrets." not in GITHUB.read_text(encoding="utf-8")
    assert "\non:\n  pull_request:\n  push:\n    branches: [main]\n" in GITHUB.read_text(encoding="utf-8")
    checkouts = [step for step in STEPS if step.get("uses", "").startswith("actions/checkout@")]
    assert {step["with"]["persist-credentials"] for step in checkouts} == {False}


def test_actions_are_pinned() -> None:
    used = [step["uses"] for step in STEPS if "uses" in step]

    assert [f"{name}@{commit}" for name, commit, _ in _PINNED.findall(GITHUB.read_text(encoding="utf-8"))] == used


@pytest.mark.parametrize("file", ["action.yml", "docs/how-to/run-in-ci.md"])
def test_the_same_action_is_the_same_commit_everywhere(file: str) -> None:
    here, there = (
        set(_PINNED.findall(text)) for text in (GITHUB.read_text("utf-8"), (REPOSITORY / file).read_text("utf-8"))
    )

    shared = {name for name, _, _ in here} & {name for name, _, _ in there}
    assert shared
    assert {pin for pin in here if pin[0] in shared} == {pin for pin in there if pin[0] in shared}


def test_every_python_that_is_promised_is_tested() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    promised = {match[1] for item in project["classifiers"] if (match := re.search(r":: (3\.\d+)$", item))}

    [lowest] = (
        step["with"]["python-version"] for step in STEPS if step.get("with", {}).get("python-version", "")[:2] == "3."
    )
    assert {lowest, *WORKFLOW["jobs"]["python"]["strategy"]["matrix"]["python"]} == promised
    assert {lowest, *PIPELINE["python"]["parallel"]["matrix"][0]["PYTHON"]} == promised
