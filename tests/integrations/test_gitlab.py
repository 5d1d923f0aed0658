"""The job for GitLab CI: what it leaves for the merge request."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from junitparser import JUnitXml

from tests.cli.platforms import POOL, a_broken_platform, a_platform, write
from tests.cli.runs import REPOSITORY, Run, run
from tests.git import a_repository, commit, git
from tests.integrations.scripts import fits_schema, put_gpuplan, shell

TEMPLATE: dict[str, Any] = yaml.safe_load((REPOSITORY / "integrations/gitlab/gpuplan.yml").read_text(encoding="utf-8"))
JOB = TEMPLATE["gpuplan"]
FILES = TEMPLATE["gpuplan-files"]
DIFF = TEMPLATE["gpuplan-diff"]
REPORT = TEMPLATE["gpuplan-report"]
JOBS = {name: part for name, part in TEMPLATE.items() if name != "variables"}
QUOTA = "{apiVersion: v1, kind: ResourceQuota, metadata: {name: gpus}, spec: {hard: {nvidia.com/gpu: 4}}}\n"

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")


SHELLS = {"bash": ("bash", "-eo", "pipefail"), "dash": ("dash", "-e"), "zsh": ("zsh", "-f", "-eo", "pipefail")}
"""What a runner may have for a shell, and how it starts it."""


def job(project: Path, which: dict[str, Any] = JOB, shell_: str = "bash", **variables: str) -> Run:
    """Run a job's scripts one after the other in one shell, as the runner does."""
    script = "".join(f"{line}\n" for line in (*which["before_script"], *which["script"]))
    bin_ = put_gpuplan(project.parent / "bin")
    known = {**TEMPLATE["variables"], **which.get("variables", {}), **variables}
    return shell([*SHELLS[shell_], "-c", script], project, known, path=bin_)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return tmp_path / "project"


def test_it_is_what_gitlab_calls_a_pipeline() -> None:
    done = fits_schema(REPOSITORY / "integrations/gitlab/gpuplan.yml", "vendor.gitlab-ci")

    assert done.code == 0, done.out


@pytest.mark.parametrize("name", JOBS)
def test_nothing_is_installed_by_its_name(project: Path, name: str) -> None:
    install = next(script for script in JOBS[name]["before_script"] if "pip install" in script)

    done = shell(["/bin/sh", "-c", install], a_platform(project), {**TEMPLATE["variables"], "PATH": "/nowhere"})

    assert done.code == 2
    assert done.err.startswith("set GPUPLAN_PACKAGE to an archive or a repository")


def test_every_report_that_is_promised_is_written(project: Path) -> None:
    done = job(a_broken_platform(project))

    reports = JOB["artifacts"]["reports"]
    [issue] = json.loads((project / reports["codequality"]).read_text())
    assert done.code == 1
    assert issue["location"] == {"path": "policies/tenant.yaml", "lines": {"begin": 10, "end": 10}}
    assert "<testsuites" in (project / reports["junit"]).read_text()
    assert "error | GPU101" in (project / JOB["artifacts"]["paths"][0]).read_text()
    assert JOB["artifacts"]["when"] == "always"


BAD = """\
apiVersion: gpuplan.dev/v1
kind: MigLayout
metadata: {name: one}
spec: {gpu: A100-80GB, instances: {3g.40gb: 3}}
---
apiVersion: gpuplan.dev/v1
kind: MigLayout
metadata: {name: two}
spec: {gpu: A100-80GB, instances: {3g.40gb: 3}}
---
apiVersion: gpuplan.dev/v1
kind: Workload
metadata: {name: first}
spec: {tenant: gone, pool: gone, image: "x:1", training: {}}
---
apiVersion: gpuplan.dev/v1
kind: Workload
metadata: {name: second}
spec: {tenant: gone, pool: gone, image: "x:1", training: {}}
"""


def failed_tests(project: Path) -> set[str]:
    """What GitLab tells tests of a job apart by: `key` in `lib/gitlab/ci/reports/test_case.rb`."""
    job(project, GPUPLAN_CHECK_OUT="false")
    xml = JUnitXml.fromfile(str(project / "gpuplan.junit.xml"))
    failed = [case for suite in xml for case in suite if case.result]
    keys = {f"gpuplan_{case.classname}_{case.name}" for case in failed}
    assert len(keys) == len(failed)
    return keys


def test_each_finding_is_a_test_that_fails_until_it_is_fixed(project: Path) -> None:
    write(a_platform(project) / "policies/bad.yaml", BAD)
    before = failed_tests(project)
    write(project / "policies/bad.yaml", f"# fixed\n{BAD.replace('{3g.40gb: 3}', '{3g.40gb: 2}', 1)}")

    after = failed_tests(project)

    assert len(before) == 6
    assert after < before
    [fixed] = before - after
    assert fixed.endswith("(MigLayout one spec.instances.3g.40gb)")


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


@pytest.mark.parametrize("name", SHELLS)
def test_any_shell_divides_clusters_and_takes_none_for_a_pattern(project: Path, name: str) -> None:
    if shutil.which(name) is None:
        pytest.skip(f"there is no {name}")
    (a_platform(project, "dev", "prod") / "dev").mkdir()

    assert job(project, shell_=name, GPUPLAN_CHECK_OUT="false", GPUPLAN_CLUSTERS="dev prod").code == 0
    assert job(project, shell_=name, GPUPLAN_CHECK_OUT="false", GPUPLAN_CLUSTERS="d*").code == 2


@pytest.mark.parametrize("which", [JOB, DIFF, REPORT], ids=["gpuplan", "gpuplan-diff", "gpuplan-report"])
def test_zsh_is_told_before_clusters_are_divided(which: dict[str, Any]) -> None:
    script = which["script"][-1]

    assert "emulate sh" in script.partition("for cluster in ")[0]


@pytest.mark.parametrize("value", ["True", "yes", ""])
def test_only_false_leaves_the_output_unjudged(project: Path, value: str) -> None:
    assert job(a_platform(project), GPUPLAN_CHECK_OUT=value).code == 1


def test_no_variable_is_run(project: Path) -> None:
    done = job(a_platform(project), GPUPLAN_CLUSTERS="$(touch pwned) d*", GPUPLAN_DIRECTORY="$(touch pwned)")

    assert done.code == 2
    assert not list(project.parent.rglob("pwned"))


def test_a_clusters_name_is_no_pattern(project: Path) -> None:
    (a_platform(project) / "dev").mkdir()

    assert job(project, GPUPLAN_CHECK_OUT="false", GPUPLAN_CLUSTERS="d*").code == 2


# --- Files without a platform ------------------------------------------------------------------------------------


def test_files_are_judged_as_they_are(project: Path) -> None:
    write(project / "manifests/quota.yaml", QUOTA)
    write(project / "good.yaml", QUOTA.replace("nvidia.com", "requests.nvidia.com"))

    done = job(project, FILES, GPUPLAN_CHECK_FILES="manifests good.yaml")

    reports = FILES["artifacts"]["reports"]
    [issue] = json.loads((project / reports["codequality"]).read_text())
    assert done.code == 1
    assert issue["location"]["path"] == "manifests/quota.yaml"
    assert "<testsuites" in (project / reports["junit"]).read_text()
    assert "error | GPU620" in (project / FILES["artifacts"]["paths"][0]).read_text()


@pytest.mark.parametrize("value", ["$(touch pwned)", "--output-format=json=x", "*", "gone.yaml"])
def test_no_file_that_is_named_is_run(project: Path, value: str) -> None:
    write(project / "good.yaml", QUOTA)

    assert job(project, FILES, GPUPLAN_CHECK_FILES=value).code == 2
    assert [path.name for path in project.iterdir()] == ["good.yaml"]


def test_each_job_is_there_only_if_there_is_something_to_judge() -> None:
    for which, variable in ((JOB, "GPUPLAN_DIRECTORY"), (FILES, "GPUPLAN_CHECK_FILES")):
        assert which["rules"][0] == {"if": f'${variable} == ""', "when": "never"}
    assert (TEMPLATE["variables"]["GPUPLAN_DIRECTORY"], TEMPLATE["variables"]["GPUPLAN_CHECK_FILES"]) == (".", "")


# --- What a merge request disturbs -------------------------------------------------------------------------------


def a_merge_request(project: Path) -> str:
    """A branch that shares GPUs otherwise; the commit that it starts from."""
    base = commit(a_platform(a_repository(project)))
    write(project / "policies/pool.yaml", POOL.replace("replicas: 3", "replicas: 4"))
    commit(project)
    return base


def test_what_it_disturbs_is_an_artifact(project: Path) -> None:
    done = job(project, DIFF, CI_MERGE_REQUEST_DIFF_BASE_SHA=a_merge_request(project))

    assert done.code == 0
    assert first_line(done.out) == "plugin-restart: 2 changes in 1 cluster, 2 nodes touched"
    page, report = ((project / path).read_text() for path in DIFF["artifacts"]["paths"])
    assert page.startswith("## gpuplan: plugin-restart\n")
    assert json.loads(report)["class"] == "plugin-restart"
    assert DIFF["artifacts"]["when"] == "always"


def test_a_merged_result_is_compared_with_the_branch_that_it_goes_to(project: Path) -> None:
    a_merge_request(project)
    head = git(project, "rev-parse", "HEAD")

    done = job(project, DIFF, CI_MERGE_REQUEST_TARGET_BRANCH_SHA=head, CI_MERGE_REQUEST_DIFF_BASE_SHA="0" * 40)

    assert (done.code, first_line(done.out)) == (0, "none: nothing that is applied differs")


@pytest.mark.parametrize(("fail_on", "code"), [("", 0), ("plugin-restart", 1), ("repartition", 0), ("x", 2)])
def test_it_fails_from_a_class_on(project: Path, fail_on: str, code: int) -> None:
    base = a_merge_request(project)

    assert job(project, DIFF, CI_MERGE_REQUEST_DIFF_BASE_SHA=base, GPUPLAN_FAIL_ON=fail_on).code == code


def test_without_its_base_it_is_trouble(project: Path) -> None:
    a_merge_request(project)

    assert job(project, DIFF, CI_MERGE_REQUEST_DIFF_BASE_SHA="0" * 40).code == 2
    assert DIFF["variables"]["GIT_DEPTH"] == "0"


def test_with_a_token_it_is_posted(project: Path) -> None:
    done = job(
        project,
        DIFF,
        CI_MERGE_REQUEST_DIFF_BASE_SHA=a_merge_request(project),
        CI_API_V4_URL="http://127.0.0.1:1",
        CI_MERGE_REQUEST_PROJECT_ID="1",
        CI_MERGE_REQUEST_IID="2",
        GPUPLAN_TOKEN="secret",
    )

    assert done.code == 0
    assert "\nno comment was posted: " in done.out
    assert "secret" not in done.out + done.err


def test_what_posts_it_is_the_same_as_for_github() -> None:
    script = DIFF["script"][-1]
    inside = script[script.index("<<'PYTHON'\n") : script.index("\nPYTHON\n")].partition("\n")[2]

    assert f"{inside}\n" == (REPOSITORY / "integrations/comment.py").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", JOBS)
def test_every_job_begins_as_steps_for_github_do(name: str) -> None:
    isolate, git_ = (
        (REPOSITORY / f"integrations/{file}.sh").read_text(encoding="utf-8") for file in ("isolate", "git")
    )

    assert JOBS[name]["before_script"][0] == isolate
    assert JOBS[name]["script"][0] == git_


def test_merge_requests_are_compared_only_if_asked_for() -> None:
    assert TEMPLATE["variables"]["GPUPLAN_DIFF"] == "false"
    assert DIFF["rules"] == [{"if": '$CI_PIPELINE_SOURCE == "merge_request_event" && $GPUPLAN_DIFF == "true"'}]


def test_what_it_changes_is_drawn_and_linked(project: Path) -> None:
    base = a_merge_request(project)

    done = job(project, REPORT, CI_MERGE_REQUEST_DIFF_BASE_SHA=base)

    page, picture = ((project / name).read_text(encoding="utf-8") for name in REPORT["artifacts"]["paths"])
    assert (done.code, done.out) == (0, "")
    assert 'id="changes"' in page
    assert picture.startswith("<svg ")
    assert REPORT["artifacts"]["expose_as"] == "gpuplan report"


def test_errors_are_drawn_and_a_missing_base_is_trouble(project: Path) -> None:
    base = commit(a_broken_platform(a_repository(project)), "base")

    assert job(project, REPORT, CI_MERGE_REQUEST_DIFF_BASE_SHA=base).code == 0
    assert "GPU101" in (project / "gpuplan-report.html").read_text(encoding="utf-8")
    assert job(project, REPORT, CI_MERGE_REQUEST_DIFF_BASE_SHA="0" * 40).code == 2


def test_requests_are_drawn_only_if_asked_for() -> None:
    assert TEMPLATE["variables"]["GPUPLAN_REPORT"] == "false"
    assert [rule["if"].rpartition(" && ")[2] for rule in REPORT["rules"]] == ['$GPUPLAN_REPORT == "true"']


def test_no_variable_of_the_comparison_is_run(project: Path) -> None:
    base = a_merge_request(project)
    code = "$(touch pwned)"

    for name in ("GPUPLAN_FAIL_ON", "GPUPLAN_CLUSTERS", "GPUPLAN_DIRECTORY", "CI_MERGE_REQUEST_TARGET_BRANCH_SHA"):
        assert job(project, DIFF, **{"CI_MERGE_REQUEST_DIFF_BASE_SHA": base, name: code}).code == 2

    assert not list(project.parent.rglob("pwned"))


def first_line(text: str) -> str:
    return text.split("\n", 1)[0]
