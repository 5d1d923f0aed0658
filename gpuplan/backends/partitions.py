"""The back end of the stage `partitions`: labels and taints on nodes, the switch that repartitions GPUs.

A changed `nvidia.com/mig.config` makes mig-manager repartition every node that carries it, at once and without
draining; a removed one makes the operator write `all-disabled`, which does the same. So each pool has a folder of its
own, which can be synced at its own time, and nothing in it disappears without a person's consent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from gpuplan.backends.base import text_of
from gpuplan.catalog.openshift import UPSTREAM_RULES
from gpuplan.manifests import HEADER, File, Manifest, to_yaml
from gpuplan.manifests.bodies import given, new_object
from gpuplan.planning.node_features import rules_group
from gpuplan.planning.plan import GPU_RESOURCE, Plan, Pool, Stage
from gpuplan.planning.pools import ROLLOUT_SUFFIX
from gpuplan.planning.subjects import about
from gpuplan.policy.models import NodeLabels, Platform


def render(plan: Plan) -> Iterator[Manifest | File]:
    match plan.cluster.spec.node_labels:
        case NodeLabels.NFD:
            group = rules_group(plan.cluster)
            for pool in plan.pools:
                if selectable := [part for part in pool.parts if part.nodes.names or part.nodes.name_pattern]:
                    yield Manifest(_folder(pool), _rules(pool, selectable, group), about=about(pool))
        case NodeLabels.NODE:
            for pool in plan.parts:
                for node in sorted(pool.nodes.names):
                    yield Manifest(_folder(pool), _node(pool, node), is_partial=True, about=about(pool))
            if any(pool.spec.taints for pool in plan.pools):
                yield _table(plan)
        case NodeLabels.EXTERNAL:
            yield _table(plan)


def _folder(pool: Pool) -> str:
    return f"{Stage.PARTITIONS}/{pool.name}"


# --- Node Feature Discovery --------------------------------------------------------------------------------------

_HAS_NVIDIA_GPU = {
    "feature": "pci.device",
    "matchExpressions": {
        "vendor": {"op": "In", "value": ["10de"]},
        "class": {"op": "In", "value": ["0300", "0302"]},  # VGA and 3D controllers
    },
}


def _rules(pool: Pool, parts: Iterable[Pool], group: str) -> dict[str, Any]:
    """One object for a pool: a node that a rollout moves goes from one of its rules to the other in one step.

    A rule is for the parts that have names: without, it would match every node that has an NVIDIA GPU. OpenShift's
    rules have names of their own: its operator copies them to the other group, and owns the copies. A rule that took
    over a copy's name there would be collected with its owner, and the nodes' labels with it.
    """
    name = f"gpuplan-pool-{pool.name}" if group == UPSTREAM_RULES else f"gpuplan-openshift-pool-{pool.name}"
    spec = {"rules": [_rule(pool, part) for part in parts]}
    return new_object(f"{group}/v1alpha1", "NodeFeatureRule", name, spec=spec)


def _rule(pool: Pool, part: Pool) -> dict[str, Any]:
    """A rule for nodes of a pool, by name, that have an NVIDIA GPU.

    By name since NFD knows features and not labels, and since labels such as `nvidia.com/gpu.product` change with the
    very sharing that the rule switches.
    """
    is_moved = pool.rollout is not None and part is pool.rollout.moved
    names = [{"feature": "system.name", "matchExpressions": {"nodename": match}} for match in _node_names(part)]
    return given(
        name=f"{pool.name}{ROLLOUT_SUFFIX}" if is_moved else pool.name,
        labels=_labels(part),
        taints=_taints(part),
        matchFeatures=[*names, _HAS_NVIDIA_GPU],
    )


def _node_names(part: Pool) -> Iterator[dict[str, Any]]:
    """What a node's name must be. A key has one expression in a term, and a rule wants all of its terms to match.

    (`evaluateFeatureMatcher` in `pkg/apis/nfd/nodefeaturerule/rule.go` of node-feature-discovery.) NFD searches for a
    regular expression anywhere in the name, so the pattern is tied to both ends.
    """
    if part.nodes.names:
        yield {"op": "In", "value": sorted(part.nodes.names)}
        return
    yield {"op": "InRegexp", "value": [f"^(?:{part.nodes.name_pattern})$"]}
    if part.nodes.moved:
        yield {"op": "NotIn", "value": sorted(part.nodes.moved)}


# --- Node objects ------------------------------------------------------------------------------------------------


def _node(pool: Pool, node: str) -> dict[str, Any]:
    """A partial Node for server-side apply: labels, and no taints.

    `spec.taints` is an atomic list (`+listType=atomic` in `core/v1`): who applies one taint owns them all, and would
    remove those of the kubelet and the node lifecycle controller. They are in the table instead.
    """
    return new_object("v1", "Node", node, labels=_labels(pool))


# --- A table -----------------------------------------------------------------------------------------------------


def _table(plan: Plan) -> File:
    has_machine_sets = plan.cluster.spec.platform is Platform.OPENSHIFT
    header = text_of("node-groups") + (text_of("machine-sets") if has_machine_sets else "")
    groups = [
        {**_row(pool), **({"machineSet": _machine_set(pool)} if has_machine_sets else {})}
        for pool in plan.parts
        if pool.nodes.count
    ]
    text = HEADER + header + to_yaml({"formatVersion": 1, "nodeGroups": groups})
    return File(f"{Stage.PARTITIONS}/node-groups.yaml", text.encode(), about=about(plan.cluster, *plan.pools))


def _row(pool: Pool) -> dict[str, Any]:
    nodes = pool.nodes
    row = given(
        pool=pool.name,
        gpu=pool.gpu.id,
        nodes=nodes.count,
        gpusPerNode=nodes.gpus_per_node,
        names=sorted(nodes.names),
        namePattern=nodes.name_pattern,
        exceptNames=[] if nodes.names else sorted(nodes.moved),
    )
    return {**row, "labels": _labels(pool), "taints": _taints(pool)}


def _machine_set(pool: Pool) -> dict[str, Any]:
    """What makes OpenShift's Machine API label and taint new nodes of a pool; whatever else a MachineSet has stays."""
    is_accelerated = any(unit.resource == GPU_RESOURCE and unit.per_node for unit in pool.units)
    accelerator = {_ACCELERATOR: f"nvidia-{pool.gpu.id.lower()}"} if is_accelerated else {}
    machine = given(metadata={"labels": {**accelerator, **_labels(pool)}}, taints=_taints(pool))
    return {"spec": {"template": {"spec": machine}}}


# `GPULabel` of the provider `clusterapi` in kubernetes/autoscaler; what it does to nodes without GPUs is in
# `processors/customresources/gpu_processor.go`.
_ACCELERATOR = "cluster-api/accelerator"


# --- Parts of all ------------------------------------------------------------------------------------------------


def _labels(pool: Pool) -> dict[str, str]:
    return dict(sorted(pool.labels.items()))


def _taints(pool: Pool) -> list[dict[str, str]]:
    taints = sorted(pool.spec.taints, key=lambda taint: (taint.key, taint.effect, taint.value))
    return [given(key=taint.key, value=taint.value, effect=taint.effect.value) for taint in taints]
