"""The hooks for pre-commit, run by pre-commit."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.platforms import TENANT, a_platform, write
from tests.cli.runs import REPOSITORY, Run, run
from tests.integrations.scripts import put_gpuplan, shell

MANIFEST = REPOSITORY / ".pre-commit-hooks.yaml"
QUOTA = "{apiVersion: v1, kind: ResourceQuota, metadata: {name: gpus}, spec: {hard: {nvidia.com/gpu: 4}}}\n"
HOOKS: list[dict[str, Any]] = yaml.safe_load(MANIFEST.read_text(encoding="utf-8"))


def pre_commit(repository: Path, *arguments: str) -> Run:
    home = repository.parent
    path = put_gpuplan(home / "bin")
    variables = {"HOME": str(home), "PRE_COMMIT_HOME": str(home / "cache"), "GIT_CONFIG_NOSYSTEM": "1"}
    return shell([sys.executable, "-m", "pre_commit", *arguments], repository, variables, path=path)


def git(repository: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=repository, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A built platform with our hooks, except that pre-commit need not install gpuplan to run them."""
    if shutil.which("git") is None:
        pytest.skip("there is no git")
    root = a_platform(tmp_path / "repository")
    hooks = [{**hook, "language": "system"} for hook in HOOKS]
    write(root / ".pre-commit-config.yaml", yaml.safe_dump({"repos": [{"repo": "local", "hooks": hooks}]}))
    write(root / "README.md", "A platform.\n")
    assert run("build", "-q", cwd=root).code == 0
    git(root, "init", "-q")
    git(root, "add", ".")
    return root


def test_it_is_what_pre_commit_calls_a_manifest(tmp_path: Path) -> None:
    done = pre_commit(tmp_path, "validate-manifest", str(MANIFEST))

    assert (done.code, done.out) == (0, ""), done.out


def test_the_hooks_pass_on_a_clean_platform(repository: Path) -> None:
    done = pre_commit(repository, "run", "--all-files")

    assert done.code == 0, done.out
    assert done.out.count("Passed") == len(HOOKS)


def test_a_wrong_policy_stops_the_commit(repository: Path) -> None:
    write(repository / "policies/tenant.yaml", TENANT.replace("pool: research", "pool: reserch"))
    git(repository, "add", ".")

    done = pre_commit(repository, "run")

    assert done.code == 1
    assert "error[GPU101]" in done.out


def test_an_output_that_is_not_built_stops_the_commit(repository: Path) -> None:
    write(repository / "out/dev/kustomization.yaml", "by: hand\n")
    git(repository, "add", ".")

    done = pre_commit(repository, "run", "--files", "out/dev/kustomization.yaml")

    assert done.code == 1
    assert "(no files to check)Skipped" in done.out
    assert "GPU901" in done.out


def hook_for_files(repository: Path, files: str) -> None:
    """The one hook, for what a user says that it is for, as the guide shows it."""
    [hook] = [{**hook, "language": "system", "files": files} for hook in HOOKS if hook["id"] == "gpuplan-check"]
    write(repository / ".pre-commit-config.yaml", yaml.safe_dump({"repos": [{"repo": "local", "hooks": [hook]}]}))


def test_files_of_others_are_judged_as_they_are_and_each_once(repository: Path) -> None:
    hook_for_files(repository, "^manifests/")
    for name in ("quota.yaml", "more/quota.yml", "list.json", "policies/quota.yaml", "readme.md", "chart/out/a.yaml"):
        write(repository / "manifests" / name, QUOTA)
    write(repository / "elsewhere.yaml", QUOTA)
    git(repository, "add", ".")

    done = pre_commit(repository, "run", "--all-files")

    assert done.code == 1
    judged = re.findall(r"--> (\S+?):", done.out)
    assert sorted(judged) == ["manifests/list.json", "manifests/more/quota.yml", "manifests/quota.yaml"]


@pytest.mark.parametrize("option", ["--output-format=sarif=", "-ojson=", "--crds="])
def test_no_name_of_a_file_is_an_option(repository: Path, option: str) -> None:
    made = repository.parent / "made.yaml"
    hook_for_files(repository, "")
    write(repository / f"{option}{made}", QUOTA)
    git(repository, "add", ".")

    done = pre_commit(repository, "run", "--all-files")

    assert re.findall(r"--> (\S+?):", done.out) == [f"{option}{made}"]
    assert not made.exists()


def test_other_files_run_no_hook(repository: Path) -> None:
    done = pre_commit(repository, "run", "--files", "README.md")

    assert done.code == 0
    assert done.out.count("Skipped") == len(HOOKS)
