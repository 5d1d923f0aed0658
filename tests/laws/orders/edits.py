"""Edits of a platform by chance: all kinds of them that people make, each of which may find nothing to do."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any, Final

import yaml

from tests.laws.orders.platforms import (
    ARGOCD,
    DIVISIONS,
    GPU,
    Platform,
    Spec,
    add_pool,
    add_tenant,
    add_workload,
    instances_of,
    random_sharing,
)

Edit = Callable[[random.Random, Platform], object]
"""What it returns is None where there was nothing to edit."""

# --- Pools -------------------------------------------------------------------------------------------------------


def move_node(rng: random.Random, platform: Platform) -> object:
    """To another pool with as many GPUs in a node."""
    return _move(rng, platform, lambda one, other: one["nodes"]["gpusPerNode"] == other["nodes"]["gpusPerNode"])


def move_node_alike(rng: random.Random, platform: Platform) -> object:
    """To a pool whose GPUs are shared alike."""
    return _move(rng, platform, is_alike)


def rename_pool(rng: random.Random, platform: Platform) -> object:
    """With the same nodes; quotas follow."""
    old = rng.choice([*platform.pools])
    return rename(platform, old, rng.choice((f"a-{old}", f"{old}-next", f"z-{old}")))


def rename(platform: Platform, old: str, new: str) -> str:
    spec = platform.pools[old]
    del platform.documents["Pool", old]
    platform.documents["Pool", new] = spec
    follow(platform, old, new)
    platform.nodes = {node: new if pool == old else pool for node, pool in platform.nodes.items()}
    return new


def follow(platform: Platform, old: str, new: str) -> None:
    """What teams have on a pool, they have on another one now."""
    for spec in platform.of("Tenant").values():
        for quota in spec["quotas"]:
            if quota["pool"] == old:
                quota["pool"] = new
    for spec in platform.of("Workload").values():
        if spec["pool"] == old:
            spec["pool"] = new


def split_pool(rng: random.Random, platform: Platform) -> object:
    """Some nodes of a pool make a new one, that shares GPUs in the same way."""
    pools = [name for name in _movable(platform) if len(platform.members(name)) > 1]
    if not pools:
        return None
    old = rng.choice(pools)
    return split(rng, platform, old, rng.choice((f"a-{old}", f"{old}-b", f"z-{old}")))


def split(rng: random.Random, platform: Platform, old: str, new: str) -> str:
    spec = platform.pools[old]
    members = platform.members(old)
    chosen = rng.sample(members, rng.randint(1, len(members) - 1))
    platform.documents["Pool", new] = deepcopy(spec)
    for node in chosen:
        platform.nodes[node] = new
    name_nodes(platform, old)
    name_nodes(platform, new)
    return new


def merge_pools(rng: random.Random, platform: Platform) -> object:
    """A pool goes, and another has its nodes."""
    pools = _movable(platform)
    if len(pools) < 2:
        return None
    old, new = rng.sample(pools, 2)
    if platform.pools[old]["nodes"]["gpusPerNode"] != platform.pools[new]["nodes"]["gpusPerNode"]:
        return None
    return merge(platform, old, new)


def merge(platform: Platform, old: str, new: str) -> str:
    platform.nodes = {node: new if pool == old else pool for node, pool in platform.nodes.items()}
    del platform.documents["Pool", old]
    follow(platform, old, new)
    _one_quota_each(platform)
    name_nodes(platform, new)
    return new


def _one_quota_each(platform: Platform) -> None:
    for spec in platform.of("Tenant").values():
        found: dict[tuple[str, str], Spec] = {}
        for quota in spec["quotas"]:
            place = quota["pool"], quota["unit"]
            if place in found:
                found[place]["guaranteed"] += quota["guaranteed"]
                found[place].pop("limit", None)
            else:
                found[place] = quota
        spec["quotas"] = [*found.values()]


def remove_pool(rng: random.Random, platform: Platform) -> object:
    if len(platform.pools) < 2:
        return None
    name = rng.choice([*platform.pools])
    del platform.documents["Pool", name]
    return name


def add_a_pool(rng: random.Random, platform: Platform) -> object:
    return add_pool(rng, platform, "extra", rng.randint(1, 2))


def add_a_node(rng: random.Random, platform: Platform) -> object:
    name = rng.choice([*platform.pools])
    node = f"gpu-{name}-{len(platform.members(name)) + 7}"
    platform.nodes[node] = name
    name_nodes(platform, name)
    return node


def take_a_node(rng: random.Random, platform: Platform) -> object:
    """It is gone from the cluster, too, where the pool has names."""
    pools = [name for name, spec in platform.pools.items() if len(platform.members(name)) > 1]
    if not pools:
        return None
    name = rng.choice(pools)
    node = platform.members(name)[-1]
    del platform.nodes[node]
    name_nodes(platform, name)
    return node


def narrow_a_pattern(rng: random.Random, platform: Platform) -> object:
    """It matches the same nodes as before."""
    pools = [name for name, spec in platform.pools.items() if "namePattern" in spec["nodes"]]
    if not pools:
        return None
    nodes = platform.pools[rng.choice(pools)]["nodes"]
    nodes["namePattern"] = nodes["namePattern"].replace("[0-9]+", rng.choice(("[0-9]", "[1-9][0-9]*", "[0-9]{1,3}")))
    return nodes


def names_for_a_pattern(rng: random.Random, platform: Platform) -> object:
    pools = [name for name, spec in platform.pools.items() if "namePattern" in spec["nodes"]]
    if not pools:
        return None
    pool = rng.choice(pools)
    del platform.pools[pool]["nodes"]["namePattern"]
    return name_nodes(platform, pool)


def pattern_for_names(rng: random.Random, platform: Platform) -> object:
    """Only where all its nodes are called as such."""
    pools = [
        name
        for name, spec in platform.pools.items()
        if "names" in spec["nodes"] and all(node.startswith(f"gpu-{name}-") for node in spec["nodes"]["names"])
    ]
    if platform.cluster["nodeLabels"] == "node" or not pools:
        return None
    name = rng.choice(pools)
    nodes = platform.pools[name]["nodes"]
    del nodes["names"]
    nodes["namePattern"] = f"gpu-{name}-[0-9]+"
    return nodes


# --- Sharing -----------------------------------------------------------------------------------------------------


def change_sharing(rng: random.Random, platform: Platform) -> object:
    name = rng.choice([*platform.pools])
    sharing = random_sharing(rng, platform)
    if sharing == platform.pools[name]["sharing"]:
        return None
    platform.pools[name]["sharing"] = sharing
    return sharing


def swap_layout(rng: random.Random, platform: Platform) -> object:
    pools = [spec for spec in platform.pools.values() if "layout" in spec["sharing"].get("mig", {})]
    if not pools:
        return None
    mig = rng.choice(pools)["sharing"]["mig"]
    mig["layout"] = rng.choice([name for name in platform.of("MigLayout") if name != mig["layout"]])
    return mig


def change_replicas(rng: random.Random, platform: Platform) -> object:
    pools = [spec for spec in platform.pools.values() if "timeSlicing" in spec["sharing"]]
    if not pools:
        return None
    slicing = rng.choice(pools)["sharing"]["timeSlicing"]
    slicing["replicas"] += rng.randint(1, 3)
    return slicing


def rename_shares(rng: random.Random, platform: Platform) -> object:
    """They are published under the name of whole GPUs."""
    pools = [spec for spec in platform.pools.values() if "timeSlicing" in spec["sharing"]]
    if not pools:
        return None
    rng.choice(pools)["sharing"]["timeSlicing"]["rename"] = False
    return True


def allow_several_shares(rng: random.Random, platform: Platform) -> object:
    pools = [spec for spec in platform.pools.values() if "timeSlicing" in spec["sharing"]]
    if not pools:
        return None
    rng.choice(pools)["sharing"]["timeSlicing"]["failRequestsGreaterThanOne"] = False
    return True


def time_slicing_to_mps(rng: random.Random, platform: Platform) -> object:
    pools = [spec for spec in platform.pools.values() if "timeSlicing" in spec["sharing"]]
    if not pools:
        return None
    spec = rng.choice(pools)
    spec["sharing"] = {"mps": {"replicas": spec["sharing"]["timeSlicing"]["replicas"]}}
    return spec


def change_pool_strategy(rng: random.Random, platform: Platform) -> object:
    pools = [
        spec
        for spec in platform.pools.values()
        if "mig" in spec["sharing"] and len(instances_of(platform, spec["sharing"]["mig"])) == 1
    ]
    if not pools:
        return None
    mig = rng.choice(pools)["sharing"]["mig"]
    mig["strategy"] = "single"
    return mig


def share_partitions(rng: random.Random, platform: Platform) -> object:
    pools = [spec for spec in platform.pools.values() if "mig" in spec["sharing"]]
    if not pools:
        return None
    mig = rng.choice(pools)["sharing"]["mig"]
    mig["timeSlicing"] = {"replicas": 2}
    return mig


def change_cluster_strategy(rng: random.Random, platform: Platform) -> object:
    operator = platform.cluster["gpuOperator"]
    operator["migStrategy"] = "mixed"
    return operator


# --- Layouts -----------------------------------------------------------------------------------------------------


def edit_layout(rng: random.Random, platform: Platform) -> object:
    spec = rng.choice([*platform.of("MigLayout").values()])
    spec["instances"] = dict(rng.choice([found for found in DIVISIONS if found != spec["instances"]]))
    return spec


def rename_layout(rng: random.Random, platform: Platform) -> object:
    old = rng.choice([*platform.of("MigLayout")])
    new = f"{old}-next"
    platform.documents["MigLayout", new] = platform.documents.pop(("MigLayout", old))
    for spec in platform.pools.values():
        mig = spec["sharing"].get("mig", {})
        if mig.get("layout") == old:
            mig["layout"] = new
    return new


def drop_layout(rng: random.Random, platform: Platform) -> object:
    """One that no pool uses."""
    used = {spec["sharing"].get("mig", {}).get("layout") for spec in platform.pools.values()}
    unused = [name for name in platform.of("MigLayout") if name not in used]
    return platform.documents.pop(("MigLayout", rng.choice(unused))) if unused else None


def swap_and_drop_layout(rng: random.Random, platform: Platform) -> object:
    """The pools that use it have another one, and it goes."""
    used = [spec["sharing"]["mig"] for spec in platform.pools.values() if "layout" in spec["sharing"].get("mig", {})]
    if not used:
        return None
    old = rng.choice(used)["layout"]
    new = rng.choice([name for name in platform.of("MigLayout") if name != old])
    for mig in used:
        if mig["layout"] == old:
            mig["layout"] = new
    return platform.documents.pop(("MigLayout", old))


def add_layout(rng: random.Random, platform: Platform) -> object:
    platform.documents["MigLayout", "another"] = {"gpu": GPU, "instances": dict(rng.choice(DIVISIONS))}
    return True


def inline_layout(rng: random.Random, platform: Platform) -> object:
    """The pool says the same division itself."""
    pools = [spec for spec in platform.pools.values() if "layout" in spec["sharing"].get("mig", {})]
    if not pools:
        return None
    mig = rng.choice(pools)["sharing"]["mig"]
    mig["instances"] = dict(instances_of(platform, mig))
    del mig["layout"]
    return mig


def name_layout(rng: random.Random, platform: Platform) -> object:
    """What a pool says itself becomes a document."""
    pools = [spec for spec in platform.pools.values() if "instances" in spec["sharing"].get("mig", {})]
    if not pools:
        return None
    mig = rng.choice(pools)["sharing"]["mig"]
    platform.documents["MigLayout", "named"] = {"gpu": GPU, "instances": mig.pop("instances")}
    mig["layout"] = "named"
    return mig


# --- Labels and taints -------------------------------------------------------------------------------------------


def add_taint(rng: random.Random, platform: Platform) -> object:
    effect = rng.choice(("NoSchedule", "NoSchedule", "PreferNoSchedule", "NoExecute"))
    spec = rng.choice([*platform.pools.values()])
    spec.setdefault("taints", []).append({"key": "example.com/more", "value": "x", "effect": effect})
    return spec


def change_taint(rng: random.Random, platform: Platform) -> object:
    pools = [spec for spec in platform.pools.values() if spec.get("taints")]
    if not pools:
        return None
    rng.choice(pools)["taints"][0]["value"] = "other"
    return True


def remove_taints(rng: random.Random, platform: Platform) -> object:
    return rng.choice([*platform.pools.values()]).pop("taints", None)


def remove_all_taints(rng: random.Random, platform: Platform) -> object:
    return [spec.pop("taints", None) for spec in platform.pools.values()]


def add_node_label(rng: random.Random, platform: Platform) -> object:
    spec = rng.choice([*platform.pools.values()])
    spec["nodeLabels"] = {"example.com/rack": f"r{rng.randint(1, 9)}"}
    return spec


def change_workload_types(rng: random.Random, platform: Platform) -> object:
    rng.choice([*platform.pools.values()])["workloadTypes"].append("notebooks")
    return True


def change_mode(rng: random.Random, platform: Platform) -> object:
    """Patterns have no Node objects, so that these are not for them."""
    modes = ["nfd", "external"]
    if all("names" in spec["nodes"] for spec in platform.pools.values()):
        modes.append("node")
    modes.remove(platform.cluster["nodeLabels"])
    platform.cluster["nodeLabels"] = rng.choice(modes)
    return True


# --- Teams -------------------------------------------------------------------------------------------------------


def raise_quota(rng: random.Random, platform: Platform) -> object:
    quota = _quota(rng, platform)
    if quota is not None:
        quota["guaranteed"] += rng.randint(1, 4)
    return quota


def cut_quota(rng: random.Random, platform: Platform) -> object:
    quota = _quota(rng, platform)
    if quota is not None:
        quota["guaranteed"] //= 2
    return quota


def change_limit(rng: random.Random, platform: Platform) -> object:
    quota = _quota(rng, platform)
    if quota is not None:
        quota["limit"] = quota["guaranteed"] + rng.randint(0, 5)
    return quota


def drop_quota(rng: random.Random, platform: Platform) -> object:
    teams = [spec for spec in platform.of("Tenant").values() if spec["quotas"]]
    return rng.choice(teams)["quotas"].pop() if teams else None


def add_a_tenant(rng: random.Random, platform: Platform) -> object:
    return add_tenant(rng, platform, "newcomers")


def remove_tenant(rng: random.Random, platform: Platform) -> object:
    return platform.documents.pop(("Tenant", rng.choice([*platform.of("Tenant")])))


def rename_tenant(rng: random.Random, platform: Platform) -> object:
    old = rng.choice([*platform.of("Tenant")])
    platform.documents["Tenant", f"{old}-next"] = platform.documents.pop(("Tenant", old))
    for spec in platform.of("Workload").values():
        if spec["tenant"] == old:
            spec["tenant"] = f"{old}-next"
    return old


def add_namespace(rng: random.Random, platform: Platform) -> object:
    """Only where no workload has to say in which it is, nor a cap is to be split."""
    used = {spec["tenant"] for spec in platform.of("Workload").values()}
    teams = [name for name in platform.of("Tenant") if name not in used]
    if not teams:
        return None
    name = rng.choice(teams)
    platform.documents["Tenant", name]["namespaces"].append(f"{name}-test")
    return name


def rename_namespace(rng: random.Random, platform: Platform) -> object:
    name = rng.choice([*platform.of("Tenant")])
    platform.documents["Tenant", name]["namespaces"] = [f"{name}-new"]
    return name


def change_members(rng: random.Random, platform: Platform) -> object:
    spec = rng.choice([*platform.of("Tenant").values()])
    spec["members"].append("guests")
    return spec


def change_weight(rng: random.Random, platform: Platform) -> object:
    spec = rng.choice([*platform.of("Tenant").values()])
    spec["surplus"] = {"weight": rng.randint(2, 5)}
    return spec


def change_rights(rng: random.Random, platform: Platform) -> object:
    spec = rng.choice([*platform.of("Tenant").values()])
    spec["allow"] = rng.choice(({"podSecurity": "restricted"}, {"unitsPerContainer": 2}))
    return spec


# --- Priorities and workloads ------------------------------------------------------------------------------------


def add_priority_class(rng: random.Random, platform: Platform) -> object:
    platform.documents["PriorityClass", "urgent"] = {"value": 50, "description": "Incidents."}
    return True


def change_priority(rng: random.Random, platform: Platform) -> object:
    classes = [*platform.of("PriorityClass").values()]
    if not classes:
        return None
    rng.choice(classes)["value"] += 5
    return True


def describe_priority(rng: random.Random, platform: Platform) -> object:
    classes = [*platform.of("PriorityClass").values()]
    if not classes:
        return None
    rng.choice(classes)["description"] = "Other work."
    return True


def remove_priority_class(rng: random.Random, platform: Platform) -> object:
    used = {spec.get("priorityClass") for spec in platform.of("Workload").values()}
    classes = [name for name in platform.of("PriorityClass") if name not in used]
    return platform.documents.pop(("PriorityClass", rng.choice(classes))) if classes else None


def add_a_workload(rng: random.Random, platform: Platform) -> object:
    return add_workload(rng, platform, "more-work")


def change_image(rng: random.Random, platform: Platform) -> object:
    found = [*platform.of("Workload").values()]
    if not found:
        return None
    found[0]["image"] = "registry.example.com/work:1.0.1"
    return found


def remove_workload(rng: random.Random, platform: Platform) -> object:
    found = [*platform.of("Workload")]
    return platform.documents.pop(("Workload", found[0])) if found else None


# --- The cluster -------------------------------------------------------------------------------------------------


def toggle_monitoring(rng: random.Random, platform: Platform) -> object:
    if platform.cluster.pop("monitoring", None) is None:
        platform.cluster["monitoring"] = {}
    return True


def disable_an_alert(rng: random.Random, platform: Platform) -> object:
    if "monitoring" not in platform.cluster:
        return None
    platform.cluster["monitoring"]["disabledAlerts"] = ["GpuFragmentation"]
    return True


def change_approval(rng: random.Random, platform: Platform) -> object:
    disruption = rng.choice([*platform.pools.values()]).setdefault("disruption", {})
    disruption["approval"] = "manual" if disruption.get("approval") == "automatic" else "automatic"
    return True


def change_max_unavailable(rng: random.Random, platform: Platform) -> object:
    disruption = rng.choice([*platform.pools.values()]).setdefault("disruption", {})
    disruption["maxUnavailable"] = disruption.get("maxUnavailable", 1) + 1
    return True


def add_window(rng: random.Random, platform: Platform) -> object:
    disruption = rng.choice([*platform.pools.values()]).setdefault("disruption", {})
    disruption["windows"] = [{"schedule": "0 2 * * 6", "duration": "4h", "timeZone": "UTC"}]
    return True


def change_delivery(rng: random.Random, platform: Platform) -> object:
    had = "argocd" if platform.cluster.pop("argocd", None) else "flux" if "flux" in platform.cluster else ""
    platform.cluster.pop("flux", None)
    to = rng.choice([found for found in ("argocd", "flux", "") if found != had])
    if to:
        platform.cluster[to] = dict(ARGOCD) if to == "argocd" else {}
    return True


def change_revision(rng: random.Random, platform: Platform) -> object:
    if "argocd" not in platform.cluster:
        return None
    platform.cluster["argocd"]["labels"] = {"team": "platform"}
    return True


def change_scheduler(rng: random.Random, platform: Platform) -> object:
    scheduler = platform.cluster["scheduler"]
    scheduler["kind"] = rng.choice([kind for kind in ("kubernetes", "kueue", "kai") if kind != scheduler["kind"]])
    return True


def change_helm_values(rng: random.Random, platform: Platform) -> object:
    values = {"gfd": {"resources": {"limits": {"memory": f"{rng.randint(1, 9)}00Mi"}}}}
    platform.cluster["gpuOperator"]["values"] = values
    return True


def change_plugin_config(rng: random.Random, platform: Platform) -> object:
    operator = platform.cluster["gpuOperator"]
    is_fixed = operator.get("devicePluginConfig") == "fixed"
    operator["devicePluginConfig"] = "perContent" if is_fixed else "fixed"
    return operator


def change_reboots(rng: random.Random, platform: Platform) -> object:
    platform.cluster["gpuOperator"]["rebootOnMigChange"] = True
    return True


def change_operator_version(rng: random.Random, platform: Platform) -> object:
    platform.cluster["gpuOperator"]["version"] = "v26.7.1"
    return True


# --- Text only ---------------------------------------------------------------------------------------------------


def reorder_documents(rng: random.Random, platform: Platform) -> object:
    platform.documents = dict(rng.sample([*platform.documents.items()], len(platform.documents)))
    return True


def move_to_overlay(rng: random.Random, platform: Platform) -> object:
    platform.overlay.add(rng.choice([*platform.documents]))
    return True


def rewrite_text(rng: random.Random, platform: Platform) -> object:
    style = rng.choice(("flow", "sorted", "comments", "crlf", "quotes", "bom"))
    platform.text = lambda bodies: _styled(style, bodies)
    return style


def _styled(style: str, bodies: list[Spec]) -> str:
    dumper = yaml.SafeDumper
    if style == "flow":
        return str(yaml.dump_all(bodies, Dumper=dumper, default_flow_style=True, width=60))
    if style == "sorted":
        return str(yaml.dump_all(bodies, Dumper=dumper, sort_keys=True, indent=4))
    if style == "quotes":
        return str(yaml.dump_all(bodies, Dumper=dumper, sort_keys=False, default_style='"'))
    text = str(yaml.dump_all(bodies, Dumper=dumper, sort_keys=False))
    if style == "comments":
        return "# What a platform is.\n\n" + text.replace("\nmetadata:", "\n# Who it is.\nmetadata:")
    return text.replace("\n", "\r\n") if style == "crlf" else f"\ufeff{text}"


# --- All of them -------------------------------------------------------------------------------------------------

TEXT_ONLY: Final[tuple[Edit, ...]] = (reorder_documents, move_to_overlay, rewrite_text)

NODES: Final[tuple[Edit, ...]] = (
    move_node,
    move_node_alike,
    rename_pool,
    split_pool,
    merge_pools,
    remove_pool,
    add_a_pool,
    add_a_node,
    take_a_node,
    narrow_a_pattern,
    names_for_a_pattern,
    pattern_for_names,
)
SHARING: Final[tuple[Edit, ...]] = (
    change_sharing,
    swap_layout,
    change_replicas,
    rename_shares,
    allow_several_shares,
    time_slicing_to_mps,
    change_pool_strategy,
    share_partitions,
    change_cluster_strategy,
    change_plugin_config,
    edit_layout,
    rename_layout,
    drop_layout,
    swap_and_drop_layout,
    add_layout,
    inline_layout,
    name_layout,
)
OTHERS: Final[tuple[Edit, ...]] = (
    add_taint,
    change_taint,
    remove_taints,
    remove_all_taints,
    add_node_label,
    change_workload_types,
    change_mode,
    raise_quota,
    cut_quota,
    change_limit,
    drop_quota,
    add_a_tenant,
    remove_tenant,
    rename_tenant,
    add_namespace,
    rename_namespace,
    change_members,
    change_weight,
    change_rights,
    add_priority_class,
    change_priority,
    describe_priority,
    remove_priority_class,
    add_a_workload,
    change_image,
    remove_workload,
    toggle_monitoring,
    disable_an_alert,
    change_approval,
    change_max_unavailable,
    add_window,
    change_delivery,
    change_revision,
    change_scheduler,
    change_helm_values,
    change_reboots,
    change_operator_version,
)
EDITS: Final = (*NODES, *SHARING, *OTHERS, *TEXT_ONLY)


def edited(rng: random.Random, platform: Platform, *edits: Edit) -> Platform | None:
    """The platform after the edits; None where one of them found nothing to do."""
    after = platform.copy()
    for edit in edits:
        if edit(rng, after) is None:
            return None
    if not set(edits) <= set(TEXT_ONLY):
        after.mend()
    return after


# --- Which nodes -------------------------------------------------------------------------------------------------


def name_nodes(platform: Platform, pool: str) -> Mapping[str, Any]:
    """The pool has the nodes that are its own now; a pattern stays where it matches them and no others."""
    nodes: Spec = platform.pools[pool]["nodes"]
    members = platform.members(pool)
    nodes["count"] = len(members)
    pattern = nodes.get("namePattern", "")
    if [node for node in platform.nodes if re.fullmatch(pattern, node)] != members:
        nodes.pop("namePattern", None)
        nodes["names"] = members
    return nodes


def _movable(platform: Platform) -> list[str]:
    return [name for name in platform.pools if platform.members(name)]


def is_alike(one: Spec, other: Spec) -> bool:
    return bool(one["sharing"] == other["sharing"] and one["nodes"]["gpusPerNode"] == other["nodes"]["gpusPerNode"])


def _move(rng: random.Random, platform: Platform, may: Callable[[Spec, Spec], bool]) -> object:
    pools = _movable(platform)
    pairs = [(one, other) for one in pools for other in pools if one != other]
    pairs = [(one, other) for one, other in pairs if may(platform.pools[one], platform.pools[other])]
    return _move_between(rng, platform, *rng.choice(pairs)) if pairs else None


def _move_between(rng: random.Random, platform: Platform, one: str, other: str) -> object:
    members = platform.members(one)
    if len(members) < 2:
        return None
    node = rng.choice(members)
    platform.nodes[node] = other
    name_nodes(platform, one)
    name_nodes(platform, other)
    return node


def _quota(rng: random.Random, platform: Platform) -> Spec | None:
    quotas: list[Spec] = [quota for spec in platform.of("Tenant").values() for quota in spec["quotas"]]
    return rng.choice(quotas) if quotas else None
