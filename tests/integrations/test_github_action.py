"""The GitHub Action: what its steps do on a runner, and that nothing that it is given is run."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.platforms import POOL, PRIORITY, a_broken_platform, a_platform, write
from tests.cli.runs import REPOSITORY, Run, run
from tests.integrations.scripts import fits_schema, put_gpuplan, shell

ACTION: dict[str, Any] = yaml.safe_load((REPOSITORY / "action.yml").read_text(encoding="utf-8"))
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
CHECK = next(step for step in STEPS if step.get("id") == "check")
DEFINITION = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {kind: Widget, plural: widgets}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
"""
INPUT = re.compile(r"\$\{\{ inputs\.([a-z-]+) \}\}")

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")


@dataclass(frozen=True)
class Job:
    """What a step left behind."""

    run: Run
    outputs: dict[str, str]
    summary: str


def check(workspace: Path, **inputs: str) -> Job:
    """Run the step that checks, as the runner does: https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-syntax#jobsjob_idstepsshell."""
    temporary = workspace.parent / "runner"
    put_gpuplan(temporary / "gpuplan/bin")
    files = {name: temporary / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    script = temporary / "script.sh"
    script.write_text(CHECK["run"])
    given = {name.replace("_", "-"): value for name, value in inputs.items()}
    values = {name: given.pop(name, item["default"]) for name, item in ACTION["inputs"].items()}
    assert not given
    variables = {
        **{name: INPUT.sub(lambda match: values[match[1]], text) for name, text in CHECK["env"].items()},
        **{name: str(file) for name, file in files.items()},
        "RUNNER_TEMP": str(temporary),
    }
    done = shell(["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)], workspace, variables)
    read = {name: file.read_text(encoding="utf-8") if file.exists() else "" for name, file in files.items()}
    outputs = dict(line.split("=", 1) for line in read["GITHUB_OUTPUT"].splitlines())
    return Job(done, outputs, read["GITHUB_STEP_SUMMARY"])


def built(root: Path) -> Path:
    assert run("build", "-q", cwd=root).code == 0
    return root


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return tmp_path / "workspace"


# --- What it says ------------------------------------------------------------------------------------------------


def test_it_is_what_github_calls_an_action() -> None:
    done = fits_schema(REPOSITORY / "action.yml", "vendor.github-actions")

    assert done.code == 0, done.out


def test_a_clean_platform_passes(workspace: Path) -> None:
    job = check(built(a_platform(workspace)))

    assert (job.run.code, job.run.out, job.outputs["result"]) == (0, "", "clean")
    assert job.summary.startswith("## gpuplan: no findings\n")


def test_findings_are_annotated_summed_up_and_handed_on(workspace: Path) -> None:
    job = check(a_broken_platform(workspace))

    assert (job.run.code, job.outputs["result"]) == (1, "findings")
    assert job.run.out.startswith("::error file=policies/tenant.yaml,line=10,endLine=10,col=12,")
    assert "| error | GPU101<br>" in job.summary
    assert Path(job.outputs["markdown"]).read_text() == job.summary
    assert json.loads(Path(job.outputs["sarif"]).read_text())["runs"][0]["results"][0]["ruleId"] == "GPU101"


def test_an_output_that_is_not_committed_is_found(workspace: Path) -> None:
    root = built(a_platform(workspace))
    write(root / "policies/priority.yaml", PRIORITY.replace("100", "200"))

    job = check(root)

    assert job.run.code == 1
    assert "::error file=out/dev/scheduling/priorityclass-research.yaml,line=1" in job.run.out
    assert "GPU903" in job.summary


def test_policies_can_be_judged_alone(workspace: Path) -> None:
    assert check(a_platform(workspace), check_out="false").outputs["result"] == "clean"


def test_files_are_named_from_the_workspace(workspace: Path) -> None:
    a_broken_platform(workspace / "platform")

    assert "file=platform/policies/tenant.yaml," in check(workspace, directory="platform").run.out


def test_clusters_can_be_chosen(workspace: Path) -> None:
    root = built(a_platform(workspace, "dev", "prod", "test"))
    (root / "out/test/kustomization.yaml").unlink()

    assert check(root, clusters="dev\n  prod\n").outputs["result"] == "clean"


def test_warnings_can_fail_the_step(workspace: Path) -> None:
    root = a_platform(workspace)
    write(root / "policies/pool.yaml", f"# gpuplan: ignore[GPU203] for a test\n{POOL}")
    built(root)

    assert check(root).outputs["result"] == "clean"
    shutil.rmtree(workspace.parent / "runner")
    assert check(root, warnings_as_errors="true").outputs["result"] == "findings"


def test_annotations_and_the_summary_can_be_left_out(workspace: Path) -> None:
    job = check(a_broken_platform(workspace), annotations="false", summary="false")

    assert job.run.out.startswith("policies/tenant.yaml:10:12: error[GPU101] ")
    assert job.summary == ""
    assert Path(job.outputs["markdown"]).exists()


def test_trouble_is_said_where_people_look(workspace: Path) -> None:
    job = check(a_platform(workspace), clusters="prod")

    assert (job.run.code, job.outputs) == (2, {"result": "trouble"})
    assert "::error title=gpuplan::" in job.run.out
    assert "no cluster `prod`" in job.run.err
    assert job.summary.startswith("## gpuplan: trouble\n")


def test_custom_resources_are_checked_against_the_definitions_given(workspace: Path) -> None:
    root = built(a_platform(workspace))
    write(root / "crds/widgets.yaml", DEFINITION)

    assert check(root, crds="crds").outputs["result"] == "clean"
    shutil.rmtree(workspace.parent / "runner")
    assert check(root, crds="gone").outputs["result"] == "trouble"


# --- What it never does ------------------------------------------------------------------------------------------


def test_no_script_holds_an_expression() -> None:
    assert [step["name"] for step in STEPS if "${{" in step.get("run", "")] == []


@pytest.mark.parametrize("name", ["clusters", "directory", "crds", "check_out", "annotations", "summary"])
@pytest.mark.parametrize("value", ["$(touch pwned)", '" && touch pwned; "', "--out=x"])
def test_no_input_is_run(workspace: Path, name: str, value: str) -> None:
    root = built(a_platform(workspace))

    job = check(root, **{name: value})

    assert not list(workspace.parent.rglob("pwned"))
    assert job.run.code in (0, 2)
    assert not (root / "x").exists()


def test_a_clusters_name_is_no_pattern(workspace: Path) -> None:
    root = built(a_platform(workspace))
    (root / "dev").mkdir()

    assert check(root, clusters="d*").outputs["result"] == "trouble"


def test_actions_are_pinned_by_commit() -> None:
    text = (REPOSITORY / "action.yml").read_text(encoding="utf-8")
    used = re.findall(r"uses: (.*)", text)

    assert used
    assert [item for item in used if not re.fullmatch(r"[\w-]+/[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", item)] == []


def test_findings_are_uploaded_only_if_asked_for_and_also_if_there_are_some() -> None:
    upload = STEPS[-1]

    assert ACTION["inputs"]["upload-sarif"]["default"] == "false"
    assert upload["if"].startswith("always() && inputs.upload-sarif == 'true' && ")


def test_what_is_installed_is_locked() -> None:
    [install] = [step["run"] for step in STEPS if step["name"] == "Install gpuplan"]

    assert '--require-hashes -r "$GITHUB_ACTION_PATH/requirements/run.txt"' in install
    assert (REPOSITORY / "requirements/run.txt").is_file()
