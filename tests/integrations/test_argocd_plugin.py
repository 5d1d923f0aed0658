"""gpuplan as a config management plugin of Argo CD: what it generates, where it applies, how it is put in place."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpuplan.compiler.planning.plan import Stage
from tests.cli.platforms import POOL, a_broken_platform, a_platform, write
from tests.cli.runs import REPOSITORY, Run, run
from tests.integrations.scripts import put_gpuplan, shell
from tests.kustomizing import kustomize

FOLDER = REPOSITORY / "integrations/argocd-plugin"
PLUGIN: dict[str, Any] = yaml.safe_load((FOLDER / "plugin.yaml").read_text(encoding="utf-8"))
GENERATE: list[str] = PLUGIN["spec"]["generate"]["command"]
DISCOVER: list[str] = PLUGIN["spec"]["discover"]["find"]["command"]
COMPONENT = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [config.yaml]\n"
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: y}\n"


def plugin(command: list[str], path: Path, variables: Mapping[str, str]) -> Run:
    """Run a command in an Application's path, with the variables that Argo CD makes of its parameters."""
    bin_ = next(folder / "bin" for folder in path.parents if (folder / "bin/gpuplan").exists())
    return shell(command, path, {"ARGOCD_APP_NAME": "x", **variables}, path=bin_)


def generate(path: Path, **parameters: str) -> Run:
    return plugin(GENERATE, path, {f"PARAM_{name.upper()}": value for name, value in parameters.items()})


def discover(path: Path) -> bool:
    done = plugin(DISCOVER, path, {})
    assert done.code == 0, done.err
    return bool(done.out)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    put_gpuplan(tmp_path / "bin")
    return tmp_path / "repository"


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


# --- Generate ----------------------------------------------------------------------------------------------------


def test_the_path_of_an_overlay_says_the_cluster(root: Path) -> None:
    a_platform(root, "dev", "prod")

    done = generate(root / "overlays/prod")

    assert (done.code, done.err) == (0, "")
    assert done.out == run("build", "--stdout", "--cluster", "prod", cwd=root).out


def test_at_the_root_a_parameter_says_the_cluster(root: Path) -> None:
    a_platform(root, "dev", "prod")

    assert generate(root, cluster="prod").out == generate(root / "overlays/prod").out
    assert generate(root).code == 2
    assert generate(root).out == ""


def test_a_stage_is_an_application_of_its_own(root: Path) -> None:
    a_platform(root)

    done = generate(root / "overlays/dev", stage="partitions")

    assert [item["kind"] for item in yaml.safe_load_all(done.out)] == ["NodeFeatureRule"]


@pytest.mark.parametrize("cluster", ["dev", "prod", "openshift"])
def test_what_is_generated_is_what_kustomize_builds(root: Path, cluster: str) -> None:
    for folder in ("policies", "overlays"):
        shutil.copytree(REPOSITORY / folder, root / folder)

    assert run("build", "-q", cwd=root).code == 0

    done = generate(root / "overlays" / cluster)

    assert done.code == 0, done.err
    built = list(yaml.safe_load_all(kustomize(root / "out" / cluster)))
    assert sorted(map(yaml.safe_dump, yaml.safe_load_all(done.out))) == sorted(map(yaml.safe_dump, built))


def test_nothing_is_written_beside_the_policies(root: Path) -> None:
    a_platform(root)
    before = files(root)

    assert generate(root / "overlays/dev").code == 0
    assert files(root) == before


def test_warnings_stay_out_of_the_objects(root: Path) -> None:
    a_platform(root)
    write(root / "policies/pool.yaml", f"# gpuplan: ignore[GPU203] for a test\n{POOL}")

    done = generate(root / "overlays/dev")

    assert done.code == 0
    assert "warning[GPU112]" in done.err
    assert all(item["metadata"]["name"] for item in yaml.safe_load_all(done.out))


# --- Rather fail than print nothing, which Argo CD would take for "prune everything" -----------------------------


def fails(done: Run, *, saying: str) -> None:
    assert done.code != 0
    assert done.out == ""
    assert saying in done.err


def test_wrong_policies_fail(root: Path) -> None:
    fails(generate(a_broken_platform(root) / "overlays/dev"), saying="policies/tenant.yaml:10:12: error[GPU101]")


def test_an_unknown_cluster_fails(root: Path) -> None:
    fails(generate(a_platform(root), cluster="prod"), saying="no cluster `prod`")


def test_an_unknown_stage_fails(root: Path) -> None:
    fails(generate(a_platform(root) / "overlays/dev", stage="schedulin"), saying="'schedulin' is not one of")


def test_a_stage_without_objects_fails(root: Path) -> None:
    done = generate(a_platform(root) / "overlays/dev", stage="monitoring")

    fails(done, saying="cluster `dev` has no objects to print in `monitoring`")


def test_a_parameter_that_contradicts_the_path_fails(root: Path) -> None:
    a_platform(root, "dev", "prod")

    fails(generate(root / "overlays/dev", cluster="prod"), saying="the path is that of cluster dev")


@pytest.mark.parametrize("path", ["policies", "out/dev"])
def test_another_path_fails(root: Path, path: str) -> None:
    a_platform(root)
    (root / path).mkdir(parents=True, exist_ok=True)

    fails(generate(root / path), saying="the path is neither overlays/<cluster> nor")


def a_component(root: Path) -> Path:
    a_platform(root)
    write(root / "overlays/dev/kustomize/scheduling/kustomization.yaml", COMPONENT)
    write(root / "overlays/dev/kustomize/scheduling/config.yaml", CONFIG)
    return root


def test_what_a_component_adds_is_not_left_out(root: Path) -> None:
    path = a_component(root) / "overlays/dev"

    fails(
        plugin(GENERATE, path, {"GPUPLAN_KUSTOMIZE": "off"}),
        saying="hand-written Components change what is in `out/dev/scheduling/`",
    )
    assert plugin(GENERATE, path, {"GPUPLAN_KUSTOMIZE": "off", "PARAM_STAGE": "partitions"}).code == 0


def test_what_a_component_adds_is_there_where_the_image_has_kustomize(root: Path) -> None:
    path = a_component(root) / "overlays/dev"
    assert run("build", "-q", cwd=root).code == 0
    built = kustomize(root / "out/dev/scheduling")

    done = generate(path, stage="scheduling")

    assert done.code == 0, done.err
    assert names(done.out) == names(built)
    assert "ConfigMap x" in names(done.out)


def names(stream: str) -> list[str]:
    return sorted(f"{item['kind']} {item['metadata']['name']}" for item in yaml.safe_load_all(stream))


@pytest.mark.parametrize("value", ["$(touch pwned)", "dev; touch pwned", "--out=pwned", "dev --force", "-h", "--help"])
@pytest.mark.parametrize("name", ["cluster", "stage"])
def test_no_parameter_is_run_or_read_as_an_option(root: Path, name: str, value: str) -> None:
    fails(generate(a_platform(root), **{name: value}), saying=value)
    assert not list(root.parent.rglob("pwned"))


# --- Discover ----------------------------------------------------------------------------------------------------


def test_a_platform_and_its_overlays_are_found(root: Path) -> None:
    a_platform(root)

    assert discover(root)
    assert discover(root / "overlays/dev")


def test_what_gpuplan_writes_is_left_to_kustomize(root: Path) -> None:
    assert run("build", "-q", cwd=a_platform(root)).code == 0

    assert not any(discover(folder) for folder in (root / "out").rglob("*") if folder.is_dir())


def test_overlays_of_somebody_else_are_not_found(root: Path) -> None:
    write(root / "overlays/dev/kustomization.yaml", "resources: [../../base]\n")
    write(root / "base/kustomization.yaml", "resources: []\n")

    assert not any(discover(root / path) for path in (".", "overlays/dev", "base"))


# --- In place ----------------------------------------------------------------------------------------------------


def test_the_plugin_is_described_in_argo_cds_words() -> None:
    """https://github.com/argoproj/argo-cd/blob/master/cmpserver/plugin/config.go."""
    assert (PLUGIN["apiVersion"], PLUGIN["kind"]) == ("argoproj.io/v1alpha1", "ConfigManagementPlugin")
    assert PLUGIN["metadata"] == {"name": "gpuplan"}
    assert PLUGIN["spec"].keys() == {"discover", "generate", "parameters"}
    announced = PLUGIN["spec"]["parameters"]["static"]
    assert [item["name"] for item in announced] == ["cluster", "stage"]
    assert all(item.keys() == {"name", "title", "tooltip", "collectionType"} for item in announced)


def test_every_stage_is_named_where_one_is_chosen() -> None:
    [tooltip] = [item["tooltip"] for item in PLUGIN["spec"]["parameters"]["static"] if item["name"] == "stage"]

    *first, last = Stage

    assert tooltip.startswith(f"{', '.join(first)} or {last}, or one pool or namespace of it")


def test_the_sidecar_joins_the_repo_server(tmp_path: Path) -> None:
    repo_server = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "argocd-repo-server"},
        "spec": {
            "selector": {"matchLabels": {"app": "x"}},
            "template": {
                "metadata": {"labels": {"app": "x"}},
                "spec": {
                    "containers": [{"name": "argocd-repo-server", "image": "argocd"}],
                    "volumes": [{"name": "var-files"}, {"name": "plugins"}, {"name": "tmp"}],
                },
            },
        },
    }
    shutil.copytree(FOLDER, tmp_path / "argocd-plugin")
    write(tmp_path / "argocd/deployment.yaml", yaml.safe_dump(repo_server))
    images = [{"name": "gpuplan", "newName": "registry.example.com/gpuplan", "newTag": "0.1.0"}]
    kustomization = {"resources": ["deployment.yaml"], "components": ["../argocd-plugin"], "images": images}
    write(tmp_path / "argocd/kustomization.yaml", yaml.safe_dump(kustomization))

    spec = yaml.safe_load(kustomize(tmp_path / "argocd"))["spec"]["template"]["spec"]

    sidecar = next(item for item in spec["containers"] if item["name"] == "gpuplan")
    mounts = {mount["name"]: mount["mountPath"] for mount in sidecar["volumeMounts"]}
    assert "argocd-repo-server" in [item["name"] for item in spec["containers"]]
    assert sidecar["image"] == "registry.example.com/gpuplan:0.1.0"
    assert sidecar["command"] == ["/var/run/argocd/argocd-cmp-server"]
    assert sidecar["securityContext"]["runAsUser"] == 999
    assert sidecar["securityContext"]["readOnlyRootFilesystem"] is True
    assert mounts.pop("gpuplan-tmp") == "/tmp"  # not the repo server's own
    assert mounts == {"var-files": "/var/run/argocd", "plugins": "/home/argocd/cmp-server/plugins"}
    assert mounts.keys() <= {volume["name"] for volume in spec["volumes"]}
