"""Two platforms are compared: what applies each change, where it was written, and what lies below the policies."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuplan.compiler import pipeline
from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.compiler.manifests import Subject
from gpuplan.compiler.planning.appliers import Applier
from gpuplan.compiler.policy.models import KINDS, Approval
from gpuplan.features.changes.comparing import _BROKEN, Diff, Impact, Side, SideKind, choose_sides, compare_sides
from gpuplan.features.changes.step import documents_of
from tests.cli.platforms import CLUSTER, POOL, TENANT, a_platform, write
from tests.cli.runs import run
from tests.git import a_repository, commit
from tests.plans import a_plan

TRACED = Path(__file__).parents[2] / "laws/tracing/platforms"

ARGOCD = "  argocd: {repoURL: https://git.example.com/gpu.git, destination: {name: dev}}\n"
FLUX = "  flux: {source: {name: gpu}}\n"
LAYOUTS = """\
apiVersion: gpuplan.dev/v1
kind: MigLayout
metadata: {name: small}
spec: {gpu: A100-80GB, instances: {1g.10gb: 7}}
---
apiVersion: gpuplan.dev/v1
kind: MigLayout
metadata: {name: large}
spec: {gpu: A100-80GB, instances: {3g.40gb: 2}}
"""
MIG = POOL.replace("timeSlicing: {replicas: 3}", "mig: {layout: LAYOUT}") + (
    '  disruption: {approval: manual, windows: [{schedule: "0 2 * * 6", duration: 4h}]}\n'
)


def a_side(root: Path, layout: str = "small", cluster: str = ARGOCD) -> Side:
    """A platform of one pool with this layout, and of a team that has nothing of it."""
    a_platform(root)
    write(root / "overlays/dev/cluster.yaml", CLUSTER.replace("NAME", "dev") + cluster)
    write(root / "policies/layouts.yaml", LAYOUTS)
    write(root / "policies/pool.yaml", MIG.replace("LAYOUT", layout))
    write(root / "policies/tenant.yaml", TENANT[: TENANT.index("  quotas")] + "  quotas: []\n")
    return Side.work_tree(root)


def the_repartition(diff: Diff) -> Impact:
    [found] = [item for item in diff.impacts if item.change.change_class is ChangeClass.REPARTITION]
    return found


def partitions(impact: Impact) -> Applier:
    [found] = [item for item in impact.appliers if item.folder == "partitions/research"]
    return found


# --- What applies a change ---------------------------------------------------------------------------------------


def test_argo_cd_applies_it_within_the_pools_windows(tmp_path: Path) -> None:
    diff = compare_sides(a_side(tmp_path / "a"), a_side(tmp_path / "b", "large"))

    applier = partitions(the_repartition(diff))

    assert (applier.kind, applier.name) == ("Application", "gpu-partitions-dev-research")
    assert applier.approval is Approval.MANUAL
    assert [window.schedule for window in applier.windows] == ["0 2 * * 6"]
    assert applier.keeps_windows


@pytest.mark.parametrize(
    ("field", "effect"),
    [
        ("path: gpus/out", "it reads `out/` elsewhere from then on: path `gpus/out`"),
        ("revision: v2", "it reads `out/` elsewhere from then on: revision `v2`"),
        ("labels: {team: a}", "the same folders are synced"),
    ],
)
def test_another_place_of_out_is_said(field: str, effect: str, tmp_path: Path) -> None:
    later = ARGOCD.replace("{repoURL", f"{{{field}, repoURL")
    diff = compare_sides(a_side(tmp_path / "a"), a_side(tmp_path / "b", cluster=later))

    assert [impact.change.effect for impact in diff.impacts if "Argo CD" in impact.change.what] == [effect]


def test_the_applications_named_are_those_that_are_written(tmp_path: Path) -> None:
    later = a_side(tmp_path / "b", "large")
    diff = compare_sides(a_side(tmp_path / "a"), later)
    tree = pipeline.build(later.folder).tree

    names = {item.name for impact in diff.impacts for item in impact.appliers if item.kind == "Application"}

    single = {name for name in names if not name.startswith("gpu-namespace-")}
    assert single
    assert {f"argocd/dev/application-{name}.yaml" for name in single} <= tree.keys()


def test_flux_applies_it_and_keeps_no_windows(tmp_path: Path) -> None:
    diff = compare_sides(a_side(tmp_path / "a", cluster=FLUX), a_side(tmp_path / "b", "large", FLUX))

    applier = partitions(the_repartition(diff))

    assert (applier.kind, applier.name) == ("Kustomization", "gpu-partitions-dev-research")
    assert not applier.keeps_windows


@pytest.mark.parametrize("cluster", ["", f"{ARGOCD}  nodeLabels: external\n"])
def test_without_a_tool_or_for_labels_of_others_nothing_does(tmp_path: Path, cluster: str) -> None:
    diff = compare_sides(a_side(tmp_path / "a", cluster=cluster), a_side(tmp_path / "b", "large", cluster))

    impact = the_repartition(diff)

    assert any(folder.startswith("partitions") for folder in impact.change.folders)
    assert not any(item.folder.startswith("partitions") for item in impact.appliers)


@pytest.mark.parametrize(
    ("cluster", "is_kept"), [("", False), (f"{ARGOCD}  nodeLabels: external\n", False), (FLUX, False), (ARGOCD, True)]
)
def test_windows_are_a_change_only_if_something_keeps_them(tmp_path: Path, cluster: str, is_kept: bool) -> None:
    earlier, later = a_side(tmp_path / "a", cluster=cluster), a_side(tmp_path / "b", "large", cluster)
    pool = later.folder / "policies/pool.yaml"
    pool.write_text(pool.read_text().replace("4h", "6h"))

    diff = compare_sides(earlier, later)

    assert ("windows change" in {impact.change.what for impact in diff.impacts}) == is_kept


def test_only_folders_that_are_written_are_named(tmp_path: Path) -> None:
    earlier, later = a_side(tmp_path / "a"), a_side(tmp_path / "b")
    write(earlier.folder / "overlays/prod/cluster.yaml", CLUSTER.replace("NAME", "prod"))

    [removed] = compare_sides(earlier, later).impacts

    assert removed.change.folders == ("gpu-operator", "partitions", "scheduling", "namespaces")


RETAINED = """\
apiVersion: gpuplan.dev/v1
kind: Retained
metadata: {name: old}
spec: {object: {manifest: MANIFEST}, until: no pod needs it}
"""


@pytest.mark.parametrize("manifest", ["{}", "{kind: ConfigMap}", "{apiVersion: v1, kind: ConfigMap, metadata: {}}"])
def test_what_is_retained_and_is_no_object_keeps_nothing_else_from_being_compared(
    tmp_path: Path, manifest: str
) -> None:
    earlier, later = a_side(tmp_path / "a"), a_side(tmp_path / "b", "large")
    write(later.folder / "policies/old.yaml", RETAINED.replace("MANIFEST", manifest))

    diff = compare_sides(earlier, later)

    assert "GPU725" in {item.code for item in diff.later.errors}
    assert the_repartition(diff).change.subject == Subject("Pool", "research")


# --- Where it was written ----------------------------------------------------------------------------------------


def test_what_is_there_is_shown_in_the_later_policies_and_what_is_gone_in_the_earlier(tmp_path: Path) -> None:
    earlier, later = a_side(tmp_path / "a"), a_side(tmp_path / "b", "large")
    (tmp_path / "b/policies/tenant.yaml").unlink()

    found = {item.change.subject: item.is_earlier for item in compare_sides(earlier, later).impacts}

    assert found[Subject("Pool", "research")] is False
    assert found[Subject("Tenant", "research")] is True


# --- Below the policies ------------------------------------------------------------------------------------------


def test_two_sides_that_mean_the_same_differ_in_nothing(tmp_path: Path) -> None:
    diff = compare_sides(a_side(tmp_path / "a"), a_side(tmp_path / "b"))

    assert (diff.impacts, diff.objects, diff.worst) == ((), (), ChangeClass.NONE)


def test_every_object_is_compared_where_one_side_is_what_was_built(tmp_path: Path) -> None:
    side = a_side(tmp_path / "a")
    assert run("build", "-q", cwd=side.folder).code == 0
    built = Side(SideKind.OUTPUT, "out", side.folder / "out")
    assert compare_sides(built, side).worst is ChangeClass.NONE

    diff = compare_sides(built, a_side(tmp_path / "b", "large"))

    assert diff.impacts == ()
    assert diff.worst is ChangeClass.REPARTITION
    assert ("partitions/research", "NodeFeatureRule") in {(item.folder, item.identity.kind) for item in diff.objects}
    assert {item.cluster for item in diff.objects} == {"dev"}


def test_what_was_built_of_another_cluster_is_left_alone(tmp_path: Path) -> None:
    side = a_side(tmp_path / "a")
    write(side.folder / "overlays/prod/cluster.yaml", CLUSTER.replace("NAME", "prod"))
    assert run("build", "-q", cwd=side.folder).code == 0
    write(side.folder / "policies/pool.yaml", MIG.replace("LAYOUT", "large"))

    diff = compare_sides(Side(SideKind.OUTPUT, "out", side.folder / "out"), side, ["prod"])

    assert {item.cluster for item in diff.objects} == {"prod"}


def test_a_cluster_that_is_gone_from_the_policies_is_removed(tmp_path: Path) -> None:
    side = a_side(tmp_path / "a")
    write(side.folder / "overlays/prod/cluster.yaml", CLUSTER.replace("NAME", "prod"))
    assert run("build", "-q", cwd=side.folder).code == 0
    (side.folder / "overlays/prod/cluster.yaml").unlink()
    (side.folder / "overlays/prod").rmdir()

    diff = compare_sides(Side(SideKind.OUTPUT, "out", side.folder / "out"), side)

    assert {(item.cluster, item.verb) for item in diff.objects} == {("prod", "removed")}


def test_a_cluster_that_leaves_the_list_of_a_root_is_told_of(tmp_path: Path) -> None:
    """What applies `out/argocd` and prunes would take its Applications away."""
    remote = "  argocd: {repoURL: https://git.example.com/gpu.git, destination: {name: there}NAMESPACE}\n"
    side = a_side(tmp_path, cluster=remote.replace("NAMESPACE", ""))
    prod = CLUSTER.replace("NAME", "prod")
    elsewhere = remote.replace("there", "elsewhere")
    write(side.folder / "overlays/prod/cluster.yaml", prod + elsewhere.replace("NAMESPACE", ""))
    assert run("build", "-q", cwd=side.folder).code == 0
    write(side.folder / "overlays/prod/cluster.yaml", prod + elsewhere.replace("NAMESPACE", ", namespace: team"))

    diff = compare_sides(Side(SideKind.OUTPUT, "out", side.folder / "out"), side)

    lists = [item for item in diff.objects if item.identity.name == "kustomization.yaml"]
    assert {(item.cluster, item.folder, item.change_class) for item in lists} == {
        ("dev", "argocd", ChangeClass.DESTRUCTIVE),
        ("prod", "argocd", ChangeClass.DESTRUCTIVE),
    }


# --- Sides -------------------------------------------------------------------------------------------------------


def test_the_sides_are_what_git_means(tmp_path: Path) -> None:
    root = a_platform(a_repository(tmp_path))
    first = commit(root)
    second = commit(root)

    def commits(span: str) -> tuple[str, str]:
        sides = choose_sides(root, span)
        return tuple(side.revision.commit if side.revision else "" for side in sides)  # type: ignore[return-value] # two

    assert commits("HEAD^..HEAD") == (first, second)
    assert commits("HEAD^..") == (first, second)
    assert commits("..HEAD^") == (second, first)
    assert commits("HEAD...HEAD^") == (first, first)
    assert commits("") == (second, "")


def test_each_kind_of_document_that_a_plan_may_lack_is_known() -> None:
    without_cluster_there_is_no_plan, nothing_refers_to_it = "Cluster", "Retained"
    assert KINDS.keys() - _BROKEN.keys() == {without_cluster_there_is_no_plan, nothing_refers_to_it}


def test_a_step_knows_the_documents_of_each_kind_that_plans_are_made_of() -> None:
    plans = [a_plan(path.read_text()) for path in TRACED.glob("*.yaml")]
    assert {kind for plan in plans for kind, *_ in documents_of(plan)} == KINDS.keys()
