"""Node pools of clouds: the label that says which one a node is in, its name, and what labels and taints its nodes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from shlex import quote
from typing import Final

from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.planning.discovered import AKS_NODE_POOL_LABEL, EKS_NODE_POOL_LABEL, GKE_NODE_POOL_LABEL

Labels = Mapping[str, str]
Taints = Sequence[Mapping[str, str]]


def is_in_node_pool(selector: Labels) -> bool:
    """Whether nodes are chosen by the label that a cloud gives those of one node pool."""
    return any(key in _CLOUDS for key in selector)


def node_pool_command(selector: Labels, labels: Labels, taints: Taints) -> str:
    """Return the command that labels and taints the node pool of a selector. It is empty if the selector names none."""
    found = next(((key, name) for key, name in selector.items() if key in _CLOUDS), None)
    return "" if found is None else _CLOUDS[found[0]].command(found[1], labels, taints)


class NodeNames(NamedTuple):
    """The names that a cloud gives to nodes of a node pool, as a regular expression, and what it matches besides."""

    pattern: str
    others: str = ""


def find_names(selector: Labels) -> NodeNames | None:
    """Return the names of nodes in the node pool of a selector, or None if names do not show the node pool."""
    found = (_CLOUDS[key].names(name) for key, name in selector.items() if key in _CLOUDS)
    return next(filter(None, found), None)


class _Cloud(NamedTuple):
    """``names`` are those of a node pool's nodes; None where they say nothing of it."""

    command: Callable[[str, Labels, Taints], str]
    names: Callable[[str], NodeNames | None]


def _gke(name: str, labels: Labels, taints: Taints) -> str:
    """https://cloud.google.com/kubernetes-engine/docs/how-to/update-existing-nodepools"""
    marks = [f"--node-labels={','.join(_equals(labels))}"]
    marks += [f"--node-taints={','.join(_spelt(taints))}"] if taints else []
    # One call updates one of them.
    return " && ".join(f"gcloud container node-pools update {quote(name)} {quote(mark)}" for mark in marks)


def _eks(name: str, labels: Labels, taints: Taints) -> str:
    """https://docs.aws.amazon.com/eks/latest/APIReference/API_UpdateNodegroupConfig.html"""
    call = f"aws eks update-nodegroup-config --nodegroup-name {quote(name)}"
    call += f" --labels {quote(json.dumps({'addOrUpdateLabels': dict(labels)}))}"
    if not taints:
        return call
    own = [{**taint, "effect": _IN_CAPITALS.sub(r"_\1", taint["effect"]).upper()} for taint in taints]
    return f"{call} --taints {quote(json.dumps({'addOrUpdateTaints': own}))}"


def _aks(name: str, labels: Labels, taints: Taints) -> str:
    """https://learn.microsoft.com/azure/aks/use-labels, and `az aks nodepool update --help`"""
    call = f"az aks nodepool update --name {quote(name)} --labels {' '.join(map(quote, _equals(labels)))}"
    return f"{call} --node-taints {quote(','.join(_spelt(taints)))}" if taints else call


_IN_CAPITALS: Final = re.compile(r"(?<=[a-z])([A-Z])")
"""`NoSchedule` is `NO_SCHEDULE` to Amazon."""


def _gke_names(name: str) -> NodeNames:
    """Cluster and node pool, each cut where it is long: `gke-kubia-default-pool-db274c5a-mjnf`.

    Where it cuts is nowhere documented; the first part it cuts at 24 characters (kubernetes/ingress-gce#1623), and
    names of 12 characters such as `default-pool` are whole.
    """
    rest = "" if len(name) <= _NEVER_CUT else "[0-9a-z-]*"
    pattern = f"gke-.*-{re.escape(name[:_NEVER_CUT])}{rest}-[0-9a-f]{{8}}-[0-9a-z]{{4}}"
    begins = f" or begins with `{name[:_NEVER_CUT]}`" if rest else ""
    return NodeNames(pattern, f"a node pool whose name ends in `-{name}`{begins} has such names as well")


_NEVER_CUT: Final = 12


def _aks_names(name: str) -> NodeNames:
    """Return the names in Virtual Machine Scale Sets and in node pools of the type `VirtualMachines`.

    An example is `aks-gpus-24979463-vms1`."""
    return NodeNames(f"aks-{re.escape(name)}-[0-9]+-(vmss[0-9a-z]+|vms[0-9]+)")


def _eks_names(name: str) -> None:
    """Nodes are called after their address or their instance: `ip-10-0-0-7.ec2.internal`, `i-0b22a22eec53b9321`."""


_CLOUDS: Final[Mapping[str, _Cloud]] = {
    GKE_NODE_POOL_LABEL: _Cloud(_gke, _gke_names),
    EKS_NODE_POOL_LABEL: _Cloud(_eks, _eks_names),
    AKS_NODE_POOL_LABEL: _Cloud(_aks, _aks_names),
}
"""The clouds by the label that names a node's pool."""


def _equals(labels: Labels) -> list[str]:
    return [f"{key}={value}" for key, value in labels.items()]


def _spelt(taints: Taints) -> list[str]:
    return [f"{taint['key']}={taint.get('value', '')}:{taint['effect']}" for taint in taints]
