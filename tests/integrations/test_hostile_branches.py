"""No branch runs a command, writes outside of its checkout, or changes an answer by files beside its policies.

The branch brings every file but `.git`. Whoever runs gpuplan on it chose the step, the folder of the platform and the
environment, in which relative names lead into the branch.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from gpuplan.features.changes.git import SETTINGS
from tests.cli.platforms import TENANT, a_platform, write
from tests.cli.runs import REPOSITORY, Run, run
from tests.git import a_repository, commit, git
from tests.integrations import test_argocd_plugin as plugin, test_github_action as action, test_gitlab as gitlab
from tests.integrations.scripts import put_gpuplan, shell

PLATFORM = "clusters/platform"
QUOTA = "{apiVersion: v1, kind: ResourceQuota, metadata: {name: gpus}, spec: {hard: {nvidia.com/gpu: 4}}}\n"
HOOKS = {
    hook["id"]: hook for hook in yaml.safe_load((REPOSITORY / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
}
NOTHING: Mapping[str, str] = {}

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")


class Form(NamedTuple):
    """What a branch holds: ``plant`` writes it into a checkout; ``command`` is what it wants to have run."""

    plant: Callable[[Path, str], None]
    environment: Mapping[str, str] = NOTHING


class Step(NamedTuple):
    """A script that plugs gpuplan in: ``answer`` runs it in a checkout, and sums up what it finds."""

    answer: Callable[[Path, Mapping[str, str]], str]
    honest: str
    """The answer for the branch without hostile files."""
    embedded: str
    """The answer when git would take the platform's folder for a repository, which gpuplan reports (GPU023)."""


# --- What git takes for a repository ------------------------------------------------------------------------------

LAZY = """\
[core]
repositoryformatversion = 1
bare = false
worktree = .
[extensions]
partialClone = origin
[remote "origin"]
promisor = true
"""
"""Each object is missing, and git fetches what is missing from this remote."""
SSH = f'{LAZY}url = ssh://x/y\n[core]\nsshCommand = "COMMAND; false"\n'
UPLOAD = f'{LAZY}url = /\nuploadpack = "COMMAND; false"\n'
EXTERNAL = f'{LAZY}url = "ext::sh -c COMMAND% %S"\n[protocol "ext"]\nallow = always\n'
BORROWING = "[core]\nrepositoryformatversion = 0\nbare = false\nworktree = ../..\n"
"""Objects are those of the real repository, and HEAD is the commit that the branch began with: nothing differs."""


def embed(root: Path, folder: str, config: str) -> None:
    """Make a folder what git takes for a repository, of plain files that a commit can hold."""
    write(root / folder / "HEAD", f"{'a' * 40}\n")
    write(root / folder / "config", config)
    for name in ("objects/x", "refs/x"):
        write(root / folder / name, "")


def embedded(config: str, folder: str = PLATFORM) -> Callable[[Path, str], None]:
    return lambda root, command: embed(root, folder, config.replace("COMMAND", command))


def borrowing(config: str = "") -> Callable[[Path, str], None]:
    def plant(root: Path, command: str) -> None:
        embed(root, PLATFORM, BORROWING + config.replace("COMMAND", command))
        write(root / PLATFORM / "HEAD", f"{git(root, 'rev-parse', 'HEAD')}\n")
        write(root / PLATFORM / "objects/info/alternates", "../../../.git/objects\n")
        for hook in ("post-index-change", "reference-transaction"):
            executable(root / PLATFORM / "hooks" / hook, command)

    return plant


def including(root: Path, command: str) -> None:
    embed(root, PLATFORM, f"[include]\npath = ../more\n{LAZY}url = ssh://x/y\n")
    write(root / "clusters/more", f'[core]\nsshCommand = "{command}; false"\n')


def with_program(config: str) -> Callable[[Path, str], None]:
    """An embedded repository, and a program of the branch that variables name."""

    def plant(root: Path, command: str) -> None:
        embed(root, PLATFORM, config)
        executable(root / "program", f"{command}; exit 1")

    return plant


def executable(path: Path, command: str) -> None:
    write(path, f"#!/bin/sh\n{command}\n")
    path.chmod(0o755)


REPOSITORIES = {
    "the platform's folder fetches by ssh": Form(embedded(SSH)),
    "the folder above it fetches by ssh": Form(embedded(SSH, "clusters")),
    "the root fetches by ssh": Form(embedded(SSH, ".")),
    "it fetches from a path": Form(embedded(UPLOAD)),
    "it fetches by a program": Form(embedded(EXTERNAL)),
    "it includes its configuration": Form(including),
    "it borrows objects": Form(borrowing()),
    "it watches files": Form(borrowing('[core]\nfsmonitor = "COMMAND; false"\n')),
    "it has hooks": Form(borrowing("[core]\nhooksPath = hooks\n")),
    "it has aliases": Form(borrowing('[alias]\nrev-parse = "!COMMAND"\nls-tree = "!COMMAND"\ncat-file = "!COMMAND"\n')),
    "GIT_DIR names it": Form(embedded(SSH), {"GIT_DIR": PLATFORM}),
    "GIT_SSH_COMMAND names a program": Form(
        with_program(f"{LAZY}url = ssh://x/y\n"), {"GIT_SSH_COMMAND": "../../program"}
    ),
    "GIT_CONFIG_PARAMETERS name a program": Form(
        with_program(f"{LAZY}url = ssh://x/y\n"), {"GIT_CONFIG_PARAMETERS": "'core.sshCommand'='../../program'"}
    ),
}


# --- What Python takes for a module, and shells for a command -----------------------------------------------------

MODULES = ("gpuplan/__init__", "json", "pip", "sitecustomize", "subprocess", "usercustomize", "venv", "zipfile")
PROGRAMS = ("basename", "cat", "dirname", "env", "git", "gpuplan", "mktemp", "pip", "python", "python3", "rm", "sed")
ENCODINGS = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/encodings/__init__"


def modules(*names: str) -> Callable[[Path, str], None]:
    """Modules in every folder that a step may be started in."""

    def plant(root: Path, command: str) -> None:
        for folder in (".", PLATFORM):
            for name in names:
                write(root / folder / f"{name}.py", f"__import__('os').system({command!r})\n")

    return plant


def programs(root: Path, command: str) -> None:
    for name in PROGRAMS:
        if not (root / name).exists():
            executable(root / name, command)


PYTHON = {
    "modules": Form(modules(*MODULES)),
    "modules that PYTHONPATH names": Form(modules(*MODULES), {"PYTHONPATH": "."}),
    "modules that PYTHONHOME names": Form(modules(ENCODINGS), {"PYTHONHOME": "."}),
}
COMMANDS = {
    "programs in a folder of the path": Form(programs, {"PATH": ".:FOLDERS"}),
    "programs in an empty name of the path": Form(programs, {"PATH": ":FOLDERS"}),
}


# --- What stands where reports are written ------------------------------------------------------------------------

REPORTS = sorted(
    {path for job in gitlab.JOBS.values() for path in job["artifacts"]["paths"]}
    | {path for job in gitlab.JOBS.values() for path in job["artifacts"].get("reports", {}).values()}
)


def in_place_of_reports(put: Callable[[Path], None]) -> Form:
    def plant(root: Path, _: str) -> None:
        for name in REPORTS:
            put(root / name)

    return Form(plant)


TAKEN = {
    "links to a file": in_place_of_reports(lambda path: path.symlink_to("../outside/file")),
    "links to a name that nothing has": in_place_of_reports(lambda path: path.symlink_to("../outside/new")),
    "links to a folder": in_place_of_reports(lambda path: path.symlink_to("../outside")),
    "folders": in_place_of_reports(lambda path: write(path / "file", "")),
}


# --- Steps --------------------------------------------------------------------------------------------------------


def found(text: str) -> str:
    return next((code for code in ("GPU023", "GPU620") if code in text), "nothing")


def github_check(root: Path, environment: Mapping[str, str]) -> str:
    job = action.run_step(action.CHECK, root, {}, {"directory": PLATFORM}, environment)
    return f"{job.outputs.get('result')} {found(job.summary)}"


def github_check_from_above(root: Path, environment: Mapping[str, str]) -> str:
    """The repository is checked out into a folder of the workspace."""
    inputs = {"directory": f"{root.name}/{PLATFORM}"}
    job = action.run_step(action.CHECK, root.parent, {}, inputs, environment)
    return f"{job.outputs.get('result')} {found(job.summary)} {job.outputs.get('repository') == str(root)}"


def github_files(root: Path, environment: Mapping[str, str]) -> str:
    job = action.run_step(action.FILES, root, {}, {"check_files": f"{PLATFORM}/quota.yaml"}, environment)
    return f"{job.outputs.get('result')} {found(job.summary)}"


def github_files_from_above(root: Path, environment: Mapping[str, str]) -> str:
    inputs = {"check_files": f"{root.name}/{PLATFORM}/quota.yaml"}
    job = action.run_step(action.FILES, root.parent, {}, inputs, environment)
    return f"{job.outputs.get('result')} {found(job.summary)} {job.outputs.get('repository') == str(root)}"


def github_diff(root: Path, environment: Mapping[str, str]) -> str:
    context = {"GITHUB_SHA": git(root, "rev-parse", "HEAD"), "GITHUB_EVENT_NAME": "workflow_dispatch"}
    job = action.run_step(action.DIFF, root, context, {"directory": PLATFORM}, environment)
    return f"{job.run.code} {job.outputs.get('class')}"


def github_diff_of_a_first_push(root: Path, environment: Mapping[str, str]) -> str:
    context = {"GITHUB_EVENT_NAME": "push", "GITHUB_REF_NAME": "main", "repository.default_branch": "main"}
    event = {**context, "before": action.NOTHING_BEFORE, "GITHUB_SHA": git(root, "rev-parse", "HEAD")}
    job = action.run_step(action.DIFF, root, event, {"directory": PLATFORM}, environment)
    return f"{job.run.code} {'cluster is added' in job.summary}"


def github_draw(root: Path, environment: Mapping[str, str]) -> str:
    context = {"diff.outputs.range": "HEAD^1...HEAD"}
    job = action.run_step(action.DRAW, root, context, {"directory": PLATFORM}, environment)
    page = Path(job.outputs["page"]).read_text(encoding="utf-8") if "page" in job.outputs else ""
    has_changes = 'id="changes"' in page
    return f"{job.run.code} {has_changes} {found(page)}"


def github_comment(root: Path, environment: Mapping[str, str]) -> str:
    server = {"GITHUB_REPOSITORY": "a/b", "GITHUB_API_URL": "http://127.0.0.1:1", "diff.outputs.markdown": os.devnull}
    return action.run_step(action.COMMENT, root, server, {}, environment).run.out.partition(":")[0]


def a_gitlab_job(name: str, **variables: str) -> Callable[[Path, Mapping[str, str]], str]:
    """Run a job: how it ends, and the class or the codes that its first artifact tells."""

    def answer(root: Path, environment: Mapping[str, str]) -> str:
        base = git(root, "rev-parse", "HEAD^1")
        known = {"GPUPLAN_DIRECTORY": PLATFORM, "CI_MERGE_REQUEST_DIFF_BASE_SHA": base, **variables}
        done = gitlab.job(root, gitlab.JOBS[name], **known, **environment)
        file = root / gitlab.JOBS[name]["artifacts"]["paths"][0]
        text = file.read_text(encoding="utf-8") if file.is_file() and not file.is_symlink() else "no artifact"
        changes = "changes " if 'id="changes"' in text or text.startswith("## gpuplan: quota") else ""
        posts = "posts " if "no comment was posted" in done.out else ""
        return f"{done.code} {changes}{posts}{found(text)}"

    return answer


def a_hook(name: str, *files: str) -> Callable[[Path, Mapping[str, str]], str]:
    """Run a hook as pre-commit does: with the commands of its environment first on the path."""

    def answer(root: Path, environment: Mapping[str, str]) -> str:
        bin_ = put_gpuplan(root.parent / "bin")
        command = [*shlex.split(HOOKS[name]["entry"]), *HOOKS[name].get("args", ())]
        path = {"PATH": f"{bin_}{os.pathsep}{environment.get('PATH', os.environ['PATH'])}"}
        options = () if files else ("--directory", PLATFORM)
        done = shell([*command, *options, *files], root, {**environment, **path})
        return f"{done.code} {found(done.out)}"

    return answer


def generate(root: Path, environment: Mapping[str, str]) -> str:
    done = in_argo_cd(plugin.GENERATE, root, environment)
    return f"{done.code} {len(list(yaml.safe_load_all(done.out)))} {found(done.err)}"


def discover(root: Path, environment: Mapping[str, str]) -> str:
    done = in_argo_cd(plugin.DISCOVER, root, environment)
    return f"{done.code} {done.out.strip()}"


def in_argo_cd(command: Sequence[str], root: Path, environment: Mapping[str, str]) -> Run:
    bin_ = put_gpuplan(root.parent / "bin")
    return shell(command, root / PLATFORM, {"PARAM_CLUSTER": "dev", **environment}, path=bin_)


TOKEN = {"GPUPLAN_TOKEN": "secret", "CI_API_V4_URL": "http://127.0.0.1:1"} | {
    f"CI_MERGE_REQUEST_{name}": "1" for name in ("PROJECT_ID", "IID")
}
GITLAB = {
    "gitlab: gpuplan": Step(a_gitlab_job("gpuplan"), "0 nothing", "1 GPU023"),
    "gitlab: gpuplan-files": Step(
        a_gitlab_job("gpuplan-files", GPUPLAN_CHECK_FILES=f"{PLATFORM}/quota.yaml"), "1 GPU620", "1 GPU620"
    ),
    "gitlab: gpuplan-diff": Step(
        a_gitlab_job("gpuplan-diff", **TOKEN), "0 changes posts nothing", "0 changes posts nothing"
    ),
    "gitlab: gpuplan-report": Step(a_gitlab_job("gpuplan-report"), "0 changes nothing", "0 changes GPU023"),
}
STEPS = {
    "github: check": Step(github_check, "clean nothing", "findings GPU023"),
    "github: check from above": Step(github_check_from_above, "clean nothing True", "findings GPU023 True"),
    "github: files": Step(github_files, "findings GPU620", "findings GPU620"),
    "github: files from above": Step(github_files_from_above, "findings GPU620 True", "findings GPU620 True"),
    "github: diff": Step(github_diff, "0 quota", "0 quota"),
    "github: diff of a first push": Step(github_diff_of_a_first_push, "0 True", "0 True"),
    "github: draw": Step(github_draw, "0 True nothing", "0 True GPU023"),
    "github: comment": Step(github_comment, "no comment was posted", "no comment was posted"),
    **GITLAB,
    "hook: gpuplan-validate": Step(a_hook("gpuplan-validate"), "0 nothing", "1 GPU023"),
    "hook: gpuplan-build-check": Step(a_hook("gpuplan-build-check"), "0 nothing", "1 GPU023"),
    "hook: gpuplan-check": Step(a_hook("gpuplan-check", f"{PLATFORM}/quota.yaml"), "1 GPU620", "1 GPU620"),
}
ARGO_CD = {
    "argo cd: generate": Step(generate, "0 20 nothing", "1 0 GPU023"),
    "argo cd: discover": Step(discover, "0 overlays/dev/cluster.yaml", "0 overlays/dev/cluster.yaml"),
}
"""They run in an image, which says what is on the path."""


# --- The table ----------------------------------------------------------------------------------------------------


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The second commit of a repository, which takes GPUs of a tenant, and a folder of somebody else beside it."""
    write(tmp_path / "outside/file", "somebody else's\n")
    root = a_repository(tmp_path / "workspace/checkout")
    write(a_platform(root / PLATFORM) / "quota.yaml", QUOTA)
    commit(root, "base")
    write(root / PLATFORM / "policies/tenant.yaml", TENANT.replace("guaranteed: 16", "guaranteed: 12"))
    assert run("build", "--quiet", cwd=root / PLATFORM).code == 0
    return root


def rows() -> Iterator[tuple[str, str]]:
    """Yield each form with each step that it could concern."""
    without_git = ("github: comment", "hook: gpuplan-check", "argo cd: discover")
    for forms, steps in (
        (REPOSITORIES, (STEPS | ARGO_CD).keys() - without_git),
        (PYTHON, STEPS | ARGO_CD),
        (COMMANDS, STEPS),
        (TAKEN, GITLAB),
    ):
        yield from ((form, step) for form in forms for step in sorted(steps))


FORMS = REPOSITORIES | PYTHON | COMMANDS | TAKEN


def answer(checkout: Path, form: Form, step: Step) -> str:
    """Commit what a branch holds, and run a step on it. Nothing of the branch runs, and nothing outside changes."""
    trap = checkout.parent.parent / "trap"
    write(trap / "run", f"#!/bin/sh\necho >> '{trap}/sprung'\n")
    (trap / "run").chmod(0o755)
    form.plant(checkout, f"{trap}/run")
    git(checkout, "add", "--all", "--force")
    commit(checkout, "branch")
    folders = os.pathsep.join([str(checkout.parent / "bin"), os.environ["PATH"]])
    environment = {name: value.replace("FOLDERS", folders) for name, value in form.environment.items()}

    said = step.answer(checkout, environment)

    assert not (trap / "sprung").exists(), "a command of the branch ran"
    outside = checkout.parent.parent / "outside"
    assert {path.name: path.read_text() for path in outside.iterdir()} == {"file": "somebody else's\n"}
    return said


@pytest.mark.parametrize("step", STEPS | ARGO_CD)
def test_what_a_branch_without_such_files_is_answered(checkout: Path, step: str) -> None:
    every = STEPS | ARGO_CD

    assert answer(checkout, Form(lambda root, command: None), every[step]) == every[step].honest


@pytest.mark.parametrize(("form", "step"), list(rows()))
def test_nothing_of_a_branch_runs_leaves_or_lies(checkout: Path, form: str, step: str) -> None:
    honest, when_embedded = (STEPS | ARGO_CD)[step][1:]

    said = answer(checkout, FORMS[form], (STEPS | ARGO_CD)[step])

    assert said == (when_embedded if (checkout / PLATFORM / "HEAD").exists() else honest)


# --- What else is read by name ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "environment", [NOTHING, *(form.environment for form in (*PYTHON.values(), *COMMANDS.values()))]
)
def test_a_package_of_the_workspace_is_installed_and_nothing_beside_it_runs(
    checkout: Path, environment: Mapping[str, str]
) -> None:
    (checkout / "dist").mkdir()
    with zipfile.ZipFile(checkout / "dist/probe-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("probe.py", "")
        wheel.writestr("probe-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: probe\nVersion: 1\n")
        wheel.writestr("probe-1.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("probe-1.dist-info/RECORD", "")
    python = Path(sys.executable).parent

    def install(root: Path, given: Mapping[str, str]) -> str:
        path = {"PATH": given.get("PATH", "").partition("/")[0] + f"{python}{os.pathsep}{os.environ['PATH']}"}
        job = action.run_step(action.INSTALL, root, {}, {"package": "dist/probe-1-py3-none-any.whl"}, {**given, **path})
        return f"{job.run.code}{job.run.err}"

    def everything(root: Path, command: str) -> None:
        modules(*MODULES, ENCODINGS)(root, command)
        programs(root, command)
        for name in ("pip.conf", "pip.ini", "setup.cfg", ".pydistutils.cfg"):
            write(root / name, "[global]\nindex-url = http://127.0.0.1:1\n[install]\nprefix = elsewhere\n")

    assert answer(checkout, Form(everything, environment), Step(install, "0", "0")) == "0"
    assert list((checkout.parent / "runner/gpuplan").glob("lib/*/site-packages/probe.py"))


def test_steps_give_git_what_gpuplan_gives_it() -> None:
    script = f". {REPOSITORY}/integrations/git.sh; git config --list"

    listed = shell(["sh", "-ec", script], Path("/"), {"HOME": os.devnull}).out.splitlines()

    expected = {f"{name.lower()}={value}" for name, value in SETTINGS.items() if name != "core.bigFileThreshold"}
    assert {line for line in listed if line.startswith(tuple(expected))} == expected
    assert "safe.directory=*" in listed
