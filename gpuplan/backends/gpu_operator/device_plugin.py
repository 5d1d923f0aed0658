"""The device plugin's configurations: one for each pool, which the node label `nvidia.com/device-plugin.config` picks.

GPU Feature Discovery and the MPS control daemon read the same files. The rules are those of `api/config/v1` in
NVIDIA/k8s-device-plugin: unknown keys are ignored without a word; `rename`, `devices` and the top-level `resources` are
read and then ignored with a warning; replicas are at least 2; a resource that the node does not have is skipped.

No key is called `default` and the operator is given none: a node without the label is none of the plan's, and its
config-manager falls back to an empty configuration (the operator sets `FALLBACK_STRATEGIES=empty`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuplan.manifests import to_yaml
from gpuplan.manifests.provenance import Links, Routes, as_written, below, chosen, copied
from gpuplan.planning.plan import DEVICE_PLUGIN_CONFIG_LABEL, GPU_RESOURCE, Mig, Mps, Plan, Pool, TimeSlicing
from gpuplan.planning.sources import because_of, instances_of, sharing_of
from gpuplan.policy.models import ClusterMigStrategy, MigStrategy

_SMALLEST_REPLICAS = 2
_SHARED = ".shared"


def data(plan: Plan) -> dict[str, str]:
    """The ConfigMap's data."""
    return {key: to_yaml(config) for key, config in configurations(plan).items()}


def configurations(plan: Plan) -> dict[str, Mapping[str, Any]]:
    """A file for each pool, by its name, one for what a rollout moved, and what is retained."""
    strategy = plan.cluster.gpu_operator.spec.mig_strategy
    pools: dict[str, Mapping[str, Any]] = {
        part.labels[DEVICE_PLUGIN_CONFIG_LABEL]: configuration(part, strategy)
        for pool in plan.pools
        for part in reversed(pool.parts)
    }
    return pools | {retained.spec.key: retained.config for retained in plan.retained_plugin_configs}


def configuration(pool: Pool, strategy: ClusterMigStrategy) -> dict[str, Any]:
    """A pool's file. Sharing is switched off by leaving it out: one replica would be an error.

    `flags.migStrategy` is for `perPool` alone: any other strategy reaches the plugin as the environment variable
    MIG_STRATEGY, which overrides the file (`applyMIGConfiguration` in the operator's `controllers/object_controls.go`).
    """
    config: dict[str, Any] = {"version": "v1"}
    if isinstance(pool.sharing, Mig) and strategy is ClusterMigStrategy.PER_POOL:
        config["flags"] = {"migStrategy": pool.sharing.spec.strategy.value}
    if sharing := _sharing(pool):
        config["sharing"] = sharing
    return config


def _sharing(pool: Pool) -> dict[str, Any]:
    sharing = pool.sharing
    slicing = sharing.time_slicing if isinstance(sharing, Mig) else sharing
    if not isinstance(slicing, TimeSlicing | Mps) or slicing.spec.replicas < _SMALLEST_REPLICAS:
        return {}
    resources = [{"name": resource, "replicas": slicing.spec.replicas} for resource in _shared_resources(pool)]
    if not resources:
        return {}
    if isinstance(slicing, Mps):
        # MPS refuses requests for more than one share unless told otherwise.
        return {"mps": {"renameByDefault": slicing.spec.rename, "resources": resources}}
    return {
        "timeSlicing": {
            "renameByDefault": slicing.spec.rename,
            "failRequestsGreaterThanOne": slicing.spec.fail_requests_greater_than_one,
            "resources": resources,
        }
    }


def _shared_resources(pool: Pool) -> list[str]:
    """The resources to divide, by the names they have before they are renamed.

    The strategy makes those names: under `single` MIG devices are `nvidia.com/gpu`, under `mixed` each profile has its
    own, and the GPUs that stay whole are not divided.
    """
    if not isinstance(pool.sharing, Mig) or pool.sharing.spec.strategy is MigStrategy.SINGLE:
        return [GPU_RESOURCE]
    divided = (unit.resource for unit in pool.units if unit.name != "gpu" and unit.resource is not None)
    return list(dict.fromkeys(resource.removesuffix(_SHARED) for resource in divided))


# --- Where it comes from -----------------------------------------------------------------------------------------


def trace(plan: Plan) -> Routes:
    """The places of what the files say, by routes in the ConfigMap."""
    for pool in plan.pools:
        for part in pool.parts:
            route = ("data", part.labels[DEVICE_PLUGIN_CONFIG_LABEL])
            yield route, (*because_of(pool), *_strategies(plan, pool))
            yield from below(route, _trace(part, plan.cluster.gpu_operator.spec.mig_strategy))
    for retained in plan.retained_plugin_configs:
        yield ("data", retained.spec.key), chosen(retained.at / "key")
        yield from below(("data", retained.spec.key), as_written(retained.at / "config", retained.config))


def _strategies(plan: Plan, pool: Pool) -> Links:
    """What chooses whether files name a strategy, and whether what a rollout moved has a file of its own."""
    found = [part.sharing.at / "strategy" for part in pool.parts if isinstance(part.sharing, Mig)]
    if not found:
        return ()
    return chosen(plan.cluster.gpu_operator.at / "migStrategy", *(found if pool.rollout else ()))


def _trace(pool: Pool, strategy: ClusterMigStrategy) -> Routes:
    yield ("version",), ()
    if isinstance(pool.sharing, Mig) and strategy is ClusterMigStrategy.PER_POOL:
        yield ("flags", "migStrategy"), copied(pool.sharing.at / "strategy")
    if not (slicing := pool.shares):
        return
    route = ("sharing", "mps" if isinstance(slicing, Mps) else "timeSlicing")
    yield (*route, "renameByDefault"), copied(slicing.at / "rename")
    yield (*route, "failRequestsGreaterThanOne"), copied(slicing.at / "failRequestsGreaterThanOne")
    for index, resource in enumerate(_shared_resources(pool)):
        yield (*route, "resources", index, "replicas"), copied(slicing.at / "replicas")
        yield (*route, "resources", index, "name"), _resource(pool, resource)


def _resource(pool: Pool, resource: str) -> Links:
    """Whole GPUs have one name; the names of MIG devices are those of profiles, or hidden by the strategy."""
    if not isinstance(pool.sharing, Mig):
        return ()
    profiles = [unit.name for unit in pool.units if (unit.resource or "").removesuffix(_SHARED) == resource]
    entries = pool.sharing.layout.entries
    places = [at for name in profiles for entry in entries for at in instances_of(entry, name)]
    return (*sharing_of(pool), *chosen(*places))
