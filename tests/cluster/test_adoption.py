"""A cluster that people have set up keeps the names that it has, and comes to gpuplan's own without losing capacity.

The API server and Node Feature Discovery's rules are real, and what nodes publish is what NVIDIA's parsers make of the
files; nobody plays the MIG manager, so that a node whose entry changes counts as away until it is asked for again.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpuplan.compiler.pipeline import build
from gpuplan.features.changes.edits import write
from gpuplan.features.changes.rollouts import Wish, propose
from gpuplan.features.live.importing import adopt, write_import
from tests.cli.runs import run
from tests.cluster import nodes
from tests.cluster.api import Api, Refused
from tests.cluster.comparisons import Record
from tests.cluster.control_plane import ControlPlane
from tests.cluster.definitions import define
from tests.cluster.delivery import MANAGER, identity, read_folder
from tests.cluster.dumps import collect
from tests.cluster.parsers import Operator, judge, published, rule_labels
from tests.cluster.processes import until
from tests.cluster.programs import need_go

CLUSTER, KUEUE = "legacy", "kueue.x-k8s.io/v1beta2"
ENTRY, KEY, POOL = "nvidia.com/mig.config", "nvidia.com/device-plugin.config", "gpuplan.dev/pool"
GPUS = 8
GUARANTEED = {"nvidia.com/mig-1g.10gb": 40, "nvidia.com/gpu": 16}
BY_HAND = tuple(yaml.safe_load_all(Path(__file__).with_name("adopted.yaml").read_text(encoding="utf-8")))

LABELS = {
    "worker-1": {ENTRY: "all-1g.10gb", KEY: "mig"},
    "worker-2": {ENTRY: "all-1g.10gb", KEY: "mig"},
    "worker-3": {ENTRY: "all-disabled", KEY: "tesla-shared"},
    "worker-4": {ENTRY: "all-3g.40gb", KEY: "mig"},
}
"""What somebody labelled nodes."""

POLICIES = {
    "overlays/legacy/cluster": """\
apiVersion: gpuplan.dev/v1
kind: Cluster
metadata: {name: legacy}
spec:
  kubernetes: "1.34"
  gpuOperator:
    {install: external, version: v25.10.0, namespace: gpu-operator, clusterPolicy: cluster-policy, migStrategy: mixed}
  nodeLabels: nfd
  taintPools: false
  scheduler: {kind: kueue, kueue: {cohort: all-gpus}}
""",
    "policies/slices": """\
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: slices}
spec:
  gpu: A100-80GB
  nodes: {count: 2, gpusPerNode: 8, names: [worker-1, worker-2]}
  sharing: {mig: {instances: {1g.10gb: 7}, configName: all-1g.10gb}}
  names: {devicePluginConfig: mig, resourceFlavor: a100-1g}
""",
    "policies/shared": """\
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: shared}
spec:
  gpu: A100-80GB
  nodes: {count: 1, gpusPerNode: 8, names: [worker-3]}
  sharing: {timeSlicing: {replicas: 4, rename: false, failRequestsGreaterThanOne: false}}
  names: {devicePluginConfig: tesla-shared, resourceFlavor: a100-shared}
""",
    "policies/halves": """\
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: halves}
spec:
  gpu: A100-80GB
  nodes: {count: 1, gpusPerNode: 8, names: [worker-4]}
  sharing: {mig: {instances: {3g.40gb: 2}, configName: all-3g.40gb}}
  names: {devicePluginConfig: mig}
""",
    "policies/mixed": """\
apiVersion: gpuplan.dev/v1
kind: MigLayout
metadata: {name: mixed}
spec: {gpu: A100-80GB, instances: {1g.10gb: 5, 2g.20gb: 1}}
""",
    "policies/research": """\
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: research}
spec:
  namespaces: [research]
  quotas:
  - {pool: slices, unit: 1g.10gb, guaranteed: 40}
  - {pool: shared, guaranteed: 16}
  names: {clusterQueue: research-cq, localQueue: user-queue}
""",
}


@dataclass(frozen=True, slots=True)
class Adopted:
    """The control plane, and the repository that is to be synced to it."""

    plane: ControlPlane
    root: Path

    @property
    def api(self) -> Api:
        return self.plane.api

    @property
    def out(self) -> Path:
        return self.root / "out" / CLUSTER

    def build(self) -> None:
        built = build(self.root, (CLUSTER,), kustomize="off")
        assert [item.finding.message for item in built.report.diagnostics if item.is_error] == []
        shutil.rmtree(self.root / "out", ignore_errors=True)
        for path, data in built.tree.items():
            (self.root / "out" / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / "out" / path).write_bytes(data)

    def folders(self) -> list[str]:
        """Each that kustomize builds, the GPU Operator's first, as a person would sync them."""
        found = [path.parent.relative_to(self.root).as_posix() for path in self.out.rglob("kustomization.yaml")]
        return sorted(found, key=lambda path: ("partitions" in path, "gpu-operator" not in path, path))

    def sync(self, *folders: str) -> None:
        """Server-side apply with force, and what Node Feature Discovery then makes of its rules."""
        bodies = [body for folder in folders for body in read_folder(self.plane, self.root, folder).objects]
        define(self.api, bodies)
        for body in bodies:
            self.api.apply(body, manager=MANAGER, force=True)
        rules = [body for body in map(self._live, bodies) if body["kind"] == "NodeFeatureRule"]
        for name in LABELS if rules else ():
            given, _ = rule_labels(rules, name, extra_label_namespaces=("nvidia.com", "gpuplan.dev"))
            self.api.patch(f"/api/v1/nodes/{name}", {"metadata": {"labels": given}})

    def _live(self, body: Mapping[str, Any]) -> dict[str, Any]:
        return self.api.get(self.api.path_of(body))

    def labels(self) -> dict[str, dict[str, str]]:
        return {name: self.api.get(f"/api/v1/nodes/{name}")["metadata"]["labels"] for name in LABELS}

    def published(self) -> dict[str, dict[str, int]]:
        """What each node hands out by the files that were synced last."""
        return {name: published(self.out, labels, GPUS) for name, labels in self.labels().items()}

    def listed(self) -> Path:
        path = self.root / "nodes.json"
        path.write_text(self.plane.kubectl("get", "nodes", "-o", "json"))
        return path


@pytest.fixture(scope="module")
def adopted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Adopted]:
    """The cluster as it was found, beside policies that say what it has and keep its names."""
    root = tmp_path_factory.mktemp("adopted")
    for name, text in POLICIES.items():
        path = root / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    with found_cluster(root) as found:
        yield found


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Adopted]:
    """The cluster as it was found, beside policies that an import made of it."""
    root = tmp_path_factory.mktemp("imported")
    with found_cluster(root) as found:
        made = adopt(dict(collect(found.plane, root / "cache")), root, CLUSTER)
        assert [item.finding.message for item in made.report.diagnostics if item.is_error] == []
        write_import(made, root)
        yield found


@contextmanager
def found_cluster(root: Path) -> Iterator[Adopted]:
    """The cluster as people have set it up."""
    need_go()
    with ControlPlane.start("1.34") as plane:
        found = Adopted(plane, root)
        named = {"names": [*LABELS], "name_pattern": None, "gpus_per_node": GPUS}
        nodes.make_nodes(plane.api, [{"gpu": "A100-80GB", "name": "", "nodes": named}])
        for name, labels in LABELS.items():
            plane.api.patch(f"/api/v1/nodes/{name}", {"metadata": {"labels": labels}})
        define(plane.api, [*BY_HAND, {"apiVersion": KUEUE, "kind": "Cohort", "metadata": {"name": "x"}}])
        until(lambda: are_served(plane.api), "objects of Kueue are listed")
        for body in BY_HAND:
            plane.api.apply(body, manager="kubectl-client-side-apply")
        yield found


# --- As it was found ---------------------------------------------------------------------------------------------


def of_hand(labels: Mapping[str, str]) -> dict[str, int]:
    """What a node hands out by the files that people wrote."""
    data = {body["metadata"]["name"]: body["data"] for body in BY_HAND if body["kind"] == "ConfigMap"}
    operator = Operator(
        data["default-mig-parted-config"]["config.yaml"], data["time-slicing"], "all-disabled", "mixed", True
    )
    [verdict] = judge([operator.question(labels, GPUS)])
    assert not verdict.error
    return dict(verdict.resources)


def are_served(api: Api) -> bool:
    """Whether the storage of new kinds is there, which is later than that they are known."""
    try:
        queues(api)
    except Refused:
        return False
    return True


def queues(api: Api) -> dict[str, object]:
    """What Kueue's objects are called, and what LocalQueues lead to."""
    plurals = ("resourceflavors", "clusterqueues", "localqueues", "cohorts")
    found = (body for plural in plurals for body in api.list(f"/apis/{KUEUE}/{plural}"))
    return {identity(body): body["spec"].get("clusterQueue") for body in found}


def changed(before: Mapping[str, Mapping[str, object]], after: Mapping[str, Mapping[str, object]]) -> list[str]:
    """What was there and is otherwise now, or gone."""
    found = ((name, key, value) for name, there in before.items() for key, value in there.items())
    return [f"{name} {key}" for name, key, value in found if after[name].get(key) != value]


@pytest.mark.parametrize("policies", ["imported", "adopted"])
def test_the_first_sync_changes_no_label_resource_or_queue(
    policies: str, request: pytest.FixtureRequest, record: Record
) -> None:
    adopted: Adopted = request.getfixturevalue(policies)
    api = adopted.api
    labels, queued = adopted.labels(), queues(api)
    resources = {name: of_hand(found) for name, found in labels.items()}

    adopted.build()
    for folder in adopted.folders():
        adopted.sync(folder)
        known = {name: published(adopted.out, found, GPUS) for name, found in adopted.labels().items()}
        assert known == resources, folder

    record(f"labels of nodes that the first sync of {policies} policies changes", [], changed(labels, adopted.labels()))
    record(f"resources of nodes that that of {policies} policies changes", [], changed(resources, adopted.published()))
    record(f"queues and flavors that that of {policies} policies changes", [], changed({"": queued}, {"": queues(api)}))
    come = {key for name, found in adopted.labels().items() for key in found if key not in labels[name]}
    assert come == {POOL}, come
    [queue] = [name for name in queues(api).keys() - queued.keys() if "LocalQueue" in name]
    assert queue == "kueue.x-k8s.io/LocalQueue research/default"
    assert api.get("/apis/batch/v1/namespaces/research/jobs/waits")["spec"]["suspend"]


# --- To gpuplan's names ------------------------------------------------------------------------------------------


def units(found: Sequence[Mapping[str, int]]) -> dict[str, int]:
    return dict(sum(map(Counter, found), Counter[str]()))


def sync_in_steps(adopted: Adopted) -> dict[str, int]:
    """Sync one folder after the other; the least that nodes hand out meanwhile, but for those that are divided."""
    least = units([*adopted.published().values()])
    for folder in adopted.folders():
        before, handed_out = adopted.labels(), adopted.published() if "gpu-operator" not in folder else {}
        adopted.sync(folder)
        now, after = adopted.labels(), adopted.published()
        away = [
            name
            for name in LABELS
            if before[name][ENTRY] != now[name][ENTRY] and handed_out.get(name, after[name]) != after[name]
        ]
        there = units([found for name, found in after.items() if name not in away])
        least = {resource: min(number, there.get(resource, 0)) for resource, number in least.items()}
    return least


def test_a_rollout_leads_on_node_by_node(adopted: Adopted, record: Record) -> None:
    seen = []
    for _ in range(9):
        _, proposal = propose(adopted.root, (CLUSTER,), Wish("slices", "mixed"))
        assert proposal is not None
        assert proposal.is_safe
        if not proposal.edits:
            break
        write(adopted.root, proposal.edits[0])
        adopted.build()
        least = sync_in_steps(adopted)
        assert [name for name, number in GUARANTEED.items() if least[name] < number] == []
        labels = adopted.labels()
        seen.append([labels[name][ENTRY] for name in ("worker-1", "worker-2")])

    own, kept = "mixed-", "all-1g.10gb"
    steps = [[value if value == kept else own for value in step] for step in seen]
    record("entries of two nodes in a rollout from a name that was kept", [[own, kept], [own, own]], steps[:2])
    assert all(step == [own, own] for step in steps[1:])


def test_names_that_were_kept_go_with_capacity_kept(adopted: Adopted, record: Record) -> None:
    shutil.copytree(adopted.root, before := adopted.root.parent / "before")
    capacity = units([*adopted.published().values()])
    for path in adopted.root.glob("policies/*.yaml"):
        text = path.read_text().replace(", configName: all-3g.40gb", "")
        for key in ("mig", "tesla-shared"):
            text = text.replace(f"devicePluginConfig: {key}, ", "").replace(f"devicePluginConfig: {key}", "")
        path.write_text(text)
    against = ("--cluster", CLUSTER, "--against", str(before))
    assert run("validate", *against, cwd=adopted.root).code == 1
    assert run("retain", "--write", *against, cwd=adopted.root).code == 0
    judged = run("validate", *against, cwd=adopted.root)
    assert judged.code == 0, judged.out

    adopted.build()
    record("capacity as labels get gpuplan's names", capacity, sync_in_steps(adopted))

    labels = adopted.labels()
    keys = {name: found[KEY] for name, found in labels.items()}
    record(
        "keys of the device plugin afterwards",
        {"worker-1": "slices", "worker-2": "slices", "worker-3": "shared", "worker-4": "halves"},
        keys,
    )
    assert labels["worker-4"][ENTRY].startswith("halves-")
    shutil.copytree(adopted.root, after := adopted.root.parent / "after")
    nothing = ("--against", str(after), "--nodes", str(adopted.listed()))
    pruned = run("retain", "--cluster", CLUSTER, "--prune", "--write", *nothing, cwd=adopted.root)
    assert not [*adopted.root.glob("overlays/*/retained/*.yaml")], pruned.out + pruned.err
    adopted.build()
    record("capacity once nothing is retained any more", capacity, sync_in_steps(adopted))
