"""The guides name what there is: inputs of the action, variables of the job, hooks, parameters of the plugin."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.runs import REPOSITORY
from tests.docs.pages import blocks_of
from tests.integrations.scripts import fits_schema

CI = REPOSITORY / "docs/how-to/run-in-ci.md"
PLUGIN = REPOSITORY / "docs/how-to/argocd-plugin.md"


def shown(page: Path) -> dict[str, str]:
    """The YAML files that a page shows, by name."""
    titled = [block for block in blocks_of(page) if block.language == "yaml" and "title" in block.options]
    return {block.options["title"]: block.text for block in titled}


def read(file: str) -> Any:
    return yaml.safe_load((REPOSITORY / file).read_text(encoding="utf-8"))


def test_every_input_of_the_action_is_described_with_its_default() -> None:
    rows = re.findall(r"^\| `([\w-]+)` \| (.+?) \|", CI.read_text(encoding="utf-8"), re.MULTILINE)
    inputs = read("action.yml")["inputs"]

    described = dict(rows)
    assert described.keys() == inputs.keys()
    defaults = {name: default.strip("`") for name, default in described.items() if default.startswith("`")}
    assert defaults == {name: item["default"] for name, item in inputs.items() if item["default"]}


@pytest.mark.parametrize("workflow", [name for name in shown(CI) if name.startswith(".github/")])
def test_workflows_are_what_github_calls_one(workflow: str, tmp_path: Path) -> None:
    (tmp_path / "workflow.yml").write_text(shown(CI)[workflow], encoding="utf-8")

    done = fits_schema(tmp_path / "workflow.yml", "vendor.github-workflows")

    assert done.code == 0, done.out


def test_variables_of_the_gitlab_job_are_named() -> None:
    variables = read("integrations/gitlab/gpuplan.yml")["variables"]

    assert set(re.findall(r"GPUPLAN_\w+", CI.read_text(encoding="utf-8"))) == variables.keys()
    assert yaml.safe_load(shown(CI)[".gitlab-ci.yml"])["include"][0]["file"] == "/integrations/gitlab/gpuplan.yml"


def test_the_hooks_shown_are_those_there_are() -> None:
    [repo] = yaml.safe_load(shown(CI)[".pre-commit-config.yaml"])["repos"]

    assert [hook["id"] for hook in repo["hooks"]] == [hook["id"] for hook in read(".pre-commit-hooks.yaml")]


def test_the_sidecar_for_openshift_is_the_same() -> None:
    [argo_cd] = [
        yaml.safe_load(block.text)
        for block in blocks_of(PLUGIN)
        if block.language == "yaml" and "kind: ArgoCD\n" in block.text
    ]
    [shown_there] = argo_cd["spec"]["repo"]["sidecarContainers"]
    [sidecar] = read("integrations/argocd-plugin/repo-server.yaml")["spec"]["template"]["spec"]["containers"]

    assert shown_there["command"] == sidecar["command"]
    assert shown_there["volumeMounts"] == sidecar["volumeMounts"]
    assert shown_there["securityContext"].items() <= sidecar["securityContext"].items()


def test_the_parameters_in_use_are_announced() -> None:
    announced = {
        item["name"] for item in read("integrations/argocd-plugin/plugin.yaml")["spec"]["parameters"]["static"]
    }
    blocks = [yaml.safe_load(block.text) for block in blocks_of(PLUGIN) if "kind: Application\n" in block.text]

    assert {item["name"] for block in blocks for item in block["spec"]["source"]["plugin"]["parameters"]} <= announced
