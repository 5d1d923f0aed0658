"""The GPU Operator beside the policies: its release, its ClusterPolicy, and the operands that pools need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from gpuplan.compiler.base.plain import inside, mapping, sequence, text, value_at
from gpuplan.compiler.base.trees import ABSENT
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.manifests import Identity
from gpuplan.compiler.manifests.provenance import Links, chosen, copied
from gpuplan.compiler.planning.plan import MIG_CONFIG_LABEL, Plan, Pool, Stage
from gpuplan.compiler.planning.sources import label_of, usual_names
from gpuplan.compiler.policy.models import Allocation, Install
from gpuplan.features.live.clusters.operators import NVIDIA, releases
from gpuplan.features.live.drifting.objects import Observed, Scope
from gpuplan.features.live.dump import Dump

DEPLOY_LABELS: Final = "nvidia.com/gpu.deploy."


class Operand(NamedTuple):
    """A part of the operator that a pool needs: its label of nodes below `DEPLOY_LABELS`, and the effect without it.

    ``section`` is that of the ClusterPolicy which switches it off for all nodes, empty where none does.
    """

    label: str
    section: str
    effect: str
    links: Links


def operands_of(plan: Plan, part: Pool) -> Iterator[Operand]:
    """Yield the operands that a pool needs.

    What others install, such as drivers in an image, is on the nodes already. Where others own the ClusterPolicy, they
    alone know whether the container toolkit is.
    """
    operator, pool = plan.cluster.gpu_operator, chosen(part.at / "sharing")
    yield Operand("operands", "", "the GPU Operator runs nothing on the node", pool)
    yield Operand("operator-validator", "", "the device plugin waits for the validator, which does not run", pool)
    if part.spec.allocation is not Allocation.DRA:
        yield Operand("device-plugin", "devicePlugin", "the nodes publish no GPUs", pool)
    yield Operand("gpu-feature-discovery", "gfd", "the nodes get no labels of their boards", chosen(part.at / "gpu"))
    if MIG_CONFIG_LABEL in part.labels:
        links = label_of(plan, part, MIG_CONFIG_LABEL)
        yield Operand("mig-manager", "migManager", "nobody divides GPUs as the layout says", links)
    if operator.spec.driver.enabled:
        yield Operand(
            "driver", "driver", "nobody installs the driver", chosen(operator.at / "driver", operator.at / "version")
        )
    if operator.spec.install is not Install.EXTERNAL:
        links = chosen(operator.at / "install", operator.at / "version")
        yield Operand("container-toolkit", "toolkit", "containers get no GPUs", links)
    if plan.cluster.monitoring:
        links = chosen(plan.cluster.at / "monitoring")
        yield Operand("dcgm-exporter", "dcgmExporter", "there are no metrics of GPUs", links)
        yield Operand("node-status-exporter", "nodeStatusExporter", "there are no metrics of the operator", links)


def compare_operator(plan: Plan, dump: Dump, written: Mapping[Identity, Mapping[str, Any]]) -> Iterator[Observed]:
    """Yield the differences of the operator in a dump from a plan, beyond the fields that are ``written``."""
    operator = plan.cluster.gpu_operator
    folder = Stage.GPU_OPERATOR.value
    for item, route, release in releases(dump):
        wanted = operator.version.removeprefix("v")
        if release.removeprefix("v") != wanted:
            links = copied(operator.at / "version")
            title = str(item.identity._replace(group=""))
            yield Observed(title, item, route, operator.version, value_at(item.body, route), links, folder=folder)
    identity = Identity(NVIDIA, "ClusterPolicy", "", operator.cluster_policy)
    policy = dump.find(*identity[:2], identity.name)
    title = str(identity._replace(group=""))
    if policy is None:
        scope = Scope(dump)
        if plan.pools and identity not in written and scope.is_whole(identity):
            note = lists_none(scope.find_file(identity))
            yield Observed(title, None, (), identity.name, ABSENT, usual_names(plan.cluster), note, folder=folder)
        return
    needed = {found.section: found for part in plan.parts for found in operands_of(plan, part) if found.section}
    for section, operand in needed.items():
        route = ("spec", section, "enabled")
        is_meant = value_at(operator.spec.values, route[1:]) is False
        live = value_at(policy.body, route)
        if live is False and not is_meant and value_at(written.get(identity), route) is None:
            yield Observed(title, policy, route, not live, live, operand.links, operand.effect, folder=folder)
    state = text(value_at(policy.body, ("status", "state")))
    if plan.pools and state not in ("", _READY):
        told = (mapping(one) for one in sequence(inside(policy.body, "status").get("conditions")))
        errors = (text(one.get("message")) for one in told if (one.get("type"), one.get("status")) == ("Error", "True"))
        note = next(filter(None, errors), _STATES.get(state, ""))
        yield Observed(title, policy, ("status", "state"), _READY, state, usual_names(plan.cluster), note)


_READY: Final = "ready"
_STATES: Final = {
    "notReady": "an operand is not ready on some node",
    "ignored": "the GPU Operator works by another ClusterPolicy",
    "disabled": "the GPU Operator runs no operand",
}
"""States of a ClusterPolicy other than `ready` (`api/nvidia/v1/clusterpolicy_types.go` of NVIDIA/gpu-operator
v26.7.0)."""


def lists_none(file: str) -> str:
    """Return the reason for which objects are missing of which no list has the kind."""
    return f"{file} lists none; kubectl prints the same, with an error, to who may not list them" if file else ""
