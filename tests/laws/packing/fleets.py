"""Random fleets to be packed: GPU models cut in every way, with tenants, work and prices, and demands on them."""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import yaml

from gpuplan.compiler.catalog import Gpu, load
from gpuplan.compiler.planning.placement.placing import InstanceCounts, Placed, place
from gpuplan.compiler.planning.plan import Plan
from gpuplan.compiler.planning.schedulers import SCHEDULERS as TRAITS
from tests.laws.orders.platforms import CLUSTER, Platform, Spec, random_cluster
from tests.plans import resolve_text

MODELS: Final = (
    *("A100-80GB", "A100-80GB", "A100-40GB", "H100-80GB", "H100-80GB", "H200-141GB", "B200-180GB", "A30-24GB"),
    *("RTX-PRO-6000-96GB", "L4-24GB", "L40S-48GB", "T4-16GB"),
)
SCHEDULERS: Final = tuple(TRAITS)
TERMS: Final = ("onDemand", "reserved1Year", "spot", "owned")
MEMORY: Final = {"2Gi": 3, "4500Mi": 5, "9Gi": 10, "17Gi": 19, "19Gi": 21, "35Gi": 38, "70Gi": 76}
"""What a pod uses, and how many GB that is at most."""
INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"


class Fleet(NamedTuple):
    """Files of policies by path, a demand as `pack` takes it, and what else it is asked."""

    files: Mapping[str, str]
    demand: Mapping[str, bytes]
    options: Mapping[str, Any]


def random_fleet(rng: random.Random) -> Fleet:
    platform = _platform(rng)
    _tenants(rng, platform)
    _work(rng, platform)
    if rng.random() < 0.6:
        _prices(rng, platform)
    platform.overlay |= {key for key in platform.documents if rng.random() < 0.3}
    demand = _demand(rng, platform)
    return Fleet(_texts(rng, platform), demand, _options(rng, platform, demand))


def _maybe(rng: random.Random, chance: float, spec: Spec, **values: Any) -> None:
    for key, value in values.items():
        if rng.random() < chance:
            spec[key] = value


# --- Pools -------------------------------------------------------------------------------------------------------


def _platform(rng: random.Random) -> Platform:
    scheduler = rng.choice(SCHEDULERS)
    platform = Platform(random_cluster(rng, rng.choice(("nfd", "nfd", "node", "external")), scheduler=scheduler))
    is_claimed = scheduler == "kubernetes" and rng.random() < 0.25
    if rng.random() < 0.1:
        platform.cluster["platform"] = "openshift"
    if rng.random() < 0.2:
        version = rng.choice(("580.95.05", "570.195.03", "535.274.02"))
        platform.cluster["gpuOperator"]["driver"] = {"version": version}
    for index in range(rng.choice((1, 2, 2, 3, 3, 4, 5))):
        _add_pool(rng, platform, f"pool{index}", is_claimed=is_claimed)
    for name, spec in platform.pools.items():
        others = [other for other in platform.pools if other != name]
        if others and rng.random() < 0.1:
            spec["fallback"] = rng.choice(others)
    return platform


def _add_pool(rng: random.Random, platform: Platform, name: str, *, is_claimed: bool) -> None:
    before = [*platform.pools.values()]
    like = rng.choice(before) if before and rng.random() < 0.6 else None
    model = like["gpu"] if like else rng.choice(MODELS)
    gpus = like["nodes"]["gpusPerNode"] if like else rng.choice((1, 2, 4, 8))
    count = rng.randint(1, 4)
    mode = platform.cluster["nodeLabels"]
    nodes: Spec = {"count": count, "gpusPerNode": gpus}
    names = [f"gpu-{name}-{number}" for number in range(1, count + 1)]
    way = rng.choice(("names", "pattern", "selector" if mode == "external" else "pattern"))
    if mode == "node" or way == "names":
        nodes["names"] = names
    elif way == "pattern":
        nodes["namePattern"] = f"gpu-{name}-[0-9]+"
    else:
        nodes["selector"] = {"example.com/pool": name}
        _maybe(rng, 0.5, nodes["selector"], **{INSTANCE_TYPE: f"type-{rng.randint(0, 1)}"})
    if rng.random() < 0.15:
        nodes |= {"cpu": "96", "memory": "900Gi"}
    spec: Spec = {"gpu": model, "nodes": nodes, "sharing": _sharing(rng, platform, model, gpus, is_claimed=is_claimed)}
    if is_claimed:
        spec["allocation"] = "dra"
    _maybe(
        rng,
        0.2,
        spec,
        workloadTypes=[rng.choice(("training", "inference"))],
        taints=[{"key": "nvidia.com/gpu", "value": name, "effect": "NoSchedule"}],
        disruption={"approval": rng.choice(("manual", "automatic")), "maxUnavailable": rng.randint(1, 3)},
        billing={"term": rng.choice(TERMS)},
        nodeLabels={"example.com/team": "gpu"},
    )
    if rng.random() < 0.1:
        spec.setdefault("billing", {})["nodeType"] = f"type-{rng.randint(0, 1)}"
    if "cpu" in nodes:
        spec["followUnits"] = rng.random() < 0.5
    platform.documents["Pool", name] = spec


def _sharing(rng: random.Random, platform: Platform, model: str, gpus: int, *, is_claimed: bool) -> Spec:
    gpu = load().find(model)
    counts_resources = platform.cluster["scheduler"]["kind"] in ("kubernetes", "kueue")
    kinds = ["exclusive"]
    if gpu and gpu.supports_mig:
        kinds += [*["layout"] * 3, *["instances"] * 2, "devices", "single"]
        kinds += ["sliced"] if counts_resources and not is_claimed else []
    if not is_claimed:
        kinds += ["timeSlicing", "mps"] if counts_resources else ["fraction"]
    match rng.choice(kinds):
        case "layout" if gpu:
            return {"mig": {"layout": _layout(rng, platform, gpu, gpus)}}
        case "instances" if gpu:
            return {"mig": {"instances": division(rng, gpu)}}
        case "devices" if gpu:
            return {"mig": {"devices": _devices(rng, gpu, gpus)}}
        case "single" if gpu:
            profile = rng.choice(gpu.plain_profiles)
            return {"mig": {"instances": {profile.name: rng.randint(1, most(gpu, profile.name))}, "strategy": "single"}}
        case "sliced" if gpu:
            return {"mig": {"instances": division(rng, gpu), "timeSlicing": {"replicas": 2}}}
        case "timeSlicing" | "mps" as way:
            return {way: {"replicas": rng.randint(2, 6)}}
        case "fraction":
            return {"fraction": {}}
        case _:
            return {"exclusive": {}}


def _layout(rng: random.Random, platform: Platform, gpu: Gpu, gpus: int) -> str:
    """A MigLayout that is there for the model, or another one."""
    there = [name for name, spec in platform.of("MigLayout").items() if spec["gpu"] == gpu.id]
    fitting = [name for name in there if "devices" not in platform.documents["MigLayout", name]]
    if fitting and rng.random() < 0.4:
        return rng.choice(fitting)
    name = f"lay{len(platform.of('MigLayout'))}"
    cut: Spec = {"devices": _devices(rng, gpu, gpus)} if rng.random() < 0.2 else {"instances": division(rng, gpu)}
    platform.documents["MigLayout", name] = {"gpu": gpu.id, **cut}
    return name


def _devices(rng: random.Random, gpu: Gpu, gpus: int) -> list[Spec]:
    """Each GPU cut in one of two ways, or not at all."""
    first = sorted(rng.sample(range(gpus), rng.randint(1, gpus)))
    rest = [index for index in range(gpus) if index not in first]
    found: list[Spec] = [{"gpus": first, "instances": division(rng, gpu)}]
    if rest:
        whole = rng.random() < 0.3
        found.append({"gpus": rest, "enabled": False} if whole else {"gpus": rest, "instances": division(rng, gpu)})
    return found


def division(rng: random.Random, gpu: Gpu) -> dict[str, int]:
    """Instances that fit on one GPU; as many as fit, most often."""
    found: dict[str, int] = {}
    while True:
        fitting = [p.name for p in gpu.plain_profiles if _fits(gpu, {**found, p.name: found.get(p.name, 0) + 1})]
        if not fitting or (found and rng.random() < 0.1):
            return found
        name = rng.choice(fitting)
        found[name] = found.get(name, 0) + 1


def most(gpu: Gpu, profile: str) -> int:
    return next(count for count in range(8, 0, -1) if _fits(gpu, {profile: count}))


def _fits(gpu: Gpu, counts: InstanceCounts) -> bool:
    return isinstance(place(gpu, counts), Placed)


# --- Tenants -----------------------------------------------------------------------------------------------------


def _plan(platform: Platform) -> Plan:
    plan, _ = resolve_text("---\n".join(text for text in Platform.files(_plainly(platform)).values() if text))
    assert plan is not None
    return plan


def _plainly(platform: Platform) -> Platform:
    return Platform(platform.cluster, platform.documents)


Left = dict[tuple[str, str, str], int]
"""What is still to be granted of a unit: by the tenant that holds it, empty for the cluster, and by pool and unit."""


def _tenants(rng: random.Random, platform: Platform) -> None:
    units = {(pool.name, unit.name): int(unit.capacity) for pool in _plan(platform).pools for unit in pool.units}
    left: Left = {("", *key): capacity for key, capacity in units.items()}
    for index in range(rng.randint(0, 2)):
        spec = {"value": 10 * (index + 1), "description": "Work."}
        platform.documents["PriorityClass", f"class{index}"] = spec
    parents: dict[str, str] = {}
    for index in range(rng.randint(1, 5)):
        name = f"team{index}"
        tops = [team for team, above in parents.items() if not above]
        parents[name] = rng.choice(tops) if tops and rng.random() < 0.3 else ""
        _add_tenant(rng, platform, name, parents[name], left)


def _add_tenant(rng: random.Random, platform: Platform, name: str, parent: str, left: Left) -> None:
    namespaces = [name] if rng.random() < 0.8 else [f"{name}-a", f"{name}-b"]
    keys = [key[1:] for key in left if not key[0]]
    quotas = [
        _quota(rng, platform, name, parent, key, namespaces, left)
        for key in rng.sample(keys, min(rng.randint(0, 4), len(keys)))
    ]
    spec: Spec = {"namespaces": namespaces, "quotas": quotas, "members": [name]}
    if parent:
        spec["parent"] = parent
    if rng.random() < 0.5 or any("classLimits" in quota for quota in quotas):
        spec["priorityClasses"] = [*platform.of("PriorityClass")]
    kinds = sorted({kind for quota in quotas for kind in platform.pools[quota["pool"]].get("workloadTypes", ())})
    if kinds and rng.random() < 0.3:
        spec["workloadTypes"] = kinds
    platform.documents["Tenant", name] = spec


def _quota(
    rng: random.Random,
    platform: Platform,
    name: str,
    parent: str,
    key: tuple[str, str],
    namespaces: list[str],
    left: Left,
) -> Spec:
    holder = parent if (parent, *key) in left else ""
    guaranteed = rng.randint(0, left[(holder, *key)])
    guaranteed = guaranteed if rng.random() < 0.3 else guaranteed // 2
    left[(holder, *key)] -= guaranteed
    left[(name, *key)] = guaranteed
    quota: Spec = {"pool": key[0], "unit": key[1], "guaranteed": guaranteed}
    limit = rng.choice((None, None, guaranteed + rng.randint(0, 3), "none" if len(namespaces) == 1 else None))
    _maybe(rng, 0.7, quota, **({"limit": limit} if limit is not None else {}))
    _maybe(rng, 0.2, quota, lendable=rng.randint(0, guaranteed))
    if len(namespaces) > 1:
        cap = quota.get("limit", guaranteed)
        part = rng.randint(0, cap)
        quota["split"] = {namespaces[0]: part, namespaces[1]: cap - part}
    classes = platform.of("PriorityClass")
    if classes and platform.cluster["scheduler"]["kind"] == "kubernetes" and rng.random() < 0.1:
        quota["classLimits"] = {next(iter(classes)): rng.randint(0, guaranteed)}
    _maybe(rng, 0.05, quota, pods=guaranteed + 1, cpu="8", memory={"guaranteed": "64Gi", "limit": "80Gi"})
    return quota


# --- Work --------------------------------------------------------------------------------------------------------


def _work(rng: random.Random, platform: Platform) -> None:
    for index in range(rng.choice((0, 0, 0, 1, 1, 2, 3))):
        granted = [
            (team, spec, quota)
            for team, spec in platform.of("Tenant").items()
            for quota in spec["quotas"]
            if quota["guaranteed"] > 0 and not _children(platform, team)
        ]
        if granted:
            team, spec, quota = rng.choice(granted)
            most_units = min([quota["guaranteed"], *quota.get("split", {}).values(), *_class_limits(quota)])
            if most_units:
                work = _workload(rng, platform, team, quota, most_units)
                platform.documents["Workload", f"work{index}"] = work
                if classes := spec.get("priorityClasses"):
                    work["priorityClass"] = classes[-1]


def _children(platform: Platform, team: str) -> bool:
    return any(spec.get("parent") == team for spec in platform.of("Tenant").values())


def _class_limits(quota: Spec) -> list[int]:
    return [*quota.get("classLimits", {}).values()]


def _workload(rng: random.Random, platform: Platform, team: str, quota: Spec, most_units: int) -> Spec:
    pods = rng.randint(1, min(most_units, 4))
    kinds: Spec = {
        "training": {"pods": pods},
        "batch": {"pods": pods},
        "inference": {"replicas": pods},
        "workspace": {},
    }
    kind = rng.choice([*kinds])
    spec: Spec = {
        "tenant": team,
        kind: kinds[kind],
        "pool": quota["pool"],
        "unit": quota["unit"],
        "image": "registry.example.com/work:1.0.0",
    }
    gpus = platform.pools[quota["pool"]]["nodes"]["gpusPerNode"]
    if quota["unit"] == "gpu" and gpus > 1 and 2 * pods <= most_units and rng.random() < 0.5:
        spec["count"] = 2
    if quota["unit"] == "fraction":
        spec["fraction"] = rng.choice((0.25, 0.5))
    namespaces = platform.documents["Tenant", team]["namespaces"]
    if len(namespaces) > 1:
        spec["namespace"] = namespaces[0]
    return spec


# --- Prices ------------------------------------------------------------------------------------------------------


def _prices(rng: random.Random, platform: Platform) -> None:
    pools = platform.pools
    models = sorted({spec["gpu"] for spec in pools.values()})
    spec: Spec = {"currency": rng.choice(("EUR", "USD", "JPY")), "gpus": {}}
    for model in models:
        if rng.random() < 0.95:
            spec["gpus"][model] = _rate(rng)
    if rng.random() < 0.5:
        spec["nodeTypes"] = {f"type-{number}": _rate(rng) for number in range(2)}
    if rng.random() < 0.4:
        spec["pools"] = {name: _rate(rng) for name in rng.sample([*pools], rng.randint(1, len(pools)))}
    platform.documents["Prices", "list"] = spec


def _rate(rng: random.Random) -> Spec:
    price: Any = rng.choice((0, 1, 2.5, 3.37, 32.7726))
    if rng.random() < 0.3:
        price = {"any": price, rng.choice(TERMS): rng.choice((0.5, 1.25))}
    return {rng.choice(("perGpuHour", "perNodeHour")): price}


# --- Demand ------------------------------------------------------------------------------------------------------


def _demand(rng: random.Random, platform: Platform) -> dict[str, bytes]:
    """None, a document, or a table; some ask for more than there is."""
    match rng.choice(("quotas", "quotas", "document", "document", "table")):
        case "document":
            needs = [_need(rng, platform) for _ in range(rng.randint(1, 5))]
            for need in needs:
                if rng.random() < 0.15:
                    _serve(rng, need)
            spec: Spec = {"needs": needs}
            _maybe(rng, 0.2, spec, growth=rng.choice(("20%", 1.5)))
            body = {"apiVersion": "gpuplan.dev/v1", "kind": "Demand", "metadata": {"name": "teams"}, "spec": spec}
            return {"teams.yaml": yaml.safe_dump(body, sort_keys=False).encode()}
        case "table":
            return {"teams.csv": _table([_need(rng, platform) for _ in range(rng.randint(1, 5))])}
        case _:
            return {}


def _need(rng: random.Random, platform: Platform) -> Spec:
    teams = [*platform.of("Tenant"), *(team for team in ("new0", "new1") if rng.random() < 0.6)]
    need: Spec = {"team": rng.choice(teams), "pods": rng.choice((1, 1, 1, 2, 2, 3, 4, 7))}
    pools = [*platform.pools.values()]
    if rng.random() < 0.2:
        most = max(spec["nodes"]["gpusPerNode"] for spec in pools)
        need["gpus"] = rng.choice([gpus for gpus in (1, 1, 2, 4) if gpus <= most or rng.random() < 0.1])
    else:
        largest = max(int(spec["gpu"].rpartition("-")[2].removesuffix("GB")) for spec in pools)
        need["memory"] = rng.choice([text for text, gb in MEMORY.items() if gb < largest or rng.random() < 0.02])
        _maybe(rng, 0.2, need, compute=rng.choice((0.1, 0.25, 0.5)))
        _maybe(rng, 0.4, need, isolation=rng.choice(("hardware", "mps", "none", "none")))
    if rng.random() < 0.2:
        need["models"] = [rng.choice([*platform.pools.values()])["gpu"]]
    _maybe(rng, 0.1, need, growth=rng.choice((1.2, "50%")), burst=need["pods"] + 1, name="some work")
    if "gpus" not in need and rng.random() < 0.05:
        need["engines"] = {"dec": 1}
    return need


def _serve(rng: random.Random, need: Spec) -> None:
    """Requests in place of pods."""
    for key in ("pods", "burst", "gpus", "isolation", "compute"):
        need.pop(key, None)
    need["memory"] = "4Gi"
    need["service"] = {
        "requestsPerSecond": rng.choice((10, 50, 400)),
        "throughput": [
            {"size": size, "requestsPerSecond": 20 * size, "latency": f"{100 // size}ms"} for size in (1, 2, 3, 4, 7)
        ],
    }


def _table(needs: list[Spec]) -> bytes:
    rows = [{**need, **{f"engines.{key}": value for key, value in need.pop("engines", {}).items()}} for need in needs]
    columns = [*dict.fromkeys(column for row in rows for column in row if column != "engines")]
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, extrasaction="ignore")
    writer.writeheader()
    writer.writerows(
        {key: " ".join(value) if isinstance(value, list) else value for key, value in row.items()} for row in rows
    )
    return text.getvalue().encode()


def _options(rng: random.Random, platform: Platform, demand: Mapping[str, bytes]) -> dict[str, Any]:
    pools, layouts = [*platform.pools], [*platform.of("MigLayout")]
    found: dict[str, Any] = {"cluster": CLUSTER}
    objectives = ["gpus", "gpus", "changes"] + (["price"] * 2 if platform.of("Prices") else [])
    found["objective"] = rng.choice(objectives)
    _maybe(rng, 0.2, found, keep=(rng.choice([*pools, *layouts]),))
    _maybe(rng, 0.15, found, most_layouts=rng.randint(1, 3))
    _maybe(rng, 0.15, found, pools=tuple(rng.sample(pools, rng.randint(1, len(pools)))))
    if rng.random() < (0.6 if demand else 0.2):
        found["nodes_at_most"] = {rng.choice([*platform.pools.values()])["gpu"]: rng.randint(4, 20)}
    return found


# --- Texts -------------------------------------------------------------------------------------------------------


def _texts(rng: random.Random, platform: Platform) -> dict[str, str]:
    """The files, as people and programs write them."""
    style = True if rng.random() < 0.15 else None
    return {path: _ended(rng, _written(text, style)) for path, text in platform.files().items() if text}


def _written(text: str, style: bool | None) -> str:
    """Each document with a comment above it, in flow style or as it comes."""
    return "".join(
        f"# About {body['metadata']['name']}.\n---\n" + yaml.safe_dump(body, sort_keys=False, default_flow_style=style)
        for body in yaml.safe_load_all(text)
    )


def _ended(rng: random.Random, text: str) -> str:
    """Lines as they end on Windows, perhaps after a byte order mark, or the last one not at all."""
    if rng.random() < 0.15:
        return rng.choice(("", "\ufeff")) + text.replace("\n", "\r\n")
    return text.removesuffix("\n") if rng.random() < 0.15 else text
