"""Documents in folders that nothing reads, and a platform without overlays, are shown with the way to read them."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from gpuplan.compiler.base.diagnostics import GpuplanError, Severity
from gpuplan.compiler.pipeline import validate
from tests.cli.platforms import CLUSTER, POOL, write

REPOSITORY = Path(__file__).parents[3]


@pytest.fixture
def platform(tmp_path: Path) -> Path:
    """A copy of the example platform."""
    for folder in ("policies", "overlays"):
        shutil.copytree(REPOSITORY / folder, tmp_path / folder)
    return tmp_path


def test_a_pool_in_a_folder_that_nothing_reads_is_shown_there(platform: Path) -> None:
    (platform / "policies/pools").rename(platform / "pools")
    found = {item.finding.help for item in validate(platform, ("prod",)).diagnostics if item.code == "GPU101"}
    bases = "or add `pools` to `bases` of the Cluster"
    assert found == {
        f"move pools/{name}.yaml, which nothing reads, into policies/, {bases}" for name in ("partitioned", "shared")
    }


def test_a_platform_that_lost_its_overlays_is_not_begun_again(platform: Path) -> None:
    shutil.rmtree(platform / "overlays")
    with pytest.raises(GpuplanError) as trouble:
        validate(platform)
    assert trouble.value.hint.startswith("policies/ is here: restore overlays/ by `git checkout HEAD -- overlays`")


@pytest.mark.parametrize("name", ["shared.yaml.txt", "shared.yml.bak", "shared.yaml~"])
def test_a_pool_in_a_file_that_is_named_otherwise_is_shown_there(name: str, platform: Path) -> None:
    (platform / "policies/pools/shared.yaml").rename(platform / "policies/pools" / name)
    found = {item.finding.help for item in validate(platform, ("prod",)).diagnostics if item.code == "GPU101"}
    right = "policies/pools/shared.yaml: gpuplan reads `*.yaml` and `*.yml` alone"
    assert found == {f"rename policies/pools/{name} to {right}"}


def test_a_base_that_was_renamed_is_the_one_mistake(platform: Path) -> None:
    (platform / "policies").rename(platform / "policy")
    found = {(item.code, item.finding.help) for item in validate(platform, ("prod",)).diagnostics if item.is_error}
    assert found == {("GPU111", "type `git mv policy policies`, or write `bases: [policy]` below `spec`")}


@pytest.mark.parametrize("folder", ["base", "config/gpus"])
def test_a_base_under_any_name_is_the_one_mistake(folder: str, platform: Path) -> None:
    (platform / folder).parent.mkdir(exist_ok=True)
    (platform / "policies").rename(platform / folder)
    found = [(item.code, item.finding.help) for item in validate(platform).diagnostics if item.is_error]
    assert found == 3 * [("GPU111", f"type `git mv {folder} policies`, or write `bases: [{folder}]` below `spec`")]


def test_policies_in_another_folder_are_no_base_of_a_whole_platform(platform: Path) -> None:
    shutil.copytree(platform / "policies", platform / "examples")
    shutil.rmtree(platform / "overlays/openshift")
    for cluster in ("dev", "prod"):
        shutil.rmtree(platform / "overlays" / cluster)
    write(platform / "overlays/own/cluster.yaml", f"{CLUSTER.replace('NAME', 'own')}---\n{POOL}")
    shutil.rmtree(platform / "policies")
    assert not [item for item in validate(platform).diagnostics if item.is_error]


def test_a_change_of_a_document_that_is_gone_is_no_new_one(platform: Path) -> None:
    (platform / "policies/pools/partitioned.yaml").unlink()
    found = [item for item in validate(platform, ("dev",)).diagnostics if item.code in ("GPU031", "GPU114")]
    assert [(item.code, item.finding.message) for item in found] == [
        ("GPU114", "the bases have no Pool `a100-mixed` to change")
    ]
    assert found[0].finding.help.endswith("for a new one, add `gpu` and `sharing`")


def test_a_change_of_a_document_that_was_moved_away_is_shown_where_it_is(platform: Path) -> None:
    (platform / "policies/pools").rename(platform / "pools")
    found = [item.finding.help for item in validate(platform, ("dev",)).diagnostics if item.code == "GPU114"]
    assert found[0].startswith("move pools/shared.yaml, which nothing reads, into policies/")


def test_a_new_document_that_lacks_one_field_is_asked_for_that(platform: Path) -> None:
    pool = POOL.replace("name: research", "name: small").replace("  gpu: A100-80GB\n", "")
    write(platform / "overlays/dev/pool.yaml", pool)
    codes = [item.code for item in validate(platform, ("dev",)).diagnostics if item.is_error]
    assert codes == ["GPU031"]


def test_a_secret_among_the_policies_is_sent_out_of_git(platform: Path) -> None:
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: token, namespace: research}\n"
    write(platform / "policies/secret.yaml", secret)
    (found,) = [item.finding.help for item in validate(platform).diagnostics if item.code == "GPU035"]
    assert found.startswith("keep it out of Git: type `kubectl apply -f policies/secret.yaml`, and delete the file")


def test_an_object_among_a_clusters_policies_is_sent_to_a_component(platform: Path) -> None:
    text = "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: x, namespace: research}\n"
    write(platform / "overlays/dev/thing.yaml", text)
    (found,) = [item.finding.help for item in validate(platform).diagnostics if item.code == "GPU035"]
    assert found == f"move it to overlays/dev/kustomize/namespaces/research/, and {COMPONENT}"
    write(platform / "overlays/dev/thing.yaml", text.replace("research", "elsewhere"))
    (found,) = [item.finding.help for item in validate(platform).diagnostics if item.code == "GPU035"]
    assert found == f"move it to overlays/dev/kustomize/scheduling/, and {COMPONENT}"


COMPONENT = (
    "write `{apiVersion: kustomize.config.k8s.io/v1alpha1, kind: Component, resources: [thing.yaml]}` "
    "to kustomization.yaml there"
)


@pytest.mark.parametrize(
    ("kind", "made"),
    [
        ("v1/Namespace", "write `x` into the `namespaces` of a Tenant, of which gpuplan makes one; or "),
        ("apps/v1/Deployment", "write a Workload with `inference`, of which gpuplan makes one; or "),
        ("storage.k8s.io/v1/StorageClass", ""),
    ],
)
def test_an_object_among_the_policies_is_sent_to_each_cluster(platform: Path, kind: str, made: str) -> None:
    version, _, name = kind.rpartition("/")
    write(platform / "policies/thing.yaml", f"apiVersion: {version}\nkind: {name}\nmetadata: {{name: x}}\n")
    (found,) = [item.finding.help for item in validate(platform).diagnostics if item.code == "GPU035"]
    clusters = "of `dev`, `openshift` or `prod`"
    assert found == f"{made}move it to overlays/<cluster>/kustomize/scheduling/ {clusters}, and {COMPONENT}"


@pytest.mark.parametrize(
    ("quotas", "expected"),
    [
        (
            "  hard: {requests.nvidia.com/gpu.shared: 36}",
            (
                "write `quotas: [{pool: ..., unit: shared, guaranteed: 36}]`, "
                "with `a100-shared` or `h100-training` as the `pool`"
            ),
        ),
        (
            "  hard: {requests.nvidia.com/mig-3g.40gb: 2}",
            (
                "write `quotas: [{pool: ..., unit: 3g.40gb, guaranteed: 2}]`, "
                "with `a100-mixed` or `a100-production` as the `pool`"
            ),
        ),
        (
            "  resourceQuota: {hard: {requests.nvidia.com/mig-2g.20gb: 2}}",
            (
                "write `quotas: [{pool: ..., unit: 2g.20gb, guaranteed: 2}]`, "
                "with `a100-agents` or `a100-mixed` as the `pool`"
            ),
        ),
        (
            "  limits: {nvidia.com/mig-1g.10gb: 2}",
            (
                "write `quotas: [{pool: ..., unit: 1g.10gb, guaranteed: 2}]`, "
                "with `a100-agents` or `a100-small` as the `pool`"
            ),
        ),
        (
            "  quotas:\n    - {requests.nvidia.com/gpu.shared: 36}",
            (
                "write `pool: ...`, `unit: shared` and `guaranteed: 36` in its place, each on a line of its own, "
                "with `a100-shared` or `h100-training` as the `pool`"
            ),
        ),
        ("  quotas:\n    - {unit: 3g.40gb, guaranteed: 2}", "add `pool:` with `a100-mixed` or `a100-production`"),
    ],
)
def test_a_pool_that_help_leaves_open_is_one_of_those_with_the_unit(platform: Path, quotas: str, expected: str) -> None:
    path = platform / "policies/tenants/science.yaml"
    quota = "  quotas:\n    - {pool: a100-shared, guaranteed: 36}"
    assert quota in path.read_text()
    path.write_text(path.read_text().replace(quota, quotas, 1))
    found = [item.finding.help for item in validate(platform).diagnostics if item.code in ("GPU030", "GPU031")]
    assert found == [expected]


def test_a_copied_overlay_is_one_mistake(platform: Path) -> None:
    shutil.copytree(platform / "overlays/prod", platform / "overlays/prod2")
    found = [(item.code, item.finding.help) for item in validate(platform).diagnostics]
    way = "write `name: prod2`, and give a copy of `prod` its own destination, or delete overlays/prod2/"
    assert found == [("GPU110", way)]


def test_an_overlay_without_a_cluster_gets_one_from_another(platform: Path) -> None:
    (platform / "overlays/new").mkdir()
    (found,) = [item.finding.help for item in validate(platform).diagnostics if item.code == "GPU110"]
    assert found.startswith("type `mkdir -p overlays/new && cp overlays/dev/cluster.yaml overlays/new/`, and write")


def test_a_file_beside_the_clusters_is_sent_to_a_folder_that_is_read(platform: Path) -> None:
    shutil.copy(platform / "overlays/dev/policies.yaml", platform / "overlays/common.yaml")
    (found,) = [item.finding for item in validate(platform).diagnostics if item.code == "GPU110"]
    assert found.message == "overlays/common.yaml is in no cluster's folder, and not read"
    folders = "`overlays/dev/`, `overlays/openshift/` or `overlays/prod/`"
    assert found.help == f"move it to {folders} for one cluster, or to `policies/` for all"
    (platform / "overlays/common.yaml").write_text("# nothing yet\n")
    assert not [item for item in validate(platform).diagnostics if item.code == "GPU110"]


def test_a_cluster_beside_the_folders_is_sent_to_its_own(platform: Path) -> None:
    beside, home = platform / "overlays/prod.yaml", platform / "overlays/prod/cluster.yaml"
    shutil.copy(home, beside)
    (found,) = [item.finding.help for item in validate(platform).diagnostics if item.code == "GPU110"]
    assert found == "delete it: overlays/prod/cluster.yaml is the Cluster `prod`"
    shutil.rmtree(home.parent)
    (found,) = [item.finding.help for item in validate(platform).diagnostics if item.code == "GPU110"]
    assert found == "type `mkdir -p overlays/prod && mv overlays/prod.yaml overlays/prod/cluster.yaml`"


def test_a_cluster_one_folder_too_deep_is_moved_up(platform: Path) -> None:
    (platform / "overlays/eu").mkdir()
    (platform / "overlays/prod").rename(platform / "overlays/eu/prod")
    found = [item.finding.help for item in validate(platform).diagnostics if item.code == "GPU110"]
    assert found == ["type `mv overlays/eu/prod overlays/`"]


def test_a_folder_of_policies_that_nothing_reads_is_noted_once(platform: Path) -> None:
    (platform / "pools").mkdir()
    extra = platform / "pools/extra.yaml"
    extra.write_text((platform / "policies/pools/shared.yaml").read_text())
    (found,) = validate(platform).diagnostics
    assert (found.code, found.severity) == ("GPU110", Severity.NOTE)
    assert found.finding.message == "pools/extra.yaml is in no base of a cluster, and not read"
    assert found.finding.help == "move it into policies/, or add `pools` to `bases` of each Cluster"
    extra.rename(platform / "pools.yaml")
    (found,) = validate(platform).diagnostics
    assert (found.code, found.severity) == ("GPU110", Severity.NOTE)
    assert found.finding.message == "pools.yaml is in no base of a cluster, and not read"
    folders = "`overlays/dev/`, `overlays/openshift/` or `overlays/prod/`"
    assert found.finding.help == f"move it to {folders} for one cluster, or to `policies/` for all"
    (platform / "pools.yaml").write_text("services: {web: {image: nginx}}\n")
    assert not validate(platform).diagnostics


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("tests/pool.yaml", ""),
        ("docs/pools/pool.yaml", ""),
        (".pools/pool.yaml", ""),
        ("pools/pool.txt", ""),
        ("workloads/pod.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n"),
        ("workloads/demand.yaml", "apiVersion: gpuplan.dev/v1\nkind: Demand\nmetadata: {name: a}\n"),
    ],
)
def test_other_files_that_nothing_reads_are_not_noted(platform: Path, path: str, text: str) -> None:
    write(platform / path, text or (platform / "policies/pools/shared.yaml").read_text())
    assert not validate(platform).diagnostics


def test_one_cluster_does_not_say_what_others_read(platform: Path) -> None:
    shutil.copytree(platform / "policies/pools", platform / "pools")
    assert not validate(platform, ("dev",)).diagnostics


@pytest.mark.parametrize("name", ["shared-old", "shared.bak", "shared copy", "old-shared", "a-shared-2"])
def test_a_copied_file_is_to_be_deleted(platform: Path, name: str) -> None:
    shutil.copy(platform / "policies/pools/shared.yaml", platform / f"policies/pools/{name}.yaml")
    helps = {item.finding.help for item in validate(platform).diagnostics if item.code == "GPU016"}
    assert helps == {f"delete `policies/pools/{name}.yaml`, if it is a copy; otherwise rename one"}


def test_a_file_that_says_something_else_is_no_copy(platform: Path) -> None:
    text = (platform / "policies/priority-classes.yaml").read_text()
    (platform / "policies/priorities-old.yaml").write_text(re.sub(r"value: (\d)", r"value: 1\1", text))
    helps = {item.finding.help for item in validate(platform).diagnostics if item.code == "GPU016"}
    assert helps == {"rename one of them, or join them"}


def test_a_copied_cluster_gets_a_destination_of_its_own(platform: Path) -> None:
    shutil.copytree(platform / "overlays/prod", platform / "overlays/staging")
    file = platform / "overlays/staging/cluster.yaml"
    file.write_text(file.read_text().replace("name: prod", "name: staging", 1))
    messages = [item.finding.message for item in validate(platform).diagnostics if item.code == "GPU659"]
    assert "clusters `prod` and `staging` are synced to one cluster, `prod`" in messages
    file.write_text(file.read_text().replace("name: prod", "name: staging"))
    messages = [item.finding.message for item in validate(platform).diagnostics if item.code == "GPU659"]
    assert not [message for message in messages if "synced to one" in message]


def test_a_renamed_document_is_renamed_in_the_overlay_as_well(platform: Path) -> None:
    file = platform / "policies/tenants/science.yaml"
    file.write_text(file.read_text().replace("name: batch-inference", "name: batch"))
    found = [item for item in validate(platform, ("dev",)).diagnostics if item.is_error]
    assert [(item.code, item.finding.help) for item in found if item.code in ("GPU018", "GPU400")] == [
        ("GPU018", "write `name: batch`, as the bases have it")
    ]


def test_what_clusters_share_is_told_as_by_the_one_that_shows_most(platform: Path) -> None:
    path = platform / "policies/layouts.yaml"
    assert "    2g.20gb: 3\n    1g.10gb: 1" in path.read_text()
    path.write_text(path.read_text().replace("    2g.20gb: 3\n    1g.10gb: 1", "    2g.20gb: 4"))
    (found,) = [item for item in validate(platform).diagnostics if item.code == "GPU208"]
    assert found.clusters == ("dev", "openshift", "prod")
    assert [label.text for label in found.finding.related] == ["the layout lacks it"]  # `dev` has no such quota
    assert found.finding.help == "a GPU holds up to 3 of them: `2g.20gb: 3` and, for the quotas, `1g.10gb: 1`"


def test_a_policy_beside_the_folders_is_noted_and_nothing_else_there_is_read(platform: Path) -> None:
    (platform / "hooks.yaml").write_text("- id: gpuplan.dev/v1\n")
    (platform / "dump.yaml").write_text("apiVersion: v1\nkind: List\nitems: [not, {closed\n")
    assert [item for item in validate(platform).diagnostics if "is in no base" in item.finding.message] == []
    tenant = platform / "policies/tenants/science.yaml"
    (platform / "science.yaml").write_text(tenant.read_text())
    (found,) = [item for item in validate(platform).diagnostics if "is in no base" in item.finding.message]
    assert found.finding.message == "science.yaml is in no base of a cluster, and not read"
    assert "to `policies/` for all" in (found.finding.help or "")
