"""The device plugin's file for the nodes of a pool, and the key of the file, which nodes name in a label.

A key means one thing for as long as something may name it: nodes get a file's new content as soon as it is synced, and
labels as late as somebody approves it. So a pool that is shared otherwise than its own name says has another key, which
its nodes get with their other labels.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from gpuplan.compiler.planning.discovered import GPU_RESOURCE, MIG_RESOURCES
from gpuplan.compiler.planning.plan import Mig, Mps, Pool, Shares
from gpuplan.compiler.policy.models import ClusterMigStrategy, MigStrategy

_SMALLEST_REPLICAS = 2
SHARED = ".shared"
_DIGITS: Final = 7


def configuration(pool: Pool, strategy: ClusterMigStrategy) -> dict[str, Any]:
    """Return a pool's file. It leaves sharing out to switch it off, since one replica would be an error.

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
    slicing = pool.shares
    resources = [
        {"name": resource, "replicas": shares.number}
        for resource, shares in shared_resources(pool).items()
        if shares.number >= _SMALLEST_REPLICAS
    ]
    if slicing is None or not resources:
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


def shared_resources(pool: Pool) -> dict[str, Shares]:
    """Return the shares of each resource that is divided, by its name before it is renamed.

    The strategy makes those names: under `single` MIG devices are `nvidia.com/gpu`, under `mixed` each profile has its
    own, and the GPUs that stay whole are not divided.
    """
    if pool.shares is None:
        return {}
    if not isinstance(pool.sharing, Mig) or pool.sharing.spec.strategy is MigStrategy.SINGLE:
        return {GPU_RESOURCE: pool.shares.stated[0]}
    divided = ((unit.resource, pool.shares_of(unit)) for unit in pool.units)
    return {resource.removesuffix(SHARED): shares for resource, shares in divided if resource and shares}


# --- One file for several pools ----------------------------------------------------------------------------------


def meaning_of(config: Mapping[str, Any], resources: Iterable[str]) -> dict[str, object]:
    """Return the meaning of a file for nodes with some resources: what it makes of each, and the way.

    Two meanings that agree where they meet are those of one file, since the plugin skips resources that a node lacks.
    It shares no MIG devices by MPS (`README.md` of NVIDIA/k8s-device-plugin).
    """
    found: dict[str, object] = {resource.removesuffix(SHARED): 1 for resource in resources}
    flags = config.get("flags", {})
    if flags or any(resource.startswith(MIG_RESOURCES) for resource in found):
        found |= {"mps": False, **flags}
    for kind, part in config.get("sharing", {}).items():
        found |= {"mps": kind == "mps", "way": {kind: {key: part[key] for key in part if key != "resources"}}}
        found |= {resource["name"]: resource["replicas"] for resource in part["resources"]}
    return found


def is_one_file(meaning: Mapping[str, object], other: Mapping[str, object]) -> bool:
    """Whether one file has both meanings."""
    return all(other[key] == meaning[key] for key in meaning.keys() & other.keys())


def united(parts: Iterable[Pool], strategy: ClusterMigStrategy) -> dict[str, Any]:
    """Return the file of pools with one key: what each of their own files says. No two of them disagree (GPU311)."""
    files = [configuration(part, strategy) for part in parts]
    found = files[0]
    for config in files[1:]:
        found = {**config, **found}
        for kind, part in config.get("sharing", {}).items():
            own = found["sharing"].get(kind, part)
            added = [resource for resource in part["resources"] if resource not in own["resources"]]
            found["sharing"] = {kind: {**own, "resources": [*own["resources"], *added]}}
    return {key: found[key] for key in ("version", "flags", "sharing") if key in found}


# --- Keys --------------------------------------------------------------------------------------------------------


def key_of(pool: Pool) -> str:
    """Return the key of a pool's or a part's file: the pool's own, unless that is retained for another file.

    No pool's name has a dot, so no other pool comes by such a key unless it keeps it. Where the ConfigMap keeps its
    name, each key says what is in its file: whoever reads a file under a name that stays is told of nothing.
    """
    config, keys = configuration(pool, pool.keys.strategy), pool.keys
    is_own = not keys.by_content and (keys.meaning is None or config == keys.meaning)
    return keys.own if is_own else f"{pool.name}.{content_hash(config)}"


def pool_of(key: str) -> str:
    """Return the pool that a key belongs or belonged to, unless a pool keeps the key. No pool's name has a dot."""
    return key.partition(".")[0]


def has_own(pool: Pool, key: str) -> bool:
    """Whether a key is one that parts of the pool have, or had: its own, or its name with what tells contents apart."""
    return key == pool.keys.own or pool_of(key) == pool.name


def content_hash(config: Mapping[str, object]) -> str:
    """Return hex digits that fit into a label's value beside the longest name of a pool that may have a rollout."""
    text = json.dumps(config, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
