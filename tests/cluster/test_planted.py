"""A mistake in a plan or in out/ is found by the functions that the other tests use."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from pathlib import Path

import pytest
import yaml

from tests.cluster.api import Api, Refused
from tests.cluster.comparisons import compare_grants, compare_units, rewritten
from tests.cluster.control_plane import ControlPlane
from tests.cluster.delivery import Folder, deliveries, leaving
from tests.cluster.example import REPOSITORY, ExampleCluster, apply_all, show
from tests.cluster.gpu_operator import RELEASE
from tests.cluster.held import created_early, delivered_early
from tests.cluster.nodes import publish
from tests.cluster.parsers import ConfigurationError, published
from tests.cluster.pods import namespaces
from tests.cluster.projects import judge, read as read_project
from tests.cluster.strictly import Item, Server, nulls, read, release_of
from tests.cluster.table import Table

_CLUSTER = "dev"
_DEVICE_PLUGIN = "configmap-gpuplan-device-plugin-*.yaml"
_MIG_PARTED = "configmap-gpuplan-mig-parted-*.yaml"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return copy_example(tmp_path)


@pytest.fixture
def server(servers: Callable[[str], Server]) -> Server:
    return servers(RELEASE)


@pytest.fixture(scope="module")
def mistaken(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExampleCluster]:
    """A cluster with one mistake of each kind that no program refuses."""
    repository = copy_example(tmp_path_factory.mktemp("mistaken"))
    plant(repository, f"gpu-operator/{_DEVICE_PLUGIN}", "replicas: 3", "replicas: 4")
    quota = "namespaces/model-services/resourcequota-gpuplan.yaml"
    plant(repository, quota, "nvidia.com/mig-3g.40gb", "nvidia.com/mig-3g.39gb")
    plant(repository, "workloads/research/job-evaluation-*.yaml", "nvidia.com/gpu.shared:", "nvidia.com/gpus.shared:")
    plant(repository, "workloads/model-services/deployment-chat.yaml", 'memory: "48Gi"', 'memory: "49152Mi"')
    with ExampleCluster.start(_CLUSTER, repository) as cluster:
        yield cluster


def copy_example(root: Path) -> Path:
    """The example's policies, and what is committed below out/."""
    for name in ("policies", "overlays", "out"):
        shutil.copytree(REPOSITORY / name, root / name)
    return root


def plant(repository: Path, pattern: str, right: str, wrong: str, below: str = _CLUSTER) -> None:
    """Write something wrong into the only file of a folder of `out/` that matches."""
    [path] = (repository / "out" / below).glob(pattern)
    text = path.read_text(encoding="utf-8")
    assert right in text
    path.write_text(text.replace(right, wrong), encoding="utf-8")


def test_nothing_planted_nothing_found(clusters: Callable[[str], ExampleCluster]) -> None:
    cluster = clusters(_CLUSTER)
    compare_units(Table().record, cluster.name, cluster.plan, cluster.api)
    compare_grants(Table().record, cluster.name, cluster.api)


def test_a_wrong_count_in_a_plan(clusters: Callable[[str], ExampleCluster]) -> None:
    cluster = clusters(_CLUSTER)
    plan = deepcopy(dict(cluster.plan))
    plan["pools"][0]["units"][0]["capacity"] += 1
    message = "dev: nvidia.com/mig-2g.20gb of a100-mixed: planned 5, observed 4"
    with pytest.raises(AssertionError, match=message):
        compare_units(Table().record, cluster.name, plan, cluster.api)


def test_a_wrong_key_in_a_config_map(repository: Path, clusters: Callable[[str], ExampleCluster]) -> None:
    cluster = clusters(_CLUSTER)
    plant(repository, f"gpu-operator/{_DEVICE_PLUGIN}", "  a100-mixed: |", "  a100-mixd: |")
    with pytest.raises(ConfigurationError, match="the specified configuration a100-mixed does not exist"):
        publish(cluster.api, cluster.plan, repository / "out" / _CLUSTER)


@pytest.mark.parametrize(
    ("pattern", "right", "wrong", "message"),
    [
        (_DEVICE_PLUGIN, "migStrategy: mixed", "migStrategy: mixd", "mixd"),
        (_MIG_PARTED, "mig-configs:", "mig-config:", "unexpected field: mig-config"),
        (_MIG_PARTED, "one-large-two-medium-", "one-large-", "one-large-two-medium-"),
    ],
)
def test_a_configuration_that_is_refused(repository: Path, pattern: str, right: str, wrong: str, message: str) -> None:
    plant(repository, f"gpu-operator/{pattern}", right, wrong)
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        published_by_partitioned_node(repository)


@pytest.mark.parametrize(
    ("pattern", "right", "wrong", "resources"),
    [
        (_DEVICE_PLUGIN, "flags:", "flag:", {"nvidia.com/gpu": 2}),
        (_MIG_PARTED, '"2g.20gb"', '"2g.10gb"', {"nvidia.com/mig-2g.10gb": 4, "nvidia.com/mig-3g.40gb": 2}),
    ],
)
def test_a_configuration_that_means_something_else(
    repository: Path, pattern: str, right: str, wrong: str, resources: dict[str, int]
) -> None:
    """NVIDIA's parsers take what they do not know for nothing at all, or for another profile."""
    planned = {"nvidia.com/mig-2g.20gb": 4, "nvidia.com/mig-3g.40gb": 2}
    assert published_by_partitioned_node(repository) == planned
    plant(repository, f"gpu-operator/{pattern}", right, wrong)
    assert published_by_partitioned_node(repository) == resources


def published_by_partitioned_node(repository: Path) -> dict[str, int]:
    """What a node of the pool `a100-mixed` publishes."""
    [pool] = [pool for pool in show(_CLUSTER, repository)["pools"] if pool["name"] == "a100-mixed"]
    return published(repository / "out" / _CLUSTER, pool["labels"], pool["nodes"]["gpus_per_node"])


def test_a_wrong_count_in_a_config_map(mistaken: ExampleCluster) -> None:
    message = "dev: nvidia.com/gpu.shared of a100-shared: planned 6, observed 8"
    with pytest.raises(AssertionError, match=message):
        compare_units(Table().record, mistaken.name, mistaken.plan, mistaken.api)


def test_wrong_names_of_resources(mistaken: ExampleCluster) -> None:
    """In a quota and in a workload."""
    wrong = ["nvidia.com/gpus.shared", "nvidia.com/mig-3g.39gb"]
    message = f"dev: resources granted that no node has: planned [], observed {wrong}"
    with pytest.raises(AssertionError, match=re.escape(message)):
        compare_grants(Table().record, mistaken.name, mistaken.api)


def test_a_quantity_that_the_server_writes_in_another_way(mistaken: ExampleCluster) -> None:
    [limit, request] = rewritten(mistaken)
    assert limit.endswith("resources.limits.memory: '49152Mi' is kept as '48Gi'")
    assert request.endswith("resources.requests.memory: '49152Mi' is kept as '48Gi'")


def test_an_unknown_field(repository: Path, clusters: Callable[[str], ExampleCluster]) -> None:
    cluster = clusters(_CLUSTER)
    plant(repository, "scheduling/priorityclass-research.yaml", "value: 100", "value: 100\nvaleu: 100")
    with pytest.raises(Refused, match="valeu"):
        apply_all(cluster.api, tuple(deliveries(cluster.control_plane, repository, _CLUSTER)))


@pytest.mark.parametrize(
    ("options", "is_synced", "leaves"),
    [
        ("Prune=false,Delete=false", True, False),
        ("Prune=false,Delete=false", False, False),
        ("Delete=false", True, True),
        ("Prune=false", False, True),
        ("ServerSideApply=true", True, True),
    ],
)
def test_a_node_that_is_not_protected(options: str, is_synced: bool, leaves: bool) -> None:
    """With its folder still synced a Node is pruned, and without it deleted with the Application."""
    annotations = {"argocd.argoproj.io/sync-options": options}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "gpu-1", "annotations": annotations}}
    before = Folder("out/dev/partitions/a100", (node,), is_deleted_with_application=True)
    after = [Folder(before.path, ())] if is_synced else []
    assert list(leaving([before], after)) == ([node] if leaves else [])


# --- What is null ------------------------------------------------------------------------------------------------


_QUOTA = "namespaces/model-services/resourcequota-gpuplan.yaml"
_OPERATOR = "application-gpu-operator-dev.yaml"


def items_in(repository: Path) -> tuple[Item, ...]:
    """What is delivered of the files that are there."""
    out = repository / "out"
    files = {path.relative_to(out).as_posix(): path.read_bytes() for path in out.rglob("*.yaml")}
    return read(_CLUSTER, _CLUSTER, files)


def test_a_null_in_an_object(repository: Path) -> None:
    assert nulls(items_in(repository)) == []
    plant(repository, _QUOTA, "hard:", "scopes: null\n  hard:")
    assert nulls(items_in(repository)) == ["dev: /ResourceQuota model-services/gpuplan: spec.scopes"]


def test_a_null_that_a_definition_does_not_take(repository: Path, server: Server) -> None:
    assert server.refusals(items_in(repository)) == []
    plant(repository, "partitions/a100-mixed/nodefeaturerule-*.yaml", "- name: a100-mixed", "- name: null")
    [refused] = server.refusals(items_in(repository))
    assert refused.startswith("dev: nfd.k8s-sigs.io/NodeFeatureRule /gpuplan-pool-a100-mixed: ")
    assert 'Invalid value: "null"' in refused


def test_the_operators_chart_where_its_application_applies_on_the_server(repository: Path, server: Server) -> None:
    """Its ClusterPolicy has nulls: that of v25.3.4, which is the release that is written here."""
    values = yaml.safe_load((repository / "out/dev/gpu-operator/values.yaml").read_text(encoding="utf-8"))
    release = release_of(items_in(repository), "gpu-operator", "gpu-operator", values)
    assert server.refusals(server.render([(_CLUSTER, release)])) == []
    plant(repository, _OPERATOR, '"PruneLast=true"', '"ServerSideApply=true"', "argocd/dev")
    release = release_of(items_in(repository), "gpu-operator", "gpu-operator", values)
    [refused] = server.refusals(server.render([(_CLUSTER, release)]))
    assert "spec.mig" in refused
    assert "null" in refused


# --- What is outside of its project ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "right", "wrong", "message"),
    [
        (_QUOTA, "namespace: model-services", "namespace: kube-system", "ResourceQuota kube-system/gpuplan"),
        (_QUOTA, "kind: ResourceQuota", "kind: LimitRange", "LimitRange model-services/gpuplan"),
        (
            "scheduling/priorityclass-research.yaml",
            "kind: PriorityClass",
            "kind: CSIDriver",
            "CSIDriver.scheduling.k8s.io /research",
        ),
    ],
)
def test_an_object_outside_of_its_project(repository: Path, pattern: str, right: str, wrong: str, message: str) -> None:
    assert judge(*read_project(repository, _CLUSTER))["problems"] == []
    plant(repository, pattern, right, wrong)
    [problem] = judge(*read_project(repository, _CLUSTER))["problems"]
    assert message in problem


def test_a_destination_outside_of_its_project(repository: Path) -> None:
    plant(repository, _OPERATOR, "name: dev\n", "name: prod\n", "argocd/dev")
    [problem, *_] = judge(*read_project(repository, _CLUSTER))["problems"]
    assert "destination" in problem


# --- What comes before what it needs -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("below", "pattern", "right", "wrong", "early"),
    [
        ("argocd/dev", "application-gpu-tenancy-dev.yaml", '"10"', '"20"', "Namespace"),
        ("argocd/dev", "applicationset-gpu-namespaces-dev.yaml", '"20"', '"5"', "Namespace"),
        ("dev", "namespaces/research/rolebinding-gpuplan-edit.yaml", '"30"', '"21"', "RoleBinding"),
    ],
)
def test_an_order_in_which_tenants_are_held_to_nothing(
    repository: Path,
    clusters: Callable[[str], ExampleCluster],
    below: str,
    pattern: str,
    right: str,
    wrong: str,
    early: str,
) -> None:
    plane = clusters(_CLUSTER).control_plane
    assert delivered_early(deliveries(plane, repository, _CLUSTER)) == []
    plant(repository, pattern, right, wrong, below)
    assert early in "".join(delivered_early(deliveries(plane, repository, _CLUSTER)))


def test_what_tenants_have_that_is_older_than_what_holds_it(control_plane: ControlPlane) -> None:
    """Ages are in seconds."""
    api = control_plane.api
    with ExitStack() as bound:
        bound.enter_context(binding(api, "gpuplan-devices"))
        held, free = bound.enter_context(namespaces(api, "held", "free"))
        bound.enter_context(binding(api, f"gpuplan-grants-{held}"))
        api.create(edit_in(held))
        api.create(edit_in(free))
        time.sleep(1)
        bound.enter_context(binding(api, f"gpuplan-grants-{free}"))
        assert created_early(api, [held, free]) == [f"RoleBinding {free}/edit"]
        bound.enter_context(binding(api, "gpuplan-pod-security"))
        assert created_early(api, [held]) == [f"Namespace {held}", f"RoleBinding {held}/edit"]


@contextmanager
def binding(api: Api, name: str) -> Iterator[None]:
    """A binding of no policy."""
    admission = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding"}
    spec = {"policyName": "none", "validationActions": ["Deny"]}
    path = api.path_of(api.create({**admission, "metadata": {"name": name}, "spec": spec}))
    yield
    api.delete(path)


def edit_in(namespace: str) -> dict[str, object]:
    rbac = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{rbac}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "edit", "namespace": namespace},
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "edit"},
        "subjects": [],
    }
