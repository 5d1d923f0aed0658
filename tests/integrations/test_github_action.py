"""The GitHub Action: what its steps do on a runner, and that nothing that it is given is run."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml

from tests.cli.platforms import POOL, PRIORITY, a_broken_platform, a_platform, write
from tests.cli.runs import REPOSITORY, Run, run
from tests.git import a_repository, commit, git
from tests.integrations.scripts import fits_schema, put_gpuplan, shell

ACTION: dict[str, Any] = yaml.safe_load((REPOSITORY / "action.yml").read_text(encoding="utf-8"))
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
CHECK = next(step for step in STEPS if step.get("id") == "check")
FILES = next(step for step in STEPS if step.get("id") == "files")
DIFF = next(step for step in STEPS if step.get("id") == "diff")
DRAW = next(step for step in STEPS if step.get("id") == "draw")
LINK = next(step for step in STEPS if step.get("id") == "link")
COMMENT = next(step for step in STEPS if step["name"].startswith("Comment "))
INSTALL = next(step for step in STEPS if step.get("id") == "install")
QUOTA = """\
apiVersion: v1
kind: ResourceQuota
metadata: {name: gpus}
spec: {hard: {%s: 4}}
"""
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
EVENT = re.compile(r"\$\{\{ github\.event\.([a-z_.]+) \}\}")
OUTPUT = re.compile(r"\$\{\{ steps\.([a-z]+\.outputs\.[a-z-]+) \}\}")
KEPT = ("page", "picture")
NOTHING_BEFORE = "0" * 40
"""What GitHub says was there before a branch that is new."""

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")


@dataclass(frozen=True)
class Job:
    """What a step left behind."""

    run: Run
    outputs: dict[str, str]
    summary: str


def check(workspace: Path, **inputs: str) -> Job:
    """Run the step that checks."""
    return run_step(CHECK, workspace, {}, inputs)


def compare(workspace: Path, base: str = "", commit: str = "", **inputs: str) -> Job:
    """Run the step that compares for a pull request to the commit ``base``, merged as ``commit``."""
    event = {"pull_request.base.sha": base} if base else {}
    return compare_for("pull_request", workspace, event, commit, **inputs)


def compare_for(
    name: str, workspace: Path, event: dict[str, str], commit: str = "", branch: str = "main", **inputs: str
) -> Job:
    """Run the step that compares for an event; ``commit`` is what GitHub says that it is for."""
    context = {"GITHUB_SHA": commit, "GITHUB_EVENT_NAME": name, "GITHUB_REF_NAME": branch}
    return run_step(DIFF, workspace, {**context, "repository.default_branch": "main", **event}, inputs)


def run_step(
    step: dict[str, Any],
    workspace: Path,
    context: dict[str, str],
    inputs: dict[str, str],
    environment: Mapping[str, str] = MappingProxyType({}),
) -> Job:
    """Run a step as the runner does: https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-syntax#jobsjob_idstepsshell."""
    temporary = workspace.parent / "runner"
    shutil.rmtree(temporary, ignore_errors=True)
    put_gpuplan(temporary / "gpuplan/bin")
    files = {name: temporary / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    script = temporary / "script.sh"
    script.write_text(step["run"])
    given = {name.replace("_", "-"): value for name, value in inputs.items()}
    values = {name: given.pop(name, item["default"]) for name, item in ACTION["inputs"].items()}
    assert not given
    filled = {name: EVENT.sub(lambda match: context.get(match[1], ""), text) for name, text in step["env"].items()}
    filled = {name: OUTPUT.sub(lambda match: context.get(match[1], ""), text) for name, text in filled.items()}
    variables = {
        **environment,
        **{name: value for name, value in context.items() if name.startswith("GITHUB_")},
        **{name: INPUT.sub(lambda match: values[match[1]], text) for name, text in filled.items()},
        **{name: str(file) for name, file in files.items()},
        "RUNNER_TEMP": str(temporary),
        "GITHUB_ACTION_PATH": str(REPOSITORY),
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


def test_files_are_named_from_the_repository_that_is_checked_out_elsewhere(workspace: Path) -> None:
    root = a_repository(workspace / "checked out")
    a_broken_platform(root / "platform")
    write(workspace / "crds/widgets.yaml", DEFINITION)

    job = check(workspace, directory="checked out/platform", crds="crds")

    assert "file=platform/policies/tenant.yaml," in job.run.out
    assert job.outputs["repository"] == str(root)


def test_clusters_can_be_chosen(workspace: Path) -> None:
    root = built(a_platform(workspace, "dev", "prod", "test"))
    (root / "out/test/kustomization.yaml").unlink()

    assert check(root, clusters="dev\n  prod\n").outputs["result"] == "clean"


def test_warnings_can_fail_the_step(workspace: Path) -> None:
    root = a_platform(workspace)
    write(root / "policies/pool.yaml", f"# gpuplan: ignore[GPU203] for a test\n{POOL}")
    built(root)

    assert check(root).outputs["result"] == "clean"
    assert check(root, warnings_as_errors="true").outputs["result"] == "findings"


@pytest.mark.parametrize("value", ["True", "yes", "1", ""])
def test_only_false_leaves_the_output_unjudged(workspace: Path, value: str) -> None:
    assert check(a_platform(workspace), check_out=value).outputs["result"] == "findings"


@pytest.mark.parametrize(("value", "result"), [("yes", "findings"), ("", "clean"), ("false", "clean")])
def test_any_other_word_makes_warnings_fail(workspace: Path, value: str, result: str) -> None:
    root = a_platform(workspace)
    write(root / "policies/pool.yaml", f"# gpuplan: ignore[GPU203] for a test\n{POOL}")

    assert check(built(root), warnings_as_errors=value).outputs["result"] == result


def test_annotations_and_the_summary_can_be_left_out(workspace: Path) -> None:
    job = check(a_broken_platform(workspace), annotations="false", summary="false")

    assert job.run.out.startswith("policies/tenant.yaml:10:12: error[GPU101] ")
    assert job.summary == ""
    assert Path(job.outputs["markdown"]).exists()


def test_trouble_is_said_where_people_look(workspace: Path) -> None:
    job = check(a_platform(workspace), clusters="prod")

    assert (job.run.code, job.outputs["result"]) == (2, "trouble")
    assert not {"markdown", "sarif"} & job.outputs.keys()
    assert "::error title=gpuplan::" in job.run.out
    assert "no cluster `prod`" in job.run.err
    assert job.summary.startswith("## gpuplan: trouble\n")


def test_custom_resources_are_checked_against_the_definitions_given(workspace: Path) -> None:
    root = built(a_platform(workspace))
    write(root / "crds/widgets.yaml", DEFINITION)

    assert check(root, crds="crds").outputs["result"] == "clean"
    assert check(root, crds="gone").outputs["result"] == "trouble"


# --- Files without a platform ------------------------------------------------------------------------------------


def test_files_are_judged_as_they_are(workspace: Path) -> None:
    write(workspace / "two words/quota.yaml", QUOTA % "nvidia.com/gpu")
    write(workspace / "good.yaml", QUOTA % "requests.nvidia.com/gpu")

    job = run_step(FILES, workspace, {}, {"check_files": "two words\n\ngood.yaml\n"})

    assert (job.run.code, job.outputs["result"]) == (1, "findings")
    assert job.run.out.startswith("::error file=two words/quota.yaml,line=4,")
    assert "| error | GPU620<br>" in job.summary
    assert Path(job.outputs["markdown"]).read_text() == job.summary
    assert json.loads(Path(job.outputs["sarif"]).read_text())["runs"][0]["results"][0]["ruleId"] == "GPU620"


def test_files_without_findings_pass(workspace: Path) -> None:
    write(workspace / "good.yaml", QUOTA % "requests.nvidia.com/gpu")

    job = run_step(FILES, workspace, {}, {"check_files": "good.yaml"})

    assert (job.run.code, job.run.out, job.outputs["result"]) == (0, "", "clean")


@pytest.mark.parametrize("name", ["checked out/manifests/quota.yaml", "./checked out/manifests", "checked out"])
def test_files_are_named_from_their_repository(workspace: Path, name: str) -> None:
    root = a_repository(workspace / "checked out")
    write(root / "manifests/quota.yaml", QUOTA % "nvidia.com/gpu")

    job = run_step(FILES, workspace, {}, {"check_files": name})

    assert job.run.out.startswith("::error file=manifests/quota.yaml,line=4,"), job.run
    assert job.outputs["repository"] == str(root)


def test_files_that_are_not_there_are_trouble(workspace: Path) -> None:
    workspace.mkdir()

    job = run_step(FILES, workspace, {}, {"check_files": "gone.yaml"})

    assert (job.run.code, job.outputs["result"], job.outputs.get("markdown")) == (2, "trouble", None)
    assert "::error title=gpuplan::the files could not be judged" in job.run.out


@pytest.mark.parametrize("value", ["$(touch pwned)", '" && touch pwned; "', "--output-format=json=x", "*"])
def test_no_file_that_is_named_is_run(workspace: Path, value: str) -> None:
    write(workspace / "good.yaml", QUOTA % "requests.nvidia.com/gpu")

    job = run_step(FILES, workspace, {}, {"check_files": value})

    assert job.run.code == 2
    assert not list(workspace.parent.rglob("pwned"))
    assert not (workspace / "x").exists()


def test_each_kind_of_check_runs_only_if_there_is_something_to_judge() -> None:
    assert CHECK["if"] == "inputs.directory != ''"
    assert FILES["if"] == "always() && inputs.check-files != '' && steps.install.outcome == 'success'"
    assert ACTION["inputs"]["check-files"]["default"] == ""


# --- What a pull request disturbs --------------------------------------------------------------------------------


def a_pull_request(workspace: Path) -> tuple[str, str]:
    """The merge of a branch that shares GPUs otherwise with a `main` that has gone on: the old base, and the merge."""
    root = a_platform(a_repository(workspace))
    base = commit(root, "base")
    git(root, "checkout", "--quiet", "-b", "mine")
    write(root / "policies/pool.yaml", POOL.replace("replicas: 3", "replicas: 4"))
    commit(root, "mine")
    git(root, "checkout", "--quiet", "main")
    write(root / "policies/priority.yaml", PRIORITY.replace("100", "200"))
    commit(root, "theirs")
    git(root, "merge", "--quiet", "--no-edit", "mine")
    return base, git(root, "rev-parse", "HEAD")


def test_the_merge_is_compared_with_the_branch_that_it_goes_to(workspace: Path) -> None:
    base, merge = a_pull_request(workspace)

    job = compare(workspace, base, merge)

    assert (job.run.code, job.outputs["class"]) == (0, "plugin-restart")
    told = "2 changes in 1 cluster, 2 nodes touched, none to drain"
    assert job.summary.startswith(f"## gpuplan: plugin-restart\n\n{told}\n")
    assert "PriorityClass" not in job.summary
    assert Path(job.outputs["markdown"]).read_text() == job.summary


def test_a_checkout_of_the_branch_itself_is_compared_with_where_it_began(workspace: Path) -> None:
    base, merge = a_pull_request(workspace)
    git(workspace, "checkout", "--quiet", "mine")

    job = compare(workspace, base, merge)

    assert (job.run.code, job.outputs["class"]) == (0, "plugin-restart")


def two_commits(workspace: Path) -> tuple[str, str]:
    """A base, and the second of two commits on it, of which the first alone disturbs."""
    root = a_platform(a_repository(workspace))
    base = commit(root, "base")
    write(root / "policies/pool.yaml", POOL.replace("replicas: 3", "replicas: 4"))
    commit(root, "disturb")
    write(root / "README.md", "read me\n")
    return base, commit(root, "describe")


def test_a_merge_queue_is_compared_with_what_it_comes_after(workspace: Path) -> None:
    base, head = two_commits(workspace)

    job = compare_for("merge_group", workspace, {"merge_group.base_sha": base}, head, fail_on="plugin-restart")

    assert (job.run.code, job.outputs["class"]) == (1, "plugin-restart")


def test_all_that_is_pushed_is_compared_with_what_was_there_before(workspace: Path) -> None:
    base, head = two_commits(workspace)

    assert compare_for("push", workspace, {"before": base}, head).outputs["class"] == "plugin-restart"


def test_in_the_first_push_of_a_repository_all_is_new(workspace: Path) -> None:
    root = a_platform(a_repository(workspace))
    head = commit(root, "first")

    job = compare_for("push", root, {"before": NOTHING_BEFORE}, head)

    assert job.run.code == 0
    assert "cluster is added" in job.summary
    assert git(root, "status", "--porcelain") == ""


def test_a_new_branch_is_compared_with_where_it_began(workspace: Path) -> None:
    base, head = two_commits(workspace)
    git(workspace, "update-ref", "refs/remotes/origin/main", base)

    job = compare_for("push", workspace, {"before": NOTHING_BEFORE}, head, "mine")

    assert job.outputs["class"] == "plugin-restart"
    assert "cluster is added" not in job.summary


def test_a_new_branch_without_its_history_is_not_taken_for_all_there_is(workspace: Path) -> None:
    _, head = two_commits(workspace)
    shallow = workspace.parent / "shallow" / "workspace"
    shallow.parent.mkdir()
    git(shallow.parent, "clone", "--quiet", "--depth=2", workspace.as_uri(), "workspace")

    job = compare_for("push", shallow, {"before": NOTHING_BEFORE}, head, "mine")

    assert (job.run.code, job.outputs) == (2, {})
    assert "`fetch-depth: 0`" in job.run.out


def test_pull_request_target_is_refused_where_the_base_is_checked_out(workspace: Path) -> None:
    base, head = two_commits(workspace)
    event = {"pull_request.base.sha": head}

    job = compare_for("pull_request_target", workspace, event, head)

    assert (job.run.code, job.outputs, job.summary) == (2, {}, "")
    assert (
        "::error title=gpuplan::for pull_request_target the branch that the request goes to is checked out"
        in job.run.out
    )
    given = compare_for("pull_request_target", workspace, event, head, diff_range=f"{base}..HEAD")
    assert given.outputs["class"] == "plugin-restart"


def test_any_other_event_compares_with_the_commit_before(workspace: Path) -> None:
    a_pull_request(workspace)
    git(workspace, "checkout", "--quiet", "mine")
    head = git(workspace, "rev-parse", "HEAD")

    assert compare_for("workflow_dispatch", workspace, {}, head).outputs["class"] == "plugin-restart"


def test_the_range_can_be_given(workspace: Path) -> None:
    a_pull_request(workspace)

    assert compare(workspace, diff_range="HEAD^2..HEAD").outputs["class"] == "recreate"


@pytest.mark.parametrize(("fail_on", "code"), [("", 0), ("plugin-restart", 1), ("repartition", 0)])
def test_the_step_fails_from_a_class_on(workspace: Path, fail_on: str, code: int) -> None:
    base, merge = a_pull_request(workspace)

    job = compare(workspace, base, merge, fail_on=fail_on)

    assert job.run.code == code
    assert ("::error title=gpuplan::something changes that is plugin-restart or worse" in job.run.out) == (code == 1)
    assert job.outputs["class"] == "plugin-restart"


def test_a_checkout_without_history_is_told_how_to_get_it(workspace: Path) -> None:
    base, merge = a_pull_request(workspace)
    shallow = workspace.parent / "shallow" / "workspace"
    shallow.parent.mkdir()
    git(shallow.parent, "clone", "--quiet", "--depth=1", workspace.as_uri(), "workspace")

    job = compare(shallow, base, merge)

    assert (job.run.code, job.outputs) == (2, {})
    assert "`fetch-depth: 0` in CI" in job.run.err
    assert "::error title=gpuplan::the policies could not be compared" in job.run.out


def test_two_commits_of_history_are_enough_for_a_pull_request(workspace: Path) -> None:
    base, merge = a_pull_request(workspace)
    shallow = workspace.parent / "shallow" / "workspace"
    shallow.parent.mkdir()
    git(shallow.parent, "clone", "--quiet", "--depth=2", workspace.as_uri(), "workspace")

    assert compare(shallow, base, merge).outputs["class"] == "plugin-restart"


def test_a_work_tree_of_another_repository_is_compared(workspace: Path) -> None:
    a_pull_request(workspace.parent / "elsewhere")
    git(workspace.parent / "elsewhere", "worktree", "add", "--quiet", "--detach", str(workspace), "mine")
    head = git(workspace, "rev-parse", "HEAD")

    assert (workspace / ".git").is_file()
    assert compare_for("workflow_dispatch", workspace, {}, head).outputs["class"] == "plugin-restart"


@pytest.mark.parametrize("name", ["diff_range", "fail_on", "clusters", "directory"])
@pytest.mark.parametrize("value", ["$(touch pwned)", '" && touch pwned; "', "--output-format=json=x"])
def test_nothing_given_to_the_comparison_is_run(workspace: Path, name: str, value: str) -> None:
    base, merge = a_pull_request(workspace)

    job = compare(workspace, base, merge, **{name: value})

    assert job.run.code == 2
    assert not list(workspace.parent.rglob("pwned"))
    assert not (workspace / "x").exists()


def test_it_is_compared_and_posted_only_if_asked_for() -> None:
    assert (ACTION["inputs"]["diff"]["default"], ACTION["inputs"]["comment"]["default"]) == ("false", "false")
    assert DIFF["if"].startswith("always() && inputs.diff == 'true' && ")
    assert COMMENT["if"].startswith("always() && inputs.comment == 'true' && ")
    assert COMMENT["run"].endswith('"$GITHUB_ACTION_PATH/integrations/comment.py"\n')
    assert {"KEY", "MARKDOWN", "CLASS", "PULL_REQUEST", "TOKEN"} == COMMENT["env"].keys()


# --- What it draws -----------------------------------------------------------------------------------------------


def draw(workspace: Path, compared: str = "", **inputs: str) -> Job:
    """Run the step that draws; ``compared`` is the range that the step before it has compared."""
    return run_step(DRAW, workspace, {"diff.outputs.range": compared}, inputs)


def test_the_platform_is_drawn_as_a_page_and_as_a_picture(workspace: Path) -> None:
    job = draw(a_platform(workspace, "dev", "prod"), clusters="dev")

    page = Path(job.outputs["page"]).read_text(encoding="utf-8")
    picture = ET.parse(job.outputs["picture"]).getroot()
    assert job.run.code == 0
    assert "<title>GPU report: dev</title>" in page
    assert "What changes" not in page
    assert (picture.tag, picture.findtext("{*}title")) == ("{http://www.w3.org/2000/svg}svg", "Pool research")


@pytest.mark.parametrize("compared", ["{base}...HEAD", "HEAD^1..HEAD", "HEAD^1..", "{base}..{merge}"])
def test_what_a_request_changes_is_drawn(workspace: Path, compared: str) -> None:
    base, merge = a_pull_request(workspace)

    job = draw(workspace, compared.format(base=base, merge=merge))

    assert 'id="changes"' in Path(job.outputs["page"]).read_text(encoding="utf-8")


def test_a_range_that_ends_elsewhere_is_not_drawn(workspace: Path) -> None:
    a_pull_request(workspace)

    job = draw(workspace, "HEAD^2^1..HEAD^2")

    assert 'id="changes"' not in Path(job.outputs["page"]).read_text(encoding="utf-8")


def test_policies_with_errors_are_drawn_too(workspace: Path) -> None:
    job = draw(a_broken_platform(workspace))

    assert job.run.code == 0  # the step that checks has failed
    assert "GPU101" in Path(job.outputs["page"]).read_text(encoding="utf-8")
    assert ET.parse(job.outputs["picture"]).getroot().tag.endswith("}svg")


def test_artifacts_of_several_platforms_have_names_of_their_own(workspace: Path) -> None:
    a_platform(workspace / "one")
    a_platform(workspace / "two")

    names = [Path(draw(workspace, directory=name).outputs[kind]).name for name in ("one", "two") for kind in KEPT]

    assert len(set(names)) == 4


@pytest.mark.parametrize("name", ["clusters", "directory"])
def test_nothing_given_to_what_draws_is_run(workspace: Path, name: str) -> None:
    job = draw(a_platform(workspace), **{name: "$(touch pwned)"})

    assert not list(workspace.parent.rglob("pwned"))
    assert job.run.code == 2
    assert job.run.out.startswith("::error title=gpuplan::the platform could not be drawn")


def test_what_was_drawn_is_linked_from_the_summary_and_the_comment(workspace: Path) -> None:
    workspace.mkdir()
    comment = workspace / "gpuplan-diff.md"
    comment.write_text("## What changes\n")
    kept = {"page.outputs.artifact-url": "https://host/1", "picture.outputs.artifact-url": "https://host/2"}

    job = run_step(LINK, workspace, {**kept, "diff.outputs.markdown": str(comment)}, {})

    link = "\nDrawn: [the report](https://host/1) and [a picture of the pools](https://host/2).\n"
    assert (job.run.code, job.summary, comment.read_text()) == (0, link, f"## What changes\n{link}")
    assert run_step(LINK, workspace, kept, {"summary": "false"}).summary == ""


def test_what_is_drawn_is_kept_as_a_browser_can_open_it() -> None:
    uploads = {step["id"]: step for step in STEPS if step.get("uses", "").startswith("actions/upload-artifact@")}
    order = [step.get("id") for step in STEPS]

    assert (set(uploads), ACTION["inputs"]["report"]["default"]) == (set(KEPT), "false")
    assert DRAW["if"].startswith("always() && inputs.report == 'true' && ")
    for kind, step in uploads.items():
        assert step["with"]["archive"] == "false"
        assert step["with"]["path"] == f"${{{{ steps.draw.outputs.{kind} }}}}"
        assert step["continue-on-error"] is True  # a server without such artifacts fails no pull request
    assert order.index("diff") < order.index("draw") < order.index("page") < order.index("link") < len(order) - 1


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
    uploads = [step for step in STEPS if step["name"].startswith("Upload ")]

    assert ACTION["inputs"]["upload-sarif"]["default"] == "false"
    assert len({upload["with"]["category"] for upload in uploads}) == len(uploads) == 2
    for upload, step in zip(uploads, ("check", "files"), strict=True):
        assert upload["if"].startswith(f"always() && inputs.upload-sarif == 'true' && steps.{step}.outputs.sarif")
        assert upload["with"]["checkout_path"] == f"${{{{ steps.{step}.outputs.repository }}}}"


def test_what_is_installed_is_locked() -> None:
    install = INSTALL["run"]

    assert " python3 -I -m venv " in install  # the only name that every system has
    assert '--require-hashes -r "$GITHUB_ACTION_PATH/requirements/run.txt"' in install
    assert (REPOSITORY / "requirements/run.txt").is_file()
