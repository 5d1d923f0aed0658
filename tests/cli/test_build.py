"""`gpuplan build`: what it writes, what it refuses, and what it says about it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from syrupy.assertion import SnapshotAssertion

from gpuplan.compiler.planning.plan import Stage
from gpuplan.terminal.options import STAGES
from tests.cli.platforms import CLUSTER, POOL, PRIORITY, a_broken_platform, a_platform, write
from tests.cli.runs import run, spawn
from tests.kustomizing import kustomize

REPOSITORY = Path(__file__).parents[2]
STAGE = ("--stage", "scheduling")


def a_built_platform(root: Path, *clusters: str) -> Path:
    a_platform(root, *clusters)
    assert run("build", "-q", cwd=root).code == 0
    return root


def files(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


# --- Writing -----------------------------------------------------------------------------------------------------


def test_the_output_is_written_and_counted(tmp_path: Path) -> None:
    done = run("build", cwd=a_platform(tmp_path))

    written = len(files(tmp_path / "out")) - 2  # the inventory does not count itself, nor what Git is told by
    assert (done.code, done.out) == (0, "")
    assert done.err.splitlines()[-1] == f"{written} created in out/ ({written} files)"
    assert "out/dev/kustomization.yaml" in files(tmp_path)


def test_a_second_build_changes_nothing(tmp_path: Path) -> None:
    root = a_built_platform(tmp_path)
    before = files(root)

    done = run("build", cwd=root)

    assert done.code == 0
    assert done.err.splitlines()[-1].startswith("out/ is current (")
    assert files(root) == before


def test_every_change_is_named_when_asked(tmp_path: Path) -> None:
    root = a_built_platform(tmp_path)
    write(root / "policies/priority.yaml", PRIORITY.replace("100", "200"))

    done = run("build", "-v", cwd=root)

    assert "changed     out/dev/scheduling/priorityclass-research.yaml\n" in done.err


def test_a_policy_with_errors_writes_nothing(tmp_path: Path) -> None:
    done = run("build", cwd=a_broken_platform(tmp_path))

    assert done.code == 1
    assert done.out.startswith("error[GPU101]")
    assert done.err.splitlines()[-1] == "nothing was written"
    assert not (tmp_path / "out").exists()


def test_a_cluster_that_is_gone_is_pruned(tmp_path: Path) -> None:
    root = a_built_platform(tmp_path, "dev", "prod")
    (root / "overlays/prod/cluster.yaml").unlink()
    (root / "overlays/prod").rmdir()

    assert run("build", "--prune-clusters", cwd=root).code == 0
    assert not (root / "out/prod").exists()


def test_one_cluster_can_be_built_without_touching_others(tmp_path: Path) -> None:
    root = a_built_platform(tmp_path, "dev", "prod")
    before = files(root / "out/prod")
    write(root / "policies/priority.yaml", PRIORITY.replace("100", "200"))

    done = run("build", "--cluster", "dev", cwd=root)

    assert done.code == 0
    assert done.err.splitlines()[-1].startswith("1 changed in out/")
    assert files(root / "out/prod") == before


def test_a_hand_edit_is_not_undone(tmp_path: Path) -> None:
    root = a_built_platform(tmp_path)
    edited = root / "out/dev/kustomization.yaml"
    write(edited, "by: hand\n")

    done = run("build", "--output-format", "concise", cwd=root)

    assert done.code == 1
    assert done.out.startswith("out/dev/kustomization.yaml:1:1: error[GPU901] ")
    assert done.err.splitlines()[-1] == "nothing was written"
    assert edited.read_text() == "by: hand\n"


def test_force_undoes_a_hand_edit(tmp_path: Path) -> None:
    root = a_built_platform(tmp_path)
    before = files(root)
    write(root / "out/dev/kustomization.yaml", "by: hand\n")

    done = run("build", "--force", cwd=root)

    assert done.code == 0
    assert done.err.splitlines()[-1].startswith("1 overwritten in out/")
    assert files(root) == before


def test_the_output_may_lie_elsewhere(tmp_path: Path) -> None:
    root = a_platform(tmp_path / "platform")

    done = run("build", "-C", "platform", "--out", "../rendered", cwd=tmp_path)

    assert done.code == 0, done.err
    assert (tmp_path / "rendered/dev/kustomization.yaml").is_file()
    assert not (root / "out").exists()


@pytest.mark.parametrize(
    "out", ["policies", "policies/deep/er", "overlays", "overlays/dev", "../link", "./out/../policies"]
)
def test_the_output_never_gets_among_the_policies(tmp_path: Path, out: str) -> None:
    root = a_platform(tmp_path / "platform")
    (tmp_path / "link").symlink_to("platform/policies")
    before = files(root)

    done = run("build", "--out", out, cwd=root)

    assert (done.code, done.out) == (2, "")
    assert "from where policies are read" in done.err
    assert files(root) == before


def test_the_root_itself_can_be_the_output_unless_a_cluster_is_called_as_an_input(tmp_path: Path) -> None:
    assert run("build", "--out", ".", cwd=a_platform(tmp_path / "one", "dev")).code == 0
    assert run("build", "--out", ".", cwd=a_platform(tmp_path / "two", "policies")).code == 2


def test_no_name_is_no_folder(tmp_path: Path) -> None:
    assert run("build", "--out", "", cwd=a_platform(tmp_path)).code == 2


@pytest.mark.parametrize("out", ["out", "deep/er", "../rendered", "../link", "ABSOLUTE"])
def test_components_are_found_from_wherever_the_output_is(tmp_path: Path, out: str) -> None:
    root = a_platform(tmp_path / "fleet")
    (tmp_path / "far/away").mkdir(parents=True)
    (tmp_path / "link").symlink_to("far/away")
    component = root / "overlays/dev/kustomize/scheduling"
    text = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [config.yaml]\n"
    write(component / "kustomization.yaml", text)
    write(component / "config.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: y}\n")
    folder = out.replace("ABSOLUTE", str(tmp_path / "absolute"))

    assert run("build", "--out", folder, cwd=root).code == 0

    scheduling = (root / folder / "dev/scheduling").resolve()
    (path,) = yaml.safe_load((scheduling / "kustomization.yaml").read_text())["components"]
    assert (scheduling / path).resolve() == component.resolve()


@pytest.mark.parametrize("options", [(), ("-v",)])
def test_nothing_is_listed_that_was_not_checked(tmp_path: Path, options: tuple[str, ...]) -> None:
    said = run(*options, "build", cwd=a_platform(tmp_path)).err

    assert "not checked" not in said
    assert "NodeFeatureRule" not in said


# --- Checking ----------------------------------------------------------------------------------------------------


def test_check_is_quiet_about_a_current_output(tmp_path: Path) -> None:
    done = run("build", "--check", cwd=a_built_platform(tmp_path))

    assert (done.code, done.out) == (0, "")
    assert done.err.splitlines()[-1].startswith("out/ is current (")


def test_check_names_what_is_stale_and_writes_nothing(tmp_path: Path) -> None:
    root = a_built_platform(tmp_path)
    write(root / "policies/priority.yaml", PRIORITY.replace("100", "200"))
    before = files(root)

    done = run("build", "--check", "--output-format", "concise", cwd=root)

    assert done.code == 1
    assert done.out == (
        "out/dev/scheduling/priorityclass-research.yaml:1:1: error[GPU903] "
        "`out/dev/scheduling/priorityclass-research.yaml` is not what the policies say now\n"
    )
    assert files(root) == before


def test_check_before_the_first_build_fails(tmp_path: Path) -> None:
    assert run("build", "--check", cwd=a_platform(tmp_path)).code == 1
    assert not (tmp_path / "out").exists()


def test_what_is_stale_comes_in_any_format(tmp_path: Path) -> None:
    root = a_built_platform(tmp_path)
    (root / "out/dev/kustomization.yaml").unlink()

    report = json.loads(run("build", "--check", "--output-format", "json", cwd=root).out)

    assert [item["code"] for item in report["diagnostics"]] == ["GPU903"]
    assert report["valid"] is False


def test_diff_shows_what_would_change_and_nothing_else_on_stdout(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    root = a_built_platform(tmp_path)
    write(root / "policies/priority.yaml", PRIORITY.replace("100", "200"))

    done = run("build", "--diff", cwd=root)

    assert done.code == 1
    assert done.out == snapshot
    assert "value: 100" in (root / "out/dev/scheduling/priorityclass-research.yaml").read_text()


def test_diff_of_a_current_output_is_empty(tmp_path: Path) -> None:
    done = run("build", "--diff", cwd=a_built_platform(tmp_path))

    assert (done.code, done.out) == (0, "")


def test_a_diff_can_be_applied(tmp_path: Path) -> None:
    root = a_built_platform(tmp_path)
    write(root / "policies/pool.yaml", POOL.replace("replicas: 3", "replicas: 2"))
    patch = run("build", "--diff", cwd=root).out

    subprocess.run(["git", "apply", "-"], input=patch, text=True, cwd=root, check=True)

    assert run("build", "--diff", cwd=root).out == ""


def test_a_diff_beside_errors_leaves_stdout_to_itself(tmp_path: Path) -> None:
    done = run("build", "--diff", cwd=a_broken_platform(tmp_path))

    assert (done.code, done.out) == (1, "")
    assert "error[GPU101]" in done.err


# --- To stdout ---------------------------------------------------------------------------------------------------


def test_stdout_is_a_stream_of_objects_and_nothing_else(tmp_path: Path) -> None:
    done = run("build", "--stdout", cwd=a_platform(tmp_path))

    objects = list(yaml.safe_load_all(done.out))
    assert done.code == 0
    assert {"Namespace", "ResourceQuota", "PriorityClass"} <= {item["kind"] for item in objects}
    assert all({"apiVersion", "kind", "metadata"} <= item.keys() for item in objects)
    assert "Kustomization" not in {item["kind"] for item in objects}
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("cluster", ["dev", "prod"])
def test_stdout_has_each_namespace_before_what_lies_in_it(cluster: str) -> None:
    """So that `kubectl apply -f -` takes it as it is."""
    made = set()
    early = []
    for item in yaml.safe_load_all(run("build", "--stdout", "--cluster", cluster, cwd=REPOSITORY).out):
        if item["kind"] == "Namespace":
            made.add(item["metadata"]["name"])
        elif (namespace := item["metadata"].get("namespace")) and namespace not in made:
            early.append((namespace, item["kind"], item["metadata"]["name"]))

    assert made
    assert [item for item in early if item[0] in made] == []


def test_stdout_needs_one_cluster(tmp_path: Path) -> None:
    root = a_platform(tmp_path, "dev", "prod")

    both = run("build", "--stdout", cwd=root)
    one = run("build", "--stdout", "--cluster", "prod", cwd=root)

    assert (both.code, both.out) == (2, "")
    assert "choose with --cluster among dev, prod" in both.err
    assert one.code == 0
    assert one.out


def test_stdout_is_never_empty_with_exit_code_0(tmp_path: Path) -> None:
    write(tmp_path / "overlays/dev/cluster.yaml", CLUSTER.replace("NAME", "dev").replace("helm", "external"))

    done = run("build", "--stdout", cwd=tmp_path)

    assert done.out or done.code == 1
    assert done.out or "no objects to print" in done.err


def test_stdout_beside_errors_is_empty_and_says_why(tmp_path: Path) -> None:
    done = run("build", "--stdout", cwd=a_broken_platform(tmp_path))

    assert (done.code, done.out) == (1, "")
    assert "error[GPU101]" in done.err


def objects(stream: str) -> list[str]:
    return sorted(f"{item['kind']} {item['metadata']['name']}" for item in yaml.safe_load_all(stream))


def kinds(stream: str) -> set[str]:
    return {item["kind"] for item in yaml.safe_load_all(stream)}


def test_stdout_prints_one_stage(tmp_path: Path) -> None:
    root = a_platform(tmp_path)

    assert kinds(run("build", "--stdout", "--stage", "scheduling", cwd=root).out) >= {"PriorityClass"}
    assert kinds(run("build", "--stdout", "--stage", "partitions/", cwd=root).out) == {"NodeFeatureRule"}
    assert "Namespace" in kinds(run("build", "--stdout", "--stage", "namespaces/research", cwd=root).out)


def test_the_stages_together_are_all_there_is(tmp_path: Path) -> None:
    root = a_platform(tmp_path)
    parts = [option for stage in STAGES for option in ("--stage", stage)]

    assert run("build", "--stdout", *parts, cwd=root).out == run("build", "--stdout", cwd=root).out


@pytest.mark.parametrize("stage", ["monitoring", "namespaces/reserch", "namespaces/res", "scheduling/research"])
def test_a_stage_without_objects_is_no_success(tmp_path: Path, stage: str) -> None:
    done = run("build", "--stdout", "--stage", stage, cwd=a_platform(tmp_path))

    assert (done.code, done.out) == (1, "")
    assert done.err.endswith(f"cluster `dev` has no objects to print in `{stage}`\n")


@pytest.mark.parametrize("options", [("--stdout", "--stage", "schedulin"), ("--stdout", "--stage", ""), STAGE])
def test_a_stage_is_known_and_to_be_printed(tmp_path: Path, options: tuple[str, ...]) -> None:
    done = run("build", *options, cwd=a_platform(tmp_path))

    assert (done.code, done.out) == (2, "")


def test_the_stages_of_the_option_are_all_there_are() -> None:
    assert tuple(stage.value for stage in Stage) == STAGES


COMPONENT = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [config.yaml]\n"
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: y}\n"


def with_component(root: Path, stage: str) -> Path:
    a_platform(root)
    write(root / f"overlays/dev/kustomize/{stage}/kustomization.yaml", COMPONENT)
    write(root / f"overlays/dev/kustomize/{stage}/config.yaml", CONFIG)
    return root


@pytest.mark.parametrize(
    ("stages", "folder"),
    [
        ((), ""),
        (("--stage", "namespaces"), "namespaces/research"),
        (("--stage", "namespaces/research"), "namespaces/research"),
    ],
)
def test_stdout_has_what_a_component_makes_of_it(tmp_path: Path, stages: tuple[str, ...], folder: str) -> None:
    root = with_component(tmp_path, "namespaces/research")
    assert run("build", "-q", cwd=root).code == 0
    built = kustomize(root / "out/dev" / folder)

    done = run("build", "--stdout", *stages, cwd=root)

    assert done.code == 0, done.err
    assert objects(done.out) == objects(built)
    assert "ConfigMap x" in objects(done.out)


@pytest.mark.parametrize("stages", [(), ("--stage", "namespaces"), ("--stage", "namespaces/research")])
def test_stdout_never_leaves_out_what_a_component_adds(tmp_path: Path, stages: tuple[str, ...]) -> None:
    root = with_component(tmp_path, "namespaces/research")

    done = run("build", "--stdout", "--kustomize", "off", *stages, cwd=root)

    assert (done.code, done.out) == (2, "")
    assert "hand-written Components change what is in `out/dev/namespaces/research/`" in done.err


@pytest.mark.parametrize("component", ["namespaces/research", "partitions"])
def test_stages_without_components_are_printed_all_the_same(tmp_path: Path, component: str) -> None:
    root = with_component(tmp_path, component)

    stages = ("--stage", "scheduling", "--stage", "gpu-operator")
    assert run("build", "--stdout", "--kustomize", "off", *stages, cwd=root).code == 0


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("exit 0", "kustomize makes no objects of `out/dev/namespaces/research/`, where there are some"),
        ("echo 'hello: ['", "kustomize says: what are no objects"),
    ],
)
def test_stdout_prints_nothing_that_a_program_makes_up(tmp_path: Path, script: str, reason: str) -> None:
    root = with_component(tmp_path, "namespaces/research")
    program = root / "kustomize"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)

    done = run("build", "--stdout", "--kustomize", str(program), cwd=root)

    assert done.code != 0
    assert done.out == ""
    assert reason in done.err


# --- Usage -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [("--check", "--stdout"), ("--diff", "--stdout"), ("--check", "--force"), ("--stdout", "--force")]
)
def test_options_that_contradict_each_other_are_bad_usage(tmp_path: Path, options: tuple[str, ...]) -> None:
    done = run("build", *options, cwd=a_platform(tmp_path))

    assert (done.code, done.out) == (2, "")
    assert "Usage: gpuplan build" in done.err


@pytest.mark.parametrize(
    ("arguments", "code"), [(("build",), 0), (("build", "--check"), 1), (("build", "--check", "--force"), 2)]
)
def test_a_process_ends_as_told(tmp_path: Path, arguments: tuple[str, ...], code: int) -> None:
    assert spawn(*arguments, cwd=a_platform(tmp_path)).code == code


def test_two_machines_write_the_same_bytes(tmp_path: Path) -> None:
    """Neither the hash seed, nor the time zone, nor the folder, nor the locale reaches the output."""
    one = a_platform(tmp_path / "one", "dev", "prod")
    other = a_platform(tmp_path / "another place", "prod", "dev")

    assert spawn("build", cwd=one, env={"PYTHONHASHSEED": "1", "TZ": "UTC", "LANG": "C"}).code == 0
    assert spawn("build", cwd=other, env={"PYTHONHASHSEED": "2", "TZ": "Asia/Tokyo", "LANG": "C.UTF-8"}).code == 0

    assert files(one / "out") == files(other / "out")


def test_a_build_can_be_run_by_any_python(tmp_path: Path) -> None:
    """The entry point of the package is what the script calls."""
    program = "import sys; sys.argv = ['gpuplan', 'build', '-q']; from gpuplan.cli import entry; entry()"
    root = a_platform(tmp_path)

    done = subprocess.run(
        [sys.executable, "-c", program], cwd=root, env={"PYTHONPATH": str(Path(__file__).parents[2])}, check=False
    )

    assert done.returncode == 0
