"""Node pools of clouds: the label that says which one a node is in, its name, and what labels and taints its nodes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from shlex import quote
from typing import Final

from gpuplan.values import NamedTuple

Labels = Mapping[str, str]
Taints = Sequence[Mapping[str, str]]


def is_in_node_pool(selector: Labels) -> bool:
    """Whether nodes are chosen by the label that a cloud gives those of one node pool."""
    return any(key in _CLOUDS for key in selector)


def node_pool_command(selector: Labels, labels: Labels, taints: Taints) -> str:
    """What to type for the node pool that a selector names; empty where it names none."""
    found = next(((key, name) for key, name in selector.items() if key in _CLOUDS), None)
    return "" if found is None else _CLOUDS[found[0]].command(found[1], labels, taints)


def pattern_of_names(selector: Labels) -> str:
    """The names that a cloud gives to nodes of the node pool that a selector names; empty where they do not tell it."""
    found = (_CLOUDS[key].names.format(re.escape(name)) for key, name in selector.items() if key in _CLOUDS)
    return next(filter(None, found), "")


class _Cloud(NamedTuple):
    """``names`` are those of nodes, as a regular expression, empty where they say nothing of the node pool."""

    command: Callable[[str, Labels, Taints], str]
    names: str


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

_CLOUDS: Final[Mapping[str, _Cloud]] = {
    "cloud.google.com/gke-nodepool": _Cloud(_gke, "gke-.*-{}-[0-9a-f]+-[0-9a-z]+"),
    "eks.amazonaws.com/nodegroup": _Cloud(_eks, ""),
    "kubernetes.azure.com/agentpool": _Cloud(_aks, "aks-{}-[0-9]+-vmss[0-9a-z]+"),
}
"""By the label of nodes that says which node pool they are in. GKE cuts the long name of a node pool in its nodes'."""


def _equals(labels: Labels) -> list[str]:
    return [f"{key}={value}" for key, value in labels.items()]


def _spelt(taints: Taints) -> list[str]:
    return [f"{taint['key']}={taint.get('value', '')}:{taint['effect']}" for taint in taints]
