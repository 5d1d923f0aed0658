"""What the device plugin refuses of its file, and what it ignores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.plain import mapping, sequence, text, value_at
from gpuplan.compiler.checks.formats import Problem, find_problems
from gpuplan.compiler.policy.models import ClusterMigStrategy

IN_CLUSTER = "write `gpuOperator.migStrategy: perPool` in the Cluster"


def plugin_errors(
    body: Mapping[str, object], overriding: ClusterMigStrategy, opening: str = IN_CLUSTER
) -> Iterator[Problem]:
    """What the device plugin refuses; the file's own strategy counts where the cluster leaves it to each pool.

    ``opening`` is how it comes to do so.
    """
    yield from find_problems("device-plugin", body)
    own = value_at(body, ("flags", "migStrategy"))
    is_own = overriding is ClusterMigStrategy.PER_POOL
    if is_own and isinstance(own, str) and own not in ("none", "single", "mixed"):
        message = f"the device plugin knows no MIG strategy `{own}`"
        yield Problem(("flags", "migStrategy"), message, "unknown", "write `none`, `single` or `mixed`")
    has_mps = value_at(body, ("sharing", "mps")) is not None
    if has_mps and (own if is_own else overriding) == ClusterMigStrategy.MIXED:
        message = "the device plugin refuses MPS with the MIG strategy `mixed`"
        if is_own:
            yield Problem(("flags", "migStrategy"), message, "not with MPS", "write `migStrategy: none`")
        else:
            help_ = f"use `timeSlicing`, or {opening}"
            yield Problem(("sharing", "mps"), message, "the cluster's strategy is `mixed`", help_)


def unmatched_names(body: Mapping[str, object], overriding: ClusterMigStrategy) -> Iterator[Problem]:
    """Devices that are to be shared by a name that none has, or has only under another strategy."""
    own = text(value_at(body, ("flags", "migStrategy"))) or ClusterMigStrategy.NONE.value
    strategy = own if overriding is ClusterMigStrategy.PER_POOL else overriding.value
    for method in ("timeSlicing", "mps"):
        for index, resource in enumerate(sequence(value_at(body, ("sharing", method, "resources")))):
            name = mapping(resource).get("name")
            fault = _unmatched_name(name, strategy) if isinstance(name, str) else None
            if fault:
                yield Problem(("sharing", method, "resources", index, "name"), fault[0], "matches nothing", fault[1])


def _unmatched_name(name: str, strategy: str) -> tuple[str, str] | None:
    """What is wrong with the name of a resource, and what to do."""
    bare = name.removeprefix("nvidia.com/")
    if bare != "gpu" and not _MIG_DEVICE.fullmatch(bare):
        return f"`{name}` is not shared: no device has this name", "write `nvidia.com/gpu`"
    if bare == "gpu" or strategy == ClusterMigStrategy.MIXED:
        return None
    message = f"`{name}` is not shared: under the MIG strategy `{strategy}` no device has this name"
    if strategy == ClusterMigStrategy.SINGLE:
        return message, "write `nvidia.com/gpu`"
    return message, "write `flags: {migStrategy: mixed}` in the file"


_MIG_DEVICE = regex(r"mig-[0-9]+g\.[0-9]+gb(?:[-.].+)?")
