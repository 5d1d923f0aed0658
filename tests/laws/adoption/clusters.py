"""Draw clusters with GPUs as organisations have them, as `kubectl get -o yaml` prints them. Nothing of gpuplan is here.

A seed decides about everything. The objects of a cluster agree with each other: a node publishes what the files of its
operator say, a quota has room for what runs, and each workload runs on some node.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from tests.laws.orders.publishing import GPU, Geometry, counts, divided, publish, whole

Body = dict[str, Any]
Entry = Sequence[Mapping[str, Any]]

PLATFORMS: Final = ("eks", "gke", "aks", "openshift", "metal")
SHARINGS: Final = ("exclusive", "default", "labels", "default-and-labels", "mps")
MIGS: Final = ("none", "single-stock", "mixed-stock", "mixed-own", "two-boards", "unknown")
SCHEDULERS: Final = ("none", "none", "kueue-one-flavor", "kueue-boards", "kueue-labels", "kai", "runai")
QUOTAS: Final = ("none", "gpu", "all", "several", "zero", "scoped")
NAMESPACES: Final = (1, 2, 2, 3, 3, 4, 5, 8, 14, 40)


@dataclass(frozen=True)
class Board:
    """A GPU, how platforms call a machine with it, and how many a machine has."""

    short: str
    product: str
    memory: int
    device: str
    counts: tuple[int, ...]
    machine: str
    layouts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Profiles of all its GPUs, by a name that a person may give an entry."""


_SMALL: Final = {"1g.5gb": 7}
_LARGE: Final = {"1g.10gb": 7}
_BALANCED_40: Final = {"1g.5gb": 2, "2g.10gb": 1, "3g.20gb": 1}
_BALANCED_80: Final = {"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 1}
BOARDS: Final = (
    Board("a100-40", "NVIDIA-A100-SXM4-40GB", 40960, "0x20B010DE", (8,), "p4d.24xlarge", {"all-1g.5gb": _SMALL}),
    Board("a100-80", "NVIDIA-A100-SXM4-80GB", 81920, "0x20B210DE", (4, 8), "p4de.24xlarge", {"all-1g.10gb": _LARGE}),
    Board("h100", "NVIDIA-H100-80GB-HBM3", 81559, "0x233010DE", (8,), "p5.48xlarge", {"all-1g.10gb": _LARGE}),
    Board("l4", "NVIDIA-L4", 23034, "0x27B810DE", (1, 4), "g6.12xlarge"),
    Board("l40s", "NVIDIA-L40S", 46068, "0x26B910DE", (4, 8), "g6e.12xlarge"),
    Board("t4", "Tesla-T4", 15360, "0x1EB810DE", (1, 4), "g4dn.12xlarge"),
    Board("a10g", "NVIDIA-A10G", 23028, "0x223710DE", (1, 4), "g5.12xlarge"),
    Board("a6000", "NVIDIA-RTX-A6000", 49140, "0x223010DE", (2, 4), "rack"),
)
_WITH_MIG: Final = tuple(board for board in BOARDS if board.layouts)
_BALANCED: Final = {"a100-40": _BALANCED_40, "a100-80": _BALANCED_80, "h100": _BALANCED_80}
_TEAMS: Final = (
    *("vision", "speech", "recsys", "search", "fraud", "genomics", "robotics", "weather", "ads", "chem"),
    *("maps", "audit", "video", "lang", "games", "energy", "law", "ocean", "retail", "space"),
)
_KUBERNETES_OF_OPENSHIFT: Final = {"1.28": "4.15.9", "1.29": "4.16.12", "1.30": "4.17.4", "1.31": "4.18.6"}
_KUBERNETES_OF_OPENSHIFT_NEWER: Final = {"1.32": "4.19.3", "1.33": "4.20.1"}


def _stock() -> dict[str, Entry]:
    """Some entries of the file that the GPU Operator brings: `all-balanced` is by a filter of devices."""
    older = [board.device for board in _WITH_MIG if board.short == "a100-40"]
    newer = [board.device for board in _WITH_MIG if board.short != "a100-40"]
    return {
        "all-disabled": [{"devices": "all", "mig-enabled": False}],
        "all-enabled": [{"devices": "all", "mig-enabled": True, "mig-devices": {}}],
        "all-1g.5gb": [{"devices": "all", "mig-enabled": True, "mig-devices": dict(_SMALL)}],
        "all-1g.10gb": [{"devices": "all", "mig-enabled": True, "mig-devices": dict(_LARGE)}],
        "all-balanced": [
            {"device-filter": older, "devices": "all", "mig-enabled": True, "mig-devices": dict(_BALANCED_40)},
            {"device-filter": newer, "devices": "all", "mig-enabled": True, "mig-devices": dict(_BALANCED_80)},
        ],
    }


@dataclass
class _Group:
    """Nodes that are alike."""

    name: str
    board: Board
    gpus: int
    nodes: list[str]
    labels: dict[str, str]
    taints: list[dict[str, str]]
    entry: str = ""
    state: str = "success"
    key: str = ""
    """Of the device plugin's file, in the label of the nodes."""
    machines: tuple[str, ...] = ()
    geometry: Geometry = ()
    resources: dict[str, int] = field(default_factory=dict)
    """What each node publishes."""
    replicas: int = 1
    is_renamed: bool = False
    method: str = ""


@dataclass(frozen=True)
class Cluster:
    """What was drawn, and the objects of it."""

    seed: int
    traits: Mapping[str, str]
    objects: tuple[Body, ...]

    def write(self, folder: Path) -> Path:
        """A file for each kind, with a List as kubectl prints it."""
        folder.mkdir(parents=True, exist_ok=True)
        kinds: dict[str, list[Body]] = {}
        for body in self.objects:
            kinds.setdefault(f"{body['kind'].lower()}s", []).append(body)
        for name, items in kinds.items():
            listed = {"apiVersion": "v1", "items": items, "kind": "List", "metadata": {"resourceVersion": ""}}
            text = yaml.dump(listed, Dumper=_Dumper, sort_keys=False, default_flow_style=False)
            (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
        return folder


class _Dumper(yaml.CSafeDumper if hasattr(yaml, "CSafeDumper") else yaml.SafeDumper):  # type: ignore[misc]
    """Writes what stands in two places twice, as kubectl does."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def draw(seed: int) -> Cluster:
    """Return the cluster of a seed."""
    return _Drawing(seed).cluster()


class _Drawing:
    """One cluster, drawn part by part; each part reads those before it."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = rng = random.Random(f"cluster {seed}")
        self.platform = PLATFORMS[seed % len(PLATFORMS)]
        self.scheduler = SCHEDULERS[seed % len(SCHEDULERS)]
        self.mig = MIGS[(seed // 2) % len(MIGS)] if rng.random() < 0.75 else "none"
        self.sharing = SHARINGS[(seed // 3) % len(SHARINGS)]
        self.quotas = QUOTAS[(seed // 4) % len(QUOTAS)]
        self.how_many = NAMESPACES[(seed * 7) % len(NAMESPACES)]
        self.operator = {"openshift": "olm"}.get(self.platform, rng.choice(("helm", "helm", "helm", "chart")))
        if self.platform == "metal" and rng.random() < 0.25:
            self.operator = "olm"
        if self.operator == "chart" or self.sharing == "mps":
            # The device plugin starts with MPS under the strategy `single` alone.
            self.mig = "none"
        if self.scheduler == "kai" and rng.random() < 0.8:
            self.sharing = "exclusive"
        self.namespace = {"olm": "nvidia-gpu-operator", "chart": "nvidia-device-plugin"}.get(
            self.operator, rng.choice(("gpu-operator", "gpu-operator", "gpu-system"))
        )
        self.release = rng.choice(("v24.9.2", "v25.3.4", "v25.10.1"))
        newest = 33 if self.platform == "openshift" else 35
        self.kubernetes = f"1.{rng.choice((28, 29, *range(30, newest + 1)))}"
        self.delivery = rng.choice(("none", "argocd", "flux"))
        self.has_karpenter = self.platform == "eks" and self.mig == "none" and rng.random() < 0.4
        self.tainting = rng.choice(("none", "nvidia.com/gpu", "nvidia.com/gpu", "own"))
        self.own_label = rng.random() < 0.4
        self.level = rng.choice(("", "baseline", "privileged", "mixed"))
        self.limit_ranges = rng.choice(("none", "defaults", "max", "gpu"))
        self.priorities = rng.random() < 0.4
        self.groups: list[_Group] = []
        self.homes: dict[str, list[_Group]] = {}
        self.objects: list[Body] = []
        self.entries: dict[str, Entry] = _stock()
        self.keys: dict[str, Body] = {}
        self.default_key = ""

    def cluster(self) -> Cluster:
        for part in (
            *(self._draw_groups, self._draw_partitions, self._draw_shares, self._publish),
            *(self._write_nodes, self._write_operator, self._write_priorities, self._write_namespaces),
            *(self._write_queues, self._write_work, self._write_quotas, self._write_delivery),
        ):
            part()
        return Cluster(self.seed, self._traits(), tuple(self.objects))

    def _traits(self) -> dict[str, str]:
        return {
            "platform": self.platform,
            "operator": self.operator,
            "operator namespace": self.namespace,
            "kubernetes": self.kubernetes,
            "sharing": self.sharing,
            "mig": self.mig,
            "scheduler": self.scheduler,
            "quotas": self.quotas,
            "namespaces": str(self.how_many),
            "boards": " ".join(sorted({group.board.short for group in self.groups})),
            "karpenter": str(self.has_karpenter),
            "taints": self.tainting,
            "own labels": str(self.own_label),
            "delivery": self.delivery,
            "pod security": self.level or "none",
            "limit ranges": self.limit_ranges,
            "priority classes": str(self.priorities),
        }

    # --- Nodes ---------------------------------------------------------------------------------------------------

    def _draw_groups(self) -> None:
        pairs = self.mig == "two-boards"
        boards = [*self.rng.sample(_WITH_MIG, 2 if pairs else 1)] if self.mig != "none" else []
        if self.mig == "single-stock":
            boards = boards[:1]
        others = [board for board in BOARDS if board not in boards and (board.machine != "rack" or self._is_on_site)]
        if self.mig != "single-stock":
            boards += self.rng.sample(others, self.rng.choice((1, 1, 2)))
        elif self.rng.random() < 0.5:
            boards += self.rng.sample([board for board in others if not board.layouts], 1)
        for board in boards:
            name = f"gpu-{board.short}"
            gpus = self.rng.choice(board.counts)
            nodes = [self._node_name(name, index) for index in range(self.rng.choice((1, 1, 2, 3)))]
            labels = self._labels(name, board)
            self.groups.append(_Group(name, board, gpus, nodes, labels, self._taints(), machines=(board.machine,)))
        if self.has_karpenter:
            self._join_karpenter()

    @property
    def _is_on_site(self) -> bool:
        return self.platform in ("metal", "openshift")

    def _join_karpenter(self) -> None:
        """All groups are one node pool of Karpenter, which starts machines of several types."""
        for group in self.groups:
            group.name = "gpus"
            del group.labels["eks.amazonaws.com/nodegroup"]
            group.labels["karpenter.sh/nodepool"] = "gpus"
            group.labels["karpenter.sh/capacity-type"] = self.rng.choice(("on-demand", "spot"))
            group.labels["karpenter.k8s.aws/instance-gpu-name"] = group.board.short

    def _node_name(self, group: str, index: int) -> str:
        number = sum(len(found.nodes) for found in self.groups) + index
        return {
            "eks": f"ip-10-0-{10 + number}-{20 + 7 * number}.ec2.internal",
            "gke": f"gke-main-{group}-3f2a91bc-{number:04x}",
            "aks": f"aks-{group.replace('-', '')}-27831{number}-vmss00000{index}",
            "openshift": f"worker-{group}-{index}.ocp.example.com",
            "metal": f"{group.replace('gpu-', 'node-')}-{index + 1:02d}",
        }[self.platform]

    def _labels(self, group: str, board: Board) -> dict[str, str]:
        machine = board.machine
        labels = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
        labels |= {
            "eks": {"eks.amazonaws.com/nodegroup": group, "topology.kubernetes.io/zone": "eu-west-1a"},
            "gke": {
                "cloud.google.com/gke-nodepool": group,
                "cloud.google.com/gke-accelerator": f"nvidia-{board.short}",
                "topology.kubernetes.io/zone": "europe-west4-b",
            },
            "aks": {"agentpool": group.replace("-", ""), "kubernetes.azure.com/agentpool": group.replace("-", "")},
            "openshift": {"node-role.kubernetes.io/worker": "", "node.openshift.io/os_id": "rhcos"},
            "metal": {},
        }[self.platform]
        if not self._is_on_site:
            labels["node.kubernetes.io/instance-type"] = machine
        if self.own_label:
            labels["example.com/gpu-type"] = board.short
        return labels

    def _taints(self) -> list[dict[str, str]]:
        if self.tainting == "none":
            return []
        key = "nvidia.com/gpu" if self.tainting == "nvidia.com/gpu" else "dedicated"
        return [{"key": key, "value": "true" if key != "dedicated" else "gpu", "effect": "NoSchedule"}]

    def _draw_partitions(self) -> None:
        with_mig = [group for group in self.groups if group.board.layouts]
        if self.mig == "none":
            return
        own = {
            "mixed-own": lambda board: [
                {"devices": [0], "mig-enabled": False},
                {"devices": [*range(1, 8)], "mig-enabled": True, "mig-devices": dict(_BALANCED[board.short])},
            ]
        }
        for group in with_mig:
            stock = self.rng.choice((*group.board.layouts, "all-balanced"))
            match self.mig:
                case "single-stock":
                    group.entry = next(iter(group.board.layouts))
                case "mixed-stock":
                    group.entry = stock if group is with_mig[0] else "all-disabled"
                case "mixed-own":
                    group.entry = f"first-whole-{group.board.short}"
                    self.entries[group.entry] = own["mixed-own"](group.board)
                case "two-boards":
                    group.entry = "all-balanced"
                case _:
                    group.entry = "team-layout" if group is with_mig[0] else "all-disabled"
            if group.entry == "team-layout":
                group.state = "failed"

    def _draw_shares(self) -> None:
        replicas = self.rng.choice((2, 4, 10))
        method = "mps" if self.sharing == "mps" else "timeSlicing"
        renamed = self.rng.random() < 0.35

        def file(count: int) -> Body:
            found: Body = {"resources": [{"name": GPU, "replicas": count}]}
            if renamed:
                found = {"renameByDefault": True, **found}
            return {"version": "v1", "sharing": {method: found}}

        alone = [group for group in self.groups if not group.entry or group.entry == "all-disabled"]
        if self.sharing == "exclusive":
            return
        if self.sharing in ("default", "default-and-labels"):
            self.default_key = self.rng.choice(("any", "default", "shared"))
            self.keys[self.default_key] = file(replicas)
        if self.sharing != "default":
            chosen = alone if self.sharing == "mps" else alone[-1:]
            key = self.rng.choice(("tesla", "slices", "shared-4"))
            self.keys[key] = file(4 if self.sharing != "mps" else 2)
            if self.rng.random() < 0.4 or not chosen:
                self.keys["whole"] = {"version": "v1"}
            for group in chosen:
                group.key = key

    def _strategy(self) -> str:
        if self.sharing == "mps":
            return "single"
        return {"none": self.rng.choice(("single", "mixed")), "single-stock": "single"}.get(self.mig, "mixed")

    def _publish(self) -> None:
        self.strategy = self._strategy()
        for group in self.groups:
            config: Body = self.keys.get(group.key or self.default_key, {})
            if group.state == "failed":
                # The entry went from the file after the GPUs had been divided by it.
                group.geometry = (tuple(sorted(_BALANCED[group.board.short].items())),) * group.gpus
            elif group.entry:
                group.geometry = divided(self.entries[group.entry], group.gpus, group.board.device)
            else:
                group.geometry = whole(group.gpus)
            group.resources = counts(publish(group.geometry, config, self.strategy))
            sharing: Body = config.get("sharing") or {"": {}}
            [(method, found)] = sharing.items()
            shared = {item["name"]: item["replicas"] for item in found.get("resources", ())}
            if shared and (GPU in group.resources or f"{GPU}.shared" in group.resources):
                group.replicas, group.is_renamed = shared[GPU], bool(found.get("renameByDefault"))
                group.method = {"timeSlicing": "time-slicing"}.get(method, method)

    def _write_nodes(self) -> None:
        for group in self.groups:
            for name in group.nodes:
                self._write_node(name, {**group.labels, **self._discovered(group)}, group.taints, group)
        self._write_node("cpu-0" if self._is_on_site else f"{self.platform}-cpu-0", {"kubernetes.io/os": "linux"}, [])

    def _write_node(
        self, name: str, labels: dict[str, str], taints: Sequence[Body], group: _Group | None = None
    ) -> None:
        capacity = {"cpu": "96" if group else "64", "memory": "512Gi" if group else "256Gi", "pods": "110"}
        capacity |= {key: str(count) for key, count in group.resources.items()} if group else {}
        suffix = {"eks": "-eks-7f9249a", "gke": "-gke.1178000"}.get(self.platform, "")
        body: Body = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "annotations": {"node.alpha.kubernetes.io/ttl": "0"},
                "creationTimestamp": "2025-11-03T09:12:44Z",
                "labels": {"kubernetes.io/hostname": name, **labels},
                "name": name,
                "uid": f"6d1c2f6e-0000-4000-8000-{abs(hash_of(name)):012d}",
            },
            "spec": {"providerID": f"{self.platform}:///{name}", **({"taints": [*taints]} if taints else {})},
            "status": {
                "allocatable": capacity,
                "capacity": capacity,
                "conditions": [{"type": "Ready", "status": "True"}],
                "nodeInfo": {"kubeletVersion": f"v{self.kubernetes}.4{suffix}", "operatingSystem": "linux"},
            },
        }
        self.objects.append(body)

    def _discovered(self, group: _Group) -> dict[str, str]:
        """The labels of GPU Feature Discovery, of NFD, of the operator and of the MIG manager."""
        product, board, count, memory = group.board.product, group.board, group.gpus, group.board.memory
        profiles = {profile for gpu in group.geometry for profile, _ in gpu or ()}
        if self.strategy == "single" and len(profiles) == 1 and None not in group.geometry:
            [profile] = profiles
            product += f"-MIG-{profile}"
            count = sum(number for gpu in group.geometry for _, number in gpu or ())
            memory = int(memory * int(profile[0]) * 0.12)
        if group.replicas > 1 and not group.is_renamed:
            product += "-SHARED"
        labels = {
            "feature.node.kubernetes.io/pci-10de.present": "true",
            "nvidia.com/gpu.present": "true",
            "nvidia.com/gpu.count": str(count),
            "nvidia.com/gpu.product": product,
            "nvidia.com/gpu.memory": str(memory),
            "nvidia.com/gpu.replicas": str(group.replicas),
            "nvidia.com/gpu.sharing-strategy": group.method or "none",
            "nvidia.com/mig.capable": str(bool(board.layouts)).lower(),
            "nvidia.com/mig.strategy": self.strategy,
        }
        if self.operator != "chart":
            labels["nvidia.com/gpu.deploy.device-plugin"] = "true"
            if board.layouts:
                labels["nvidia.com/mig.config"] = group.entry or "all-disabled"
                labels["nvidia.com/mig.config.state"] = group.state
        if group.key:
            labels["nvidia.com/device-plugin.config"] = group.key
        return labels

    # --- The operator --------------------------------------------------------------------------------------------

    def _write_operator(self) -> None:
        keys = {name: yaml.safe_dump(body, sort_keys=False) for name, body in self.keys.items()}
        if keys:
            self._add("v1", "ConfigMap", "time-slicing-config", self.namespace, data=keys)
        if self.operator == "chart":
            self._write_chart()
            return
        own = self.mig in ("mixed-own", "unknown") or self.rng.random() < 0.2
        file = "mig-layouts" if own else "default-mig-parted-config"
        text = yaml.safe_dump({"version": "v1", "mig-configs": self.entries}, sort_keys=False)
        self._add("v1", "ConfigMap", file, self.namespace, data={"config.yaml": text})
        spec: Body = {
            "operator": {"defaultRuntime": "containerd"},
            "mig": {"strategy": self.strategy},
            "devicePlugin": {"enabled": True, **({"config": self._plugin_config()} if keys else {})},
            "migManager": {"enabled": True, "config": {"name": file, "default": "all-disabled"}},
            "driver": {"enabled": self.platform != "gke"},
            "toolkit": {"enabled": True},
            "gfd": {"enabled": True},
        }
        labels = {"app.kubernetes.io/component": "gpu-operator"}
        if self.operator == "helm":
            labels |= {"app.kubernetes.io/managed-by": "Helm", "helm.sh/chart": f"gpu-operator-{self.release}"}
        name = "gpu-cluster-policy" if self.operator == "olm" else "cluster-policy"
        status = {"namespace": self.namespace, "state": "ready"}
        body = self._add("nvidia.com/v1", "ClusterPolicy", name, labels=labels, spec=spec, status=status)
        if self.operator == "helm" and self.rng.random() < 0.5:
            body["metadata"]["managedFields"] = [
                {
                    "apiVersion": "nvidia.com/v1",
                    "fieldsType": "FieldsV1",
                    "fieldsV1": {"f:spec": {"f:devicePlugin": {"f:config": {"f:name": {}, "f:default": {}}}}},
                    "manager": "helm",
                    "operation": "Update",
                }
            ]
        image = {"name": "gpu-operator", "image": f"nvcr.io/nvidia/gpu-operator:{self.release}"}
        labels = {"app.kubernetes.io/name": "gpu-operator", "app.kubernetes.io/component": "gpu-operator"}
        labels |= {"app.kubernetes.io/version": self.release, "helm.sh/chart": f"gpu-operator-{self.release}"}
        self._add("apps/v1", "Deployment", "gpu-operator", self.namespace, labels=labels, spec=_deployed(image))
        if self.operator == "olm":
            self._write_olm()

    def _plugin_config(self) -> Body:
        return {"name": "time-slicing-config", "default": self.default_key}

    def _write_olm(self) -> None:
        csv = f"gpu-operator-certified.{self.release}"
        spec = {"channel": self.release.rpartition(".")[0], "name": "gpu-operator-certified", "startingCSV": csv}
        spec |= {"source": "certified-operators", "sourceNamespace": "openshift-marketplace"}
        group = "operators.coreos.com/v1alpha1"
        self._add(group, "Subscription", "gpu-operator-certified", self.namespace, spec=spec)
        version = {"version": self.release.removeprefix("v")}
        self._add(group, "ClusterServiceVersion", csv, self.namespace, spec=version, status={"phase": "Succeeded"})
        if self.platform == "openshift":
            found = {**_KUBERNETES_OF_OPENSHIFT, **_KUBERNETES_OF_OPENSHIFT_NEWER}[self.kubernetes]
            desired = {"desired": {"version": found}, "history": [{"version": found, "state": "Completed"}]}
            spec = {"channel": f"stable-{found.rpartition('.')[0]}", "clusterID": "2c1f2a0e"}
            self._add("config.openshift.io/v1", "ClusterVersion", "version", spec=spec, status=desired)

    def _write_chart(self) -> None:
        """The device plugin by its own chart, which falls back to a file called `default` or to the only one."""
        environment = [{"name": "MIG_STRATEGY", "value": self.strategy}]
        plugin = {"name": "nvidia-device-plugin-ctr", "image": "nvcr.io/nvidia/k8s-device-plugin:v0.17.1"}
        spec: Body = {"containers": [{**plugin, "command": ["nvidia-device-plugin"], "env": environment}]}
        if self.keys:
            environment.append({"name": "CONFIG_FILE", "value": "/config/config.yaml"})
            manager = [
                {"name": "NODE_LABEL", "value": "nvidia.com/device-plugin.config"},
                {"name": "DEFAULT_CONFIG", "value": self.default_key},
                {"name": "FALLBACK_STRATEGIES", "value": "empty"},
            ]
            init = {**plugin, "name": "nvidia-device-plugin-init", "command": ["config-manager"], "env": manager}
            spec["initContainers"] = [init]
            spec["volumes"] = [{"name": "available-configs", "configMap": {"name": "time-slicing-config"}}]
        labels = {"app.kubernetes.io/name": "nvidia-device-plugin", "helm.sh/chart": "nvidia-device-plugin-0.17.1"}
        labels |= {"app.kubernetes.io/managed-by": "Helm", "app.kubernetes.io/version": "0.17.1"}
        chosen = {"selector": {"matchLabels": {"app.kubernetes.io/name": "nvidia-device-plugin"}}}
        template = {"metadata": {"labels": labels}, "spec": spec}
        self._add(
            *("apps/v1", "DaemonSet", "nvdp-nvidia-device-plugin", self.namespace),
            labels=labels,
            spec={**chosen, "template": template},
        )

    # --- Namespaces ----------------------------------------------------------------------------------------------

    def _write_priorities(self) -> None:
        self.classes: list[str] = []
        if self.priorities:
            self.classes = ["batch-low", "serving-high"]
            for name, value in zip(self.classes, (1000, 100000), strict=True):
                body = self._add("scheduling.k8s.io/v1", "PriorityClass", name)
                body |= {"value": value, "globalDefault": False, "preemptionPolicy": "PreemptLowerPriority"}

    def _write_namespaces(self) -> None:
        names = [f"{team}{suffix}" for suffix in ("", "-dev") for team in _TEAMS]
        if self.scheduler == "runai":
            names = [f"runai-{name}" for name in names]
        for name in names[: self.how_many]:
            level = self.rng.choice(("", "baseline", "restricted")) if self.level == "mixed" else self.level
            labels = {"kubernetes.io/metadata.name": name}
            labels |= {"pod-security.kubernetes.io/enforce": level} if level else {}
            labels |= {"runai/queue": name.removeprefix("runai-")} if self.scheduler == "runai" else {}
            self._add("v1", "Namespace", name, labels=labels, status={"phase": "Active"})
            two = len(self.groups) > 1 and self.rng.random() < 0.3
            self.homes[name] = self.rng.sample(self.groups, 2 if two else 1)
            self._write_limits(name)
        self._add("v1", "Namespace", "kube-system", labels={"kubernetes.io/metadata.name": "kube-system"})
        self._add("v1", "Namespace", self.namespace, labels={"kubernetes.io/metadata.name": self.namespace})

    def _write_limits(self, namespace: str) -> None:
        if self.limit_ranges == "none" or self.rng.random() < 0.3:
            return
        found: Body = {"type": "Container"}
        found |= {
            "defaults": {"default": {"cpu": "2", "memory": "4Gi"}, "defaultRequest": {"cpu": "500m", "memory": "1Gi"}},
            "max": {"max": {"cpu": "32", "memory": "256Gi"}},
            "gpu": {"max": {GPU: "4"}, "defaultRequest": {"cpu": "250m"}},
        }[self.limit_ranges]
        self._add("v1", "LimitRange", "limits", namespace, spec={"limits": [found]})

    # --- Work ----------------------------------------------------------------------------------------------------

    def _write_work(self) -> None:
        self.asked: dict[str, dict[str, int]] = {}
        for namespace, homes in self.homes.items():
            asked = self.asked.setdefault(namespace, {})
            few = self.how_many > 10
            for index in range(self.rng.choice((0, 1, 1) if few else (1, 1, 2, 3))):
                self._write_workload(namespace, self.rng.choice(homes), index, asked)

    def _write_workload(self, namespace: str, group: _Group, index: int, asked: dict[str, int]) -> None:
        rng = self.rng
        kind = rng.choice(("Deployment", "Deployment", "StatefulSet", "Job", "CronJob"))
        name = f"{rng.choice(('api', 'train', 'notebook', 'ranker', 'embed'))}-{index}"
        resource, most = self.rng.choice(sorted(group.resources.items()) or [(GPU, 0)])
        if not most:
            return
        amount = 1 if group.replicas > 1 or resource != GPU else rng.choice((1, 1, min(2, most)))
        asked[resource] = asked.get(resource, 0) + amount
        container: Body = {"name": "main", "image": "registry.example.com/app:1"}
        container["resources"] = {"limits": {resource: amount, "cpu": "4", "memory": "16Gi"}}
        pod: Body = {"containers": [container], "restartPolicy": "Always"}
        labels: dict[str, str] = {"app": name}
        annotations: dict[str, str] = {}
        self._place(pod, group)
        if group.taints:
            key = group.taints[0]["key"]
            pod["tolerations"] = [{"key": key, "operator": "Exists", "effect": "NoSchedule"}]
        if self.classes and rng.random() < 0.6:
            pod["priorityClassName"] = rng.choice(self.classes)
        if rng.random() < 0.15:
            pod["terminationGracePeriodSeconds"] = 120
        if rng.random() < 0.1:
            pod["runtimeClassName"] = "nvidia"
        if rng.random() < 0.08:
            container["env"] = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]
        on_object = self._queue(namespace, pod, labels, annotations, container, group)
        template = {"metadata": {"labels": labels}, "spec": pod}
        if annotations:
            template["metadata"]["annotations"] = annotations
        self._write_controller(kind, name, namespace, template, on_object)

    def _place(self, pod: Body, group: _Group) -> None:
        labels = {**group.labels, **self._discovered(group)}
        ways = ["none", "product", "affinity"]
        ways += ["platform"] if not self._is_on_site else []
        ways += ["own"] if self.own_label else []
        ways += ["mig.config"] if group.entry else []
        ways += ["plugin.config"] if group.key else []
        platform = next((key for key in labels if key.endswith(("nodegroup", "nodepool", "agentpool"))), "")
        key = {
            "product": "nvidia.com/gpu.product",
            "affinity": "nvidia.com/gpu.product",
            "platform": platform,
            "own": "example.com/gpu-type",
            "mig.config": "nvidia.com/mig.config",
            "plugin.config": "nvidia.com/device-plugin.config",
            "none": "",
        }[way := self.rng.choice(ways)]
        if key and way == "affinity":
            term = {"matchExpressions": [{"key": key, "operator": "In", "values": [labels[key]]}]}
            required = {"nodeSelectorTerms": [term]}
            pod["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
        elif key:
            pod["nodeSelector"] = {key: labels[key]}

    def _write_controller(self, kind: str, name: str, namespace: str, template: Body, labels: dict[str, str]) -> None:
        spec: Body = {"template": template}
        group = "apps/v1"
        if kind in ("Deployment", "StatefulSet"):
            spec = {"replicas": 1, "selector": {"matchLabels": {"app": name}}, **spec}
            if kind == "StatefulSet":
                spec["serviceName"] = name
        else:
            group = "batch/v1"
            template["spec"]["restartPolicy"] = "Never"
        if kind == "CronJob":
            inner = {"metadata": {"labels": labels}, "spec": spec} if labels else {"spec": spec}
            spec = {"schedule": "0 3 * * *", "jobTemplate": inner}
        self._add(group, kind, name, namespace, labels=labels, spec=spec)

    # --- Queues --------------------------------------------------------------------------------------------------

    def _write_queues(self) -> None:
        self.local_queues: dict[str, list[str]] = {}
        self.kai_queues: dict[str, str] = {}
        if self.scheduler.startswith("kueue"):
            self._write_kueue()
        elif self.scheduler == "kai":
            self._write_kai()
        elif self.scheduler == "runai":
            self._write_runai()

    def _queue(
        self,
        namespace: str,
        pod: Body,
        labels: dict[str, str],
        annotations: dict[str, str],
        container: Body,
        group: _Group,
    ) -> dict[str, str]:
        """Let the scheduler of the cluster have the work; the result are labels of its object."""
        if self.scheduler.startswith("kueue") and self.rng.random() < 0.8:
            return {"kueue.x-k8s.io/queue-name": self.rng.choice(self.local_queues[namespace])}
        if self.scheduler == "kai":
            labels["kai.scheduler/queue"] = self.kai_queues[namespace]
            pod["schedulerName"] = "kai-scheduler"
            if self.rng.random() < 0.3 and group.replicas == 1 and not group.entry:
                annotations["gpu-fraction"] = "0.5"
                del container["resources"]["limits"][GPU]
        if self.scheduler == "runai":
            pod["schedulerName"] = "runai-scheduler"
            return {"project": namespace.removeprefix("runai-")}
        return {}

    def _write_kueue(self) -> None:
        release = self.rng.choice(("v0.11.4", "v0.14.2", "v0.15.1", "v0.16.2", "v0.17.0", "v0.17.0"))
        is_new = int(release.split(".")[1]) >= 15
        api = f"kueue.x-k8s.io/{'v1beta2' if is_new else 'v1beta1'}"
        frameworks = ["batch/job", *self.rng.choice((["pod", "deployment", "statefulset"], []))]
        configuration = {
            "apiVersion": f"config.kueue.x-k8s.io/{'v1beta2' if is_new else 'v1beta1'}",
            "kind": "Configuration",
            "manageJobsWithoutQueueName": self.rng.random() < 0.2,
            "integrations": {"frameworks": frameworks},
        }
        text = yaml.safe_dump(configuration, sort_keys=False)
        name = "controller_manager_config.yaml"
        self._add("v1", "ConfigMap", "kueue-manager-config", "kueue-system", data={name: text})
        self._add("v1", "Namespace", "kueue-system", labels={"kubernetes.io/metadata.name": "kueue-system"})
        manager = {"name": "manager", "image": f"registry.k8s.io/kueue/kueue:{release}"}
        labels = {"app.kubernetes.io/name": "kueue", "app.kubernetes.io/version": release}
        self._add("apps/v1", "Deployment", "kueue-controller-manager", "kueue-system", labels, spec=_deployed(manager))
        flavors = self._flavors()
        for flavor, found in flavors.items():
            self._add(api, "ResourceFlavor", flavor, spec=found[0])
        one = self.scheduler == "kueue-one-flavor"
        cohort = self.rng.random() < 0.6
        queues = ["cluster-queue"] if one else ["research", "production", "nightly"][: min(3, 1 + self.how_many)]
        for queue in queues:
            spec: Body = {
                "namespaceSelector": {},
                "resourceGroups": self._resource_groups(flavors, len(queues), cohort),
            }
            if cohort:
                spec["cohortName" if is_new else "cohort"] = "gpus"
            if self.rng.random() < 0.4:
                spec["preemption"] = {"reclaimWithinCohort": "LowerPriority", "withinClusterQueue": "LowerPriority"}
            self._add(api, "ClusterQueue", queue, spec=spec)
        if cohort and is_new and self.rng.random() < 0.5:
            self._add(api, "Cohort", "gpus", spec={})
        for namespace in self.homes:
            names = {"user-queue": queues[0]} if one else {f"{namespace}-queue": self.rng.choice(queues)}
            if not one and self.rng.random() < 0.4:
                names = {"default": self.rng.choice(queues), "nightly": queues[-1]}
            for name, queue in names.items():
                self._add(api, "LocalQueue", name, namespace, spec={"clusterQueue": queue})
            self.local_queues[namespace] = [*names]

    def _flavors(self) -> dict[str, tuple[Body, list[_Group]]]:
        """By name the spec, and the groups of nodes that it is of."""
        if self.scheduler == "kueue-one-flavor":
            return {"default-flavor": ({}, self.groups)}
        found: dict[str, tuple[Body, list[_Group]]] = {}
        for group in self.groups:
            labels = {**group.labels, **self._discovered(group)}
            ways = ["nvidia.com/gpu.product"]
            if self.scheduler == "kueue-labels":
                ways = [key for key in labels if key.endswith(("nodegroup", "/gke-nodepool", "/agentpool"))] or ways
                ways = ["example.com/gpu-type"] if self.own_label else ways
            spec: Body = {"nodeLabels": {ways[0]: labels[ways[0]]}}
            if group.taints:
                key = group.taints[0]["key"]
                spec["tolerations"] = [{"key": key, "operator": "Exists", "effect": "NoSchedule"}]
            found[f"flavor-{group.board.short}"] = (spec, [group])
        return found

    def _resource_groups(
        self, flavors: Mapping[str, tuple[Body, list[_Group]]], parts: int, cohort: bool
    ) -> list[Body]:
        cores = self.scheduler == "kueue-one-flavor" or self.rng.random() < 0.5
        covered = [*(("cpu", "memory") if cores else ())]
        covered += sorted({name for _, groups in flavors.values() for group in groups for name in group.resources})
        written = []
        for name, (_, groups) in flavors.items():
            amounts: dict[str, Any] = {"cpu": 160 * len(groups) // parts, "memory": f"{512 * len(groups)}Gi"}
            rows = []
            for resource in covered:
                total = sum(group.resources.get(resource, 0) * len(group.nodes) for group in groups)
                row: Body = {"name": resource, "nominalQuota": amounts.get(resource, total // parts)}
                if cohort and resource not in amounts and self.rng.random() < 0.5:
                    row["borrowingLimit"] = self.rng.choice((0, 2, 8))
                if cohort and resource not in amounts and self.rng.random() < 0.2:
                    row["lendingLimit"] = total // parts
                rows.append(row)
            written.append({"name": name, "resources": rows})
        return [{"coveredResources": covered, "flavors": written}]

    def _write_kai(self) -> None:
        release = self.rng.choice(("v0.9.8", "v0.13.4", "v0.14.0"))
        scheduler = {"name": "scheduler", "image": f"ghcr.io/nvidia/kai-scheduler/scheduler:{release}"}
        labels = {"app.kubernetes.io/version": release}
        self._add("apps/v1", "Deployment", "kai-scheduler-default", "kai-scheduler", labels, spec=_deployed(scheduler))
        for name, value in (("train", 50), ("build-preemptible", 75), ("build", 100), ("inference", 125)):
            self._add("scheduling.k8s.io/v1", "PriorityClass", name)["value"] = value
        total = sum(group.gpus * len(group.nodes) for group in self.groups)
        self._add_queue("department", "", total, -1)
        parent = "department"
        if self.rng.random() < 0.3:
            self._add_queue("division", parent, total, -1)
            parent = "division"
        for namespace in self.homes:
            quota = self.rng.choice((1, 1.5, 0.5, 2, 3))
            limit = self.rng.choice((-1, quota, quota * 2))
            self._add_queue(f"q-{namespace}", parent, quota, limit)
            self.kai_queues[namespace] = f"q-{namespace}"

    def _add_queue(self, name: str, parent: str, quota: float, limit: float) -> None:
        weight = self.rng.choice((1, 1, 2))
        without = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
        amounts = {"gpu": {"quota": quota, "limit": limit, "overQuotaWeight": weight}}
        spec: Body = {"resources": {**amounts, "cpu": dict(without), "memory": dict(without)}}
        if parent:
            spec = {"parentQueue": parent, **spec}
        self._add("scheduling.run.ai/v2", "Queue", name, spec=spec, status={"allocated": {}})

    def _write_runai(self) -> None:
        scheduler = {"name": "scheduler", "image": "runai.jfrog.io/core/scheduler:2.20.8"}
        self._add("apps/v1", "Deployment", "runai-scheduler-default", "runai", spec=_deployed(scheduler))
        for namespace in self.homes:
            name = namespace.removeprefix("runai-")
            quota = self.rng.choice((1, 2, 4))
            self._add_queue(name, "", quota, -1)
            pools = [{"name": "default", "resources": {"gpu": {"deserved": quota, "limit": -1}}}]
            self._add("run.ai/v2", "Project", name, "runai", spec={"nodePoolsQuotas": pools})

    # --- Quotas --------------------------------------------------------------------------------------------------

    def _write_quotas(self) -> None:
        if self.scheduler.startswith(("kueue", "runai")) and self.rng.random() < 0.5:
            return
        for namespace, homes in self.homes.items():
            asked = self.asked.get(namespace, {})
            gpus = {name for group in homes for name in group.resources} | set(asked)
            if self.scheduler == "kai":
                gpus = set()
            room = self.rng.choice((0, 1, 3))
            hard: dict[str, Any] = {f"requests.{name}": str(asked.get(name, 0) + room or 1) for name in sorted(gpus)}
            rest = {"requests.cpu": "64", "requests.memory": "256Gi", "pods": "20"}
            way = self.quotas if self.rng.random() < 0.8 else "none"
            match way:
                case "gpu":
                    self._add_quota(namespace, "gpu-quota", hard)
                case "all":
                    self._add_quota(namespace, "quota", {**hard, **rest})
                case "several":
                    self._add_quota(namespace, "gpu-quota", hard)
                    self._add_quota(namespace, "compute", {"limits.cpu": "128", "limits.memory": "1500Gi", "pods": "9"})
                case "zero":
                    banned = self.groups[0] if self.groups[0] not in homes else self.groups[-1]
                    free = {f"requests.{name}": "0" for name in banned.resources if name not in gpus | {*asked}}
                    hard = free or ({} if asked else dict.fromkeys(hard, "0"))
                    self._add_quota(namespace, "no-gpus", {**hard, "services.loadbalancers": "0"})
                case "scoped":
                    self._add_quota(namespace, "gpu-quota", hard)
                    terms = [{"scopeName": "PriorityClass", "operator": "In", "values": ["serving-high"]}]
                    body = self._add_quota(namespace, "serving", {"pods": "10", "requests.cpu": "40"})
                    body["spec"]["scopeSelector"] = {"matchExpressions": terms}
                case _:
                    pass

    def _add_quota(self, namespace: str, name: str, hard: Mapping[str, Any]) -> Body:
        used = dict.fromkeys(hard, "0")
        status = {"hard": dict(hard), "used": used}
        return self._add("v1", "ResourceQuota", name, namespace, spec={"hard": dict(hard)}, status=status)

    # --- Delivery ------------------------------------------------------------------------------------------------

    def _write_delivery(self) -> None:
        if self.delivery == "argocd":
            source = {"repoURL": "https://git.example.com/platform.git", "path": "teams", "targetRevision": "main"}
            spec: Body = {"project": "default", "source": source, "destination": {"name": "in-cluster"}}
            self._add("argoproj.io/v1alpha1", "Application", "teams", "argocd", spec=spec)
        if self.delivery == "flux":
            spec = {"interval": "10m", "path": "./teams", "prune": True, "sourceRef": {"kind": "GitRepository"}}
            self._add("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "teams", "flux-system", spec=spec)
        if self.delivery == "none":
            return
        mark: Callable[[Body], dict[str, dict[str, str]]] = {
            "argocd": lambda body: {"annotations": {"argocd.argoproj.io/tracking-id": f"teams:/{body['kind']}"}},
            "flux": lambda _: {"labels": {"kustomize.toolkit.fluxcd.io/name": "teams"}},
        }[self.delivery]
        for body in self.objects:
            if body["kind"] in ("ResourceQuota", "LimitRange", "LocalQueue", "ClusterQueue"):
                for part, found in mark(body).items():
                    body["metadata"].setdefault(part, {}).update(found)

    def _add(
        self, api: str, kind: str, name: str, namespace: str = "", labels: Mapping[str, str] | None = None, **parts: Any
    ) -> Body:
        metadata: Body = {"creationTimestamp": "2025-11-03T10:02:11Z", "name": name}
        metadata |= {"namespace": namespace} if namespace else {}
        metadata |= {"labels": dict(labels)} if labels else {}
        metadata |= {"resourceVersion": str(1000 + len(self.objects)), "generation": 1}
        body = {"apiVersion": api, "kind": kind, "metadata": metadata, **parts}
        self.objects.append(body)
        return body


def _deployed(container: Body) -> Body:
    name = container["name"]
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
    return {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template}


def hash_of(name: str) -> int:
    """A number that is the same in each process."""
    return sum((index + 1) * ord(letter) for index, letter in enumerate(name))


def drawn(seeds: Sequence[int]) -> Iterator[Cluster]:
    yield from map(draw, seeds)
