"""The job for GitLab CI: what it leaves for the merge request."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.platforms import a_broken_platform, a_platform
from tests.cli.runs import REPOSITORY, Run, run
from tests.integrations.scripts import fits_schema, put_gpuplan, shell

TEMPLATE: dict[str, Any] = yaml.safe_load((REPOSITORY / "integrations/gitlab/gpuplan.yml").read_text(encoding="utf-8"))
JOB = TEMPLATE["gpuplan"]

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")


def job(project: Path, **variables: str) -> Run:
    """Run the job's scripts one after the other in one shell, as the runner does."""
    script = "".join(f"{line}\n" for line in (*JOB["before_script"], *JOB["script"]))
    bin_ = put_gpuplan(project.parent / "bin")
    return shell(["bash", "-eo", "pipefail", "-c", script], project, {**TEMPLATE["variables"], **variables}, path=bin_)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return tmp_path / "project"


def test_it_is_what_gitlab_calls_a_pipeline() -> None:
    done = fits_schema(REPOSITORY / "integrations/gitlab/gpuplan.yml", "vendor.gitlab-ci")

    assert done.code == 0, done.out


def test_every_report_that_is_promised_is_written(project: Path) -> None:
    done = job(a_broken_platform(project))

    reports = JOB["artifacts"]["reports"]
    [issue] = json.loads((project / reports["codequality"]).read_text())
    assert done.code == 1
    assert issue["location"] == {"path": "policies/tenant.yaml", "lines": {"begin": 10, "end": 10}}
    assert "<testsuites" in (project / reports["junit"]).read_text()
    assert "error | GPU101" in (project / JOB["artifacts"]["paths"][0]).read_text()
    assert JOB["artifacts"]["when"] == "always"


def test_a_clean_platform_passes(project: Path) -> None:
    assert run("build", "-q", cwd=a_platform(project)).code == 0
    assert job(project).code == 0


def test_files_are_named_from_the_project(project: Path) -> None:
    a_broken_platform(project / "platform")

    job(project, GPUPLAN_DIRECTORY="platform")

    [issue] = json.loads((project / "gl-code-quality-report.json").read_text())
    assert issue["location"]["path"] == "platform/policies/tenant.yaml"


def test_one_cluster_without_its_output_can_be_judged(project: Path) -> None:
    a_platform(project, "dev", "prod")

    assert job(project, GPUPLAN_CHECK_OUT="false", GPUPLAN_CLUSTERS="dev prod").code == 0


def test_no_variable_is_run(project: Path) -> None:
    done = job(a_platform(project), GPUPLAN_CLUSTERS="$(touch pwned) d*", GPUPLAN_DIRECTORY="$(touch pwned)")

    assert done.code == 2
    assert not list(project.parent.rglob("pwned"))


def test_a_clusters_name_is_no_pattern(project: Path) -> None:
    (a_platform(project) / "dev").mkdir()

    assert job(project, GPUPLAN_CHECK_OUT="false", GPUPLAN_CLUSTERS="d*").code == 2
