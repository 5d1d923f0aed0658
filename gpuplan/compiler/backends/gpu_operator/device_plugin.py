"""The device plugin's configurations: one for each pool, which the node label `nvidia.com/device-plugin.config` picks.

GPU Feature Discovery and the MPS control daemon read the same files. The rules are those of `api/config/v1` in
NVIDIA/k8s-device-plugin: unknown keys are ignored without a word; `rename`, `devices` and the top-level `resources` are
read and then ignored with a warning; replicas are at least 2; a resource that the node does not have is skipped.

A node without the label reads the default key, if the Cluster names one. Without a default its config-manager falls
back to an empty configuration (the operator sets `FALLBACK_STRATEGIES=empty`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from gpuplan.compiler.base.plain import grouped, inside, mapping, sequence
from gpuplan.compiler.manifests import to_yaml
from gpuplan.compiler.manifests.provenance import Routes, as_written, below, chosen, copied
from gpuplan.compiler.planning.plan import DEVICE_PLUGIN_CONFIG_LABEL, Mig, Mps, Plan, Pool
from gpuplan.compiler.planning.plugin_configs import SHARED, pool_of, shared_resources, united
from gpuplan.compiler.planning.pools import ROLLOUT_SUFFIX
from gpuplan.compiler.planning.sources import because_of, instances_of, meaning_of, plugin_key_of, sharing_of
from gpuplan.compiler.policy.models import ClusterMigStrategy

CONFIG_MAP: Final = "gpuplan-device-plugin"
"""The ConfigMap's name, or its beginning."""


def data(plan: Plan) -> dict[str, str]:
    """Return the ConfigMap's data."""
    return {key: to_yaml(config) for key, config in configurations(plan).items()}


def configurations(plan: Plan) -> dict[str, Mapping[str, Any]]:
    """Return a file for each pool, by its key, one for what a rollout moved, and what is retained.

    The order is the same whether a pool has a key or a document retains it for the pool.
    """
    strategy = plan.cluster.gpu_operator.spec.mig_strategy
    parts = grouped((part.labels[DEVICE_PLUGIN_CONFIG_LABEL], part) for part in plan.parts)
    made: dict[str, Mapping[str, Any]] = {key: united(alike, strategy) for key, alike in parts.items()}
    known = made | {retained.spec.key: retained.config for retained in plan.retained_plugin_configs}
    pools = {pool.name for pool in plan.pools}

    def place(key: str) -> tuple[bool, str]:
        is_of_pool = pool_of(key) in pools and (key in made or not key.endswith(ROLLOUT_SUFFIX))
        return not is_of_pool, pool_of(key) if is_of_pool else key

    return {key: known[key] for key in sorted(sorted(known, reverse=True), key=place)}


# --- Where it comes from -----------------------------------------------------------------------------------------


def trace(plan: Plan) -> Routes:
    """Yield the places of what the files say, by routes in the ConfigMap."""
    files = configurations(plan)
    for pool in plan.pools:
        # The strategies choose whether files name one, and whether what a rollout moved has a file of its own.
        strategies = [part.sharing.at / "strategy" for part in pool.parts if isinstance(part.sharing, Mig)]
        deciding = [plan.cluster.gpu_operator.at / "migStrategy", *(strategies if pool.rollout else ())]
        naming = chosen(*(deciding if strategies else ()))
        for part in pool.parts:
            route = ("data", part.labels[DEVICE_PLUGIN_CONFIG_LABEL])
            key = plugin_key_of(plan, part)
            yield route, (*because_of(pool), *naming, *chosen(*meaning_of(plan, pool)), *key)
            yield from below(route, _trace(part, plan.cluster.gpu_operator.spec.mig_strategy, files[route[1]]))
    for retained in plan.retained_plugin_configs:
        yield ("data", retained.spec.key), chosen(retained.at / "key")
        yield from below(("data", retained.spec.key), as_written(retained.at / "config", retained.config))


def _trace(pool: Pool, strategy: ClusterMigStrategy, file: Mapping[str, Any]) -> Routes:
    yield ("version",), ()
    if isinstance(pool.sharing, Mig) and strategy is ClusterMigStrategy.PER_POOL:
        yield ("flags", "migStrategy"), copied(pool.sharing.at / "strategy")
    if not (slicing := pool.shares):
        return
    route = ("sharing", "mps" if isinstance(slicing, Mps) else "timeSlicing")
    yield (*route, "renameByDefault"), copied(slicing.at / "rename")
    yield (*route, "failRequestsGreaterThanOne"), copied(slicing.at / "failRequestsGreaterThanOne")
    shared = shared_resources(pool)
    named = [str(item["name"]) for item in map(mapping, sequence(inside(file, *route).get("resources")))]
    for index, resource in enumerate(named):
        if (shares := shared.get(resource)) is None:
            continue  # another pool's
        yield (*route, "resources", index, "replicas"), copied(shares.at)
        naming = chosen(slicing.at / "replicas") if shares.profile else ()
        if isinstance(pool.sharing, Mig):  # whole GPUs have one name, MIG devices that of a profile or of the strategy
            profiles = [unit.name for unit in pool.units if (unit.resource or "").removesuffix(SHARED) == resource]
            entries = pool.sharing.layout.entries
            places = [at for name in profiles for entry in entries for at in instances_of(entry, name)]
            naming = (*sharing_of(pool), *chosen(*places), *naming)
        yield (*route, "resources", index, "name"), naming
