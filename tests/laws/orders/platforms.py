"""Random platforms: one cluster with any scheduler, way of labelling and delivery, and three to eight real nodes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

Spec = dict[str, Any]

CLUSTER: Final = "test"
GPU: Final = "A100-80GB"
DIVISIONS: Final[tuple[Mapping[str, int], ...]] = (
    {"1g.10gb": 7},
    {"3g.40gb": 2},
    {"2g.20gb": 3},
    {"3g.40gb": 1, "2g.20gb": 2},
    {"2g.20gb": 3, "1g.10gb": 1},
    {"7g.80gb": 1},
    {"1g.20gb": 4},
    {"4g.40gb": 1, "3g.40gb": 1},
)
SCHEDULERS: Final = ("kubernetes", "kueue", "kai")
MODES: Final = ("nfd", "node", "external")
DELIVERIES: Final = ("argocd", "flux", "neither")
ARGOCD: Final = {"repoURL": "https://git.example.com/platform/gpu.git"}


@dataclass
class Platform:
    """Documents by kind and name, the cluster's spec, and the nodes that there are, with the pool of each.

    ``text`` turns documents into a file in another way than usual.
    """

    cluster: Spec
    documents: dict[tuple[str, str], Spec] = field(default_factory=dict)
    nodes: dict[str, str] = field(default_factory=dict)
    overlay: set[tuple[str, str]] = field(default_factory=set)
    """Those that the cluster's own folder has."""
    text: Callable[[list[Spec]], str] | None = None

    def copy(self) -> Platform:
        return deepcopy(self)

    def of(self, kind: str) -> dict[str, Spec]:
        return {name: spec for (found, name), spec in self.documents.items() if found == kind}

    @property
    def pools(self) -> dict[str, Spec]:
        return self.of("Pool")

    def members(self, pool: str) -> list[str]:
        return [node for node, found in self.nodes.items() if found == pool]

    def write(self, root: Path) -> None:
        """``root`` is empty."""
        for path, text in self.files().items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8", newline="")

    def files(self) -> dict[str, str]:
        """The texts by path."""
        cluster = _document("Cluster", CLUSTER, self.cluster)
        files = {f"overlays/{CLUSTER}/cluster.yaml": [cluster], "policies/all.yaml": []}
        own = f"overlays/{CLUSTER}/own.yaml"
        for (kind, name), spec in self.documents.items():
            path = own if (kind, name) in self.overlay else "policies/all.yaml"
            files.setdefault(path, []).append(_document(kind, name, spec))
        text = self.text or _dumped
        return {path: text(deepcopy(bodies)) for path, bodies in files.items()}

    def units(self, pool: str) -> dict[str, int]:
        """What a pool hands out, and how many of each."""
        spec = self.pools[pool]
        return units_of(self, spec["sharing"], spec["nodes"]["count"] * spec["nodes"]["gpusPerNode"])

    def mend(self) -> None:
        """Take away what refers to what is gone, and cut what is granted beyond what there is."""
        left = {(pool, unit): count for pool in self.pools for unit, count in self.units(pool).items()}
        for spec in self.of("Tenant").values():
            kept = []
            for quota in spec.get("quotas", ()):
                place = quota["pool"], quota["unit"]
                if place in left and left[place] > 0:
                    quota["guaranteed"] = min(quota["guaranteed"], left[place])
                    left[place] -= quota["guaranteed"]
                    if isinstance(quota.get("limit"), int):
                        quota["limit"] = max(quota["limit"], quota["guaranteed"])
                    quota.pop("split", None)
                    kept.append(quota)
            spec["quotas"] = kept
            classes = self.of("PriorityClass")
            spec["priorityClasses"] = [name for name in spec.get("priorityClasses", ()) if name in classes]
        for name, workload in self.of("Workload").items():
            tenant = self.of("Tenant").get(workload["tenant"])
            granted = [quota for quota in (tenant or {"quotas": []})["quotas"] if quota["guaranteed"] > 0]
            if not any((quota["pool"], quota["unit"]) == (workload["pool"], workload["unit"]) for quota in granted):
                del self.documents["Workload", name]


def units_of(platform: Platform, sharing: Spec, gpus: int) -> dict[str, int]:
    match sharing:
        case {"mig": mig}:
            return {unit: count * gpus for unit, count in instances_of(platform, mig).items()}
        case {"timeSlicing": slicing} | {"mps": slicing}:
            return {"shared": slicing["replicas"] * gpus}
        case {"fraction": _}:
            return {}
        case _:
            return {"gpu": gpus}


def instances_of(platform: Platform, mig: Spec) -> Mapping[str, int]:
    found: Mapping[str, int] = (platform.of("MigLayout")[mig["layout"]] if "layout" in mig else mig)["instances"]
    return found


def random_platform(rng: random.Random, **fixed: str) -> Platform:
    """``fixed`` may say the scheduler, the mode, the delivery, and how the device plugin's ConfigMap is called."""
    mode = fixed.pop("mode", "") or rng.choice((*MODES, "nfd"))
    platform = Platform(random_cluster(rng, mode, **fixed))
    for index, division in enumerate(rng.sample(DIVISIONS, rng.randint(2, 4))):
        platform.documents["MigLayout", f"lay{index}"] = {"gpu": GPU, "instances": dict(division)}
    for index in range(rng.choice((2, 2, 3, 3, 4))):
        add_pool(rng, platform, f"pool{index}", rng.randint(1, 3))
    while len(platform.nodes) < 3:
        add_pool(rng, platform, f"pool{len(platform.pools)}", 2)
    if rng.random() < 0.5:
        first, second = rng.sample([*platform.pools.values()], 2)
        second["sharing"] = deepcopy(first["sharing"])
        second["nodes"]["gpusPerNode"] = first["nodes"]["gpusPerNode"]
    for index in range(rng.randint(0, 2)):
        spec = {"value": 10 * (index + 1), "description": "Work."}
        platform.documents["PriorityClass", f"class{index}"] = spec
    for index in range(rng.randint(1, 3)):
        add_tenant(rng, platform, f"team{index}")
    platform.mend()
    if rng.random() < 0.3:
        add_workload(rng, platform, "work")
    if fixed.get("files", rng.choice(("perContent", "perContent", "fixed"))) == "fixed":
        platform.cluster["gpuOperator"]["devicePluginConfig"] = "fixed"
    return platform


def random_cluster(rng: random.Random, mode: str, **fixed: str) -> Spec:
    delivery = fixed.get("delivery") or rng.choice(DELIVERIES)
    cluster: Spec = {
        "kubernetes": "1.34",
        "gpuOperator": {"install": "helm", "version": "v26.7.0"},
        "nodeLabels": mode,
        "scheduler": {"kind": fixed.get("scheduler") or rng.choice(SCHEDULERS)},
    }
    if delivery == "argocd":
        cluster["argocd"] = dict(ARGOCD)
    elif delivery == "flux":
        cluster["flux"] = {}
    if rng.random() < 0.3:
        cluster["monitoring"] = {}
    return cluster


def add_pool(rng: random.Random, platform: Platform, name: str, count: int, sharing: Spec | None = None) -> Spec:
    """With names where objects need them, else with a pattern now and then."""
    has_pattern = platform.cluster["nodeLabels"] != "node" and rng.random() < 0.4
    names = [f"gpu-{name}-{number}" for number in range(1, count + 1)]
    chosen = {"namePattern": f"gpu-{name}-[0-9]+"} if has_pattern else {"names": names}
    spec: Spec = {
        "gpu": GPU,
        "nodes": {"count": count, "gpusPerNode": rng.choice((2, 4, 8)), **chosen},
        "sharing": sharing or random_sharing(rng, platform),
        "workloadTypes": ["training"],
    }
    if rng.random() < 0.6:
        spec["taints"] = [{"key": "nvidia.com/gpu", "value": name, "effect": "NoSchedule"}]
    if rng.random() < 0.6:
        spec["disruption"] = {"approval": rng.choice(("manual", "automatic")), "maxUnavailable": rng.randint(1, 3)}
    platform.documents["Pool", name] = spec
    platform.nodes |= dict.fromkeys(names, name)
    return spec


def random_sharing(rng: random.Random, platform: Platform) -> Spec:
    kind = rng.choice(("layout", "layout", "layout", "instances", "timeSlicing", "timeSlicing", "exclusive"))
    match kind:
        case "layout":
            return {"mig": {"layout": rng.choice([*platform.of("MigLayout")])}}
        case "instances":
            return {"mig": {"instances": dict(rng.choice(DIVISIONS))}}
        case "timeSlicing" if platform.cluster["scheduler"]["kind"] in ("kai", "runai"):
            return {"fraction": {}}
        case "timeSlicing":
            return {"timeSlicing": {"replicas": rng.randint(2, 6)}}
        case _:
            return {"exclusive": {}}


def add_tenant(rng: random.Random, platform: Platform, name: str) -> Spec:
    quotas = []
    for pool in rng.sample([*platform.pools], rng.randint(1, len(platform.pools))):
        if not (units := platform.units(pool)):
            continue
        unit, count = rng.choice([*units.items()])
        quota: Spec = {"pool": pool, "unit": unit, "guaranteed": rng.randint(0, count // 2)}
        if rng.random() < 0.3:
            quota["limit"] = rng.randint(quota["guaranteed"], count)
        quotas.append(quota)
    spec: Spec = {"namespaces": [name], "quotas": quotas, "members": [name]}
    if rng.random() < 0.5:
        spec["priorityClasses"] = [*platform.of("PriorityClass")]
    platform.documents["Tenant", name] = spec
    return spec


def add_workload(rng: random.Random, platform: Platform, name: str) -> Spec | None:
    """Training of one pod, where some team has a guarantee."""
    granted = [
        (team, quota)
        for team, spec in platform.of("Tenant").items()
        for quota in spec["quotas"]
        if quota["guaranteed"] > 0 and len(spec["namespaces"]) == 1
    ]
    if not granted:
        return None
    team, quota = rng.choice(granted)
    spec: Spec = {
        "tenant": team,
        "training": {"pods": 1},
        "pool": quota["pool"],
        "unit": quota["unit"],
        "image": "registry.example.com/work:1.0.0",
    }
    if classes := platform.documents["Tenant", team].get("priorityClasses"):
        spec["priorityClass"] = classes[0]
    platform.documents["Workload", name] = spec
    return spec


def gpus_of(*platforms: Platform) -> Iterator[tuple[str, int]]:
    """Every real node, and how many GPUs it has."""
    for platform in reversed(platforms):
        for node, pool in platform.nodes.items():
            if pool in platform.pools:
                yield node, platform.pools[pool]["nodes"]["gpusPerNode"]


def _document(kind: str, name: str, spec: Spec) -> Spec:
    return {"apiVersion": "gpuplan.dev/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def _dumped(bodies: list[Spec]) -> str:
    return str(yaml.dump_all(bodies, Dumper=yaml.CSafeDumper, sort_keys=False))
