"""Random platforms and demands to hold `pack` against: plain text by a seed, small enough for an exact oracle.

Nodes of a model have equally many GPUs, and no pool shares GPUs without isolation.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import yaml

from tests.laws.packing.oracle import BOARDS, is_layout

CLUSTER: Final = "c"
MODELS: Final = ("A100-80GB", "A100-80GB", "H100-80GB", "H100-80GB", "H200-141GB", "A100-40GB", "A30-24GB", "L40S-48GB")
MEMORY: Final = (2, 4, 9, 15, 18, 30, 37, 60, 74, 100)
"""GiB that a pod uses: none is so near to the size of a partition that it matters how that was measured."""

Spec = dict[str, Any]


class Stranger(NamedTuple):
    """Files of policies by path, a `Demand` document or none, and what else `pack` is asked."""

    files: Mapping[str, str]
    demand: Spec | None
    nodes_at_most: Mapping[str, int]
    keep: tuple[str, ...]
    may_cut_guarantees: bool


def stranger(seed: int) -> Stranger:
    rng = random.Random(seed)
    documents: dict[tuple[str, str], Spec] = {}
    models = list(dict.fromkeys(rng.choices(MODELS, k=rng.choice((1, 1, 2, 2, 3)))))
    pools: dict[str, Spec] = {}
    for model in models:
        gpus = rng.choice((4, 8))
        for _ in range(rng.choice((1, 1, 2) if len(models) > 1 else (1, 2, 3))):
            name = f"p{len(pools)}"
            pools[name] = documents["Pool", name] = _pool(rng, name, model, gpus, documents)
    tenants = [f"t{number}" for number in range(rng.randint(1, 4))]
    grants = _grant(rng, tenants, pools, documents)
    keep = tuple(rng.sample([*pools], 1)) if rng.random() < 0.1 else ()
    demand = _demand(rng, tenants, pools) if not grants or rng.random() < 0.85 else None
    most = {}
    for model in models:
        there = [(name, spec["nodes"]["count"]) for name, spec in pools.items() if spec["gpu"] == model]
        least = max(sum(count for name, count in there if name in keep), 1)
        if rng.random() < 0.5:
            most[model] = rng.randint(least, max(sum(count for _, count in there) + 3, least))
    return Stranger(_files(rng, documents), demand, most, keep, may_cut_guarantees=rng.random() < 0.3)


# --- Platforms ---------------------------------------------------------------------------------------------------


def _pool(rng: random.Random, name: str, model: str, gpus: int, documents: dict[tuple[str, str], Spec]) -> Spec:
    nodes = {"count": rng.randint(1, 4), "gpusPerNode": gpus, "namePattern": f"{name}-[0-9]+"}
    spec: Spec = {"gpu": model, "nodes": nodes, "sharing": _sharing(rng, name, model, gpus, documents)}
    if rng.random() < 0.3:
        spec["taints"] = [{"key": "nvidia.com/gpu", "value": name, "effect": "NoSchedule"}]
    return spec


def _sharing(rng: random.Random, name: str, model: str, gpus: int, documents: dict[tuple[str, str], Spec]) -> Spec:
    way = rng.choice(("exclusive", "single", "instances", "devices")) if BOARDS[model].profiles else "exclusive"
    match way:
        case "single":
            profile = rng.choice([*BOARDS[model].profiles])
            most = next(number for number in range(8, 0, -1) if is_layout(model, {profile: number}))
            return {"mig": {"instances": {profile: most}, "strategy": "single"}}
        case "instances":
            return {"mig": {"instances": _instances(rng, model)}}
        case "devices":
            cut = sorted(rng.sample(range(gpus), rng.randint(1, gpus - 1)))
            rest = [index for index in range(gpus) if index not in cut]
            documents["MigLayout", f"lay-{name}"] = {
                "gpu": model,
                "devices": [{"gpus": cut, "instances": _instances(rng, model)}, {"gpus": rest, "enabled": False}],
            }
            return {"mig": {"layout": f"lay-{name}"}}
        case _:
            return {"exclusive": {}}


def _instances(rng: random.Random, model: str) -> dict[str, int]:
    found: dict[str, int] = {}
    while True:
        more = [{**found, name: found.get(name, 0) + 1} for name in BOARDS[model].profiles]
        fitting = [counts for counts in more if is_layout(model, counts)]
        if not fitting or (found and rng.random() < 0.1):
            return found
        found = rng.choice(fitting)


def _grant(
    rng: random.Random, tenants: list[str], pools: dict[str, Spec], documents: dict[tuple[str, str], Spec]
) -> int:
    """Add the tenants with what they are guaranteed, and return how many units that is."""
    left = {(name, unit): number for name, spec in pools.items() for unit, number in _capacity(spec, documents).items()}
    grants = 0
    for tenant in tenants:
        quotas: list[Spec] = []
        for key in rng.sample([*left], min(rng.randint(0, 2), len(left))):
            number = rng.randint(0, left[key] if rng.random() < 0.3 else left[key] // 2)
            left[key] -= number
            quotas.append({"pool": key[0], "unit": key[1], "guaranteed": number})
        documents["Tenant", tenant] = {"namespaces": [tenant], "quotas": quotas, "members": [tenant]}
        grants += sum(quota["guaranteed"] for quota in quotas)
    return grants


def _capacity(spec: Spec, documents: Mapping[tuple[str, str], Spec]) -> dict[str, int]:
    nodes, mig = spec["nodes"], spec["sharing"].get("mig")
    if mig is None:
        return {"gpu": nodes["count"] * nodes["gpusPerNode"]}
    if "layout" not in mig:
        each = nodes["count"] * nodes["gpusPerNode"]
        return {name: number * each for name, number in mig["instances"].items()}
    cut, whole = documents["MigLayout", mig["layout"]]["devices"]
    units = {name: number * nodes["count"] * len(cut["gpus"]) for name, number in cut["instances"].items()}
    return {**units, "gpu": nodes["count"] * len(whole["gpus"])}


def _files(rng: random.Random, documents: Mapping[tuple[str, str], Spec]) -> dict[str, str]:
    """Return the policies as files: some that all clusters share, some of the cluster alone."""
    spec: Spec = {
        "kubernetes": "1.34",
        "gpuOperator": {"install": "helm", "version": "v26.7.0"},
        "nodeLabels": "nfd",
        "scheduler": {"kind": rng.choice(("kueue", "kubernetes"))},
    }
    texts = {f"overlays/{CLUSTER}/cluster.yaml": _text("Cluster", CLUSTER, spec), "policies/all.yaml": ""}
    chance = rng.choice((0, 0.5, 1))
    for (kind, name), body in documents.items():
        path = f"overlays/{CLUSTER}/own.yaml" if rng.random() < chance else "policies/all.yaml"
        texts[path] = texts.get(path, "") + _text(kind, name, body)
    return {path: text for path, text in texts.items() if text}


def _text(kind: str, name: str, spec: Spec) -> str:
    body = {"apiVersion": "gpuplan.dev/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
    return "---\n" + yaml.safe_dump(body, sort_keys=False)


# --- Demands -----------------------------------------------------------------------------------------------------


def _demand(rng: random.Random, tenants: list[str], pools: Mapping[str, Spec]) -> Spec:
    needs = [_need(rng, f"w{number}", tenants, pools) for number in range(rng.randint(1, 4))]
    return {"apiVersion": "gpuplan.dev/v1", "kind": "Demand", "metadata": {"name": "d"}, "spec": {"needs": needs}}


def _need(rng: random.Random, name: str, tenants: list[str], pools: Mapping[str, Spec]) -> Spec:
    need: Spec = {"team": rng.choice([*tenants, "new0", "new1"]), "name": name, "pods": rng.choice((1, 1, 2, 3, 4, 7))}
    spec = rng.choice([*pools.values()])
    if rng.random() < 0.4:
        need["gpus"] = rng.choice([2, 3, 4, *range(1, spec["nodes"]["gpusPerNode"] + 1)])
        need["pods"] = rng.choice((1, 1, 2, 2, 3))
    else:
        largest = max(BOARDS[one["gpu"]].memory_mib for one in pools.values())
        need["memory"] = f"{rng.choice([gib for gib in MEMORY if gib * 1024 < largest])}Gi"
        need["pods"] *= rng.choice((1, 1, 2))
        if rng.random() < 0.3:
            need["compute"] = rng.choice((0.1, 0.25, 0.5))
        if rng.random() < 0.2:
            need["isolation"] = rng.choice(("hardware", "none") if "compute" in need else ("hardware", "wholeGpu"))
    if rng.random() < 0.25:
        need["models"] = [spec["gpu"]]
    return need
