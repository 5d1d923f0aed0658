"""What Argo CD and Flux are told: which folders there are, what is in each, and for which clusters."""

from __future__ import annotations

import shutil
from collections import defaultdict
from pathlib import Path
from posixpath import normpath

import pytest
import yaml

from gpuplan.compiler.delivery import Folder
from gpuplan.compiler.manifests import Identity
from gpuplan.compiler.pipeline import build, rendering, validate

REPOSITORY = Path(__file__).parents[3]
COMPONENT = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n"
ARGO_CD = "  argocd: {repoURL: https://git.example.com/platform/gpu.git}\n"
FLUX = "  flux: {}\n"


@pytest.fixture
def platform(tmp_path: Path) -> Path:
    """A copy of the example platform that nobody syncs."""
    for folder in ("policies", "overlays"):
        shutil.copytree(REPOSITORY / folder, tmp_path / folder)
    for file in tmp_path.glob("overlays/*/cluster.yaml"):
        documents = yaml.safe_load(file.read_text())
        for field in ("argocd", "flux"):
            documents["spec"].pop(field, None)
        file.write_text(yaml.safe_dump(documents))
    return tmp_path


def synced_by(platform: Path, cluster: str, tool: str) -> None:
    file = platform / "overlays" / cluster / "cluster.yaml"
    file.write_text(file.read_text() + tool)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def folders(platform: Path, cluster: str) -> dict[str, Folder]:
    """What delivery is told of a cluster, by the folder's path."""
    report = validate(platform, [cluster])
    assert report.is_valid
    (plan,) = report.plans
    applied: defaultdict[str, set[Identity]] = defaultdict(set)
    for manifest in rendering._own_manifests(plan, applied, [], None):
        applied[manifest.folder].add(manifest.identity)
    components = rendering._components(plan, applied.keys())
    return {folder.path: folder for folder in rendering._folders(plan, applied, components)}


# --- Folders -----------------------------------------------------------------------------------------------------


def test_each_pool_and_each_namespace_is_a_folder(platform: Path) -> None:
    assert list(folders(platform, "dev")) == [
        "gpu-operator",
        "namespaces/development",
        "namespaces/model-services",
        "namespaces/research",
        "partitions/a100-mixed",
        "partitions/a100-shared",
        "scheduling",
        "workloads/model-services",
        "workloads/research",
    ]


def test_a_folder_without_objects_is_none(platform: Path) -> None:
    """Node groups outside the cluster get a table, which nothing applies."""
    assert not [path for path in folders(platform, "openshift") if path.startswith("partitions")]


def test_a_folder_has_its_generated_and_its_hand_written_objects(platform: Path) -> None:
    folder = platform / "overlays/dev/kustomize/namespaces/research"
    more = "resources: [limits.yaml]\nconfigMapGenerator:\n- {name: notes, namespace: research, literals: [a=b]}\n"
    write(folder / "kustomization.yaml", COMPONENT + more)
    write(folder / "limits.yaml", "apiVersion: v1\nkind: LimitRange\nmetadata: {name: cpu, namespace: research}\n")
    found = {f"{item.kind} {item.name}" for item in folders(platform, "dev")["namespaces/research"].identities}
    assert {"LimitRange cpu", "ConfigMap notes", "Namespace research", "ResourceQuota gpuplan"} <= found


def test_a_patch_adds_nothing(platform: Path) -> None:
    before = folders(platform, "dev")
    folder = platform / "overlays/dev/kustomize/namespaces/research"
    write(folder / "kustomization.yaml", COMPONENT + "patches: [{path: quota.yaml}]\n")
    quota = "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: gpuplan, namespace: research, labels: {a: b}}\n"
    write(folder / "quota.yaml", quota)
    assert folders(platform, "dev") == before


def test_a_folder_of_hand_written_objects_alone_is_one(platform: Path) -> None:
    folder = platform / "overlays/dev/kustomize/monitoring"
    write(folder / "kustomization.yaml", COMPONENT + "resources: [notes.yaml]\n")
    write(folder / "notes.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: notes, namespace: monitoring}\n")
    assert [item.name for item in folders(platform, "dev")["monitoring"].identities] == ["notes"]


# --- Components of pools -----------------------------------------------------------------------------------------


def component(platform: Path, path: str) -> None:
    patch = (
        "patches:\n- target: {kind: NodeFeatureRule}\n"
        "  patch: |\n    - {op: add, path: /metadata/labels, value: {a: b}}\n"
    )
    write(platform / "overlays" / path / "kustomization.yaml", COMPONENT + patch)


def includes(platform: Path, cluster: str) -> dict[str, list[str]]:
    tree = build(platform, [cluster]).tree
    texts = {path: yaml.safe_load(data) for path, data in tree.items() if path.endswith("kustomization.yaml")}
    return {path: text["components"] for path, text in texts.items() if "components" in text}


def test_a_component_for_all_pools_is_included_by_each(platform: Path) -> None:
    component(platform, "dev/kustomize/partitions")
    back = ["../../../../overlays/dev/kustomize/partitions"]
    assert includes(platform, "dev") == {
        "dev/partitions/a100-mixed/kustomization.yaml": back,
        "dev/partitions/a100-shared/kustomization.yaml": back,
    }


def test_a_component_for_one_pool_is_included_by_that_pool(platform: Path) -> None:
    component(platform, "dev/kustomize/partitions/a100-mixed")
    assert list(includes(platform, "dev")) == ["dev/partitions/a100-mixed/kustomization.yaml"]


def test_where_pools_have_no_folders_the_stage_includes_it(platform: Path) -> None:
    component(platform, "openshift/kustomize/partitions")
    assert list(includes(platform, "openshift")) == ["openshift/partitions/kustomization.yaml"]


@pytest.mark.parametrize("out", ["out", "build/gen"])
def test_argo_cd_finds_the_components_from_wherever_the_output_lies(platform: Path, out: str) -> None:
    component(platform, "dev/kustomize/scheduling")
    synced_by(platform, "dev", ARGO_CD)
    data = build(platform, ["dev"], out=out, kustomize="off").tree["argocd/dev/application-gpu-tenancy-dev.yaml"]
    paths = yaml.safe_load(data)["metadata"]["annotations"]["argocd.argoproj.io/manifest-generate-paths"].split(";")
    found = [normpath(f"{out}/dev/scheduling/{path}") for path in paths]
    assert found == [f"{out}/dev/scheduling", "overlays/dev/kustomize/scheduling"]


# --- The tools' folders ------------------------------------------------------------------------------------------


def test_each_tool_has_a_list_of_the_clusters_that_it_syncs(platform: Path) -> None:
    for name in ("dev", "openshift"):
        remote = f"{ARGO_CD[:-2]}, namespace: argocd, destination: {{name: {name}}}}}\n"
        synced_by(platform, name, remote)
    synced_by(platform, "prod", FLUX)
    tree = build(platform).tree
    assert yaml.safe_load(tree["argocd/kustomization.yaml"])["resources"] == ["dev", "openshift"]
    assert yaml.safe_load(tree["flux/kustomization.yaml"])["resources"] == ["prod"]


def test_where_nobody_syncs_there_is_no_folder(platform: Path) -> None:
    assert {path.partition("/")[0] for path in build(platform).tree} == {"dev", "openshift", "prod"}


def test_one_cluster_alone_speaks_for_its_own_folders(platform: Path) -> None:
    """The list of all clusters is not its to write."""
    synced_by(platform, "dev", ARGO_CD)
    alone = build(platform, ["dev"])
    assert alone.scope == ("dev", "argocd/dev", "flux/dev")
    assert "argocd/kustomization.yaml" not in alone.tree
    assert all(path.startswith(tuple(f"{folder}/" for folder in alone.scope)) for path in alone.tree)


def test_the_tools_own_objects_are_not_the_clusters(platform: Path) -> None:
    synced_by(platform, "dev", ARGO_CD)
    assert not [path for path in build(platform, ["dev"]).objects if not path.startswith("dev/")]
