"""How many pods of a workload a node has room for, by all that they ask of it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.manifests.selectors import matches
from gpuplan.compiler.planning.amounts import per_node
from gpuplan.compiler.planning.plan import HOST_LABEL, TENANT_LABEL, WORKLOAD_LABEL, Counted, Pool, Workload
from gpuplan.compiler.planning.pod_patches import items, mapping, patched_containers, spec_of_patch
from gpuplan.compiler.planning.requests import asked_by_pod
from gpuplan.compiler.planning.serving import is_called


class Short(StrEnum):
    """What a node runs out of first."""

    UNITS = "units"
    CPU = "cpu"
    MEMORY = "memory"
    PLACES = "places"
    """Pods that may not share a node, by a port of it or by their affinity."""


class Room(NamedTuple):
    """So many pods, and what there is no more of for another one."""

    pods: int
    short: Short


def room_on_node(workload: Workload, part: Pool) -> Room:
    """That of a node of a pool, or of a part of one, with nothing else on it."""
    rooms = [Room(_by_units(workload, part), Short.UNITS)]
    for counted, short in ((Counted.CPU, Short.CPU), (Counted.MEMORY, Short.MEMORY)):
        has, asked = per_node(part.nodes, counted), asked_by_pod(workload, counted)
        if has is not None and asked:
            rooms.append(Room(has // asked, short))
    if is_apart(workload):
        rooms.append(Room(1, Short.PLACES))
    return min(rooms, key=lambda room: room.pods)


def _by_units(workload: Workload, part: Pool) -> int:
    unit = part.find_unit(workload.unit.name)
    if unit is None:
        return 0
    if workload.fraction is not None:
        return workload.fraction.per_gpu * part.nodes.gpus_per_node
    return unit.per_node // workload.spec.count


# --- Pods that may not share a node ------------------------------------------------------------------------------


def is_apart(workload: Workload) -> bool:
    """Whether a node takes one pod of it alone, for what the workload lays over its pods."""
    spec = spec_of_patch(workload)
    return _takes_ports_of_node(workload, spec) or _keeps_off_itself(workload, spec)


def _takes_ports_of_node(workload: Workload, spec: Mapping[str, Any]) -> bool:
    """In the node's network every port of a container is one of the node (`SetDefaults_PodSpec` of Kubernetes)."""
    ports = [mapping(port) for found in patched_containers(workload) for port in items(found.body.get("ports"))]
    listens = bool(ports) or is_called(workload.work)
    return any(port.get("hostPort") for port in ports) or (spec.get("hostNetwork") is True and listens)


def _keeps_off_itself(workload: Workload, spec: Mapping[str, Any]) -> bool:
    affinity = mapping(mapping(spec.get("affinity")).get("podAntiAffinity"))
    labels = {
        **mapping(mapping(workload.pod_patch.get("metadata")).get("labels")),
        TENANT_LABEL: workload.tenant.name,
        WORKLOAD_LABEL: workload.name,
    }
    terms = map(mapping, items(affinity.get("requiredDuringSchedulingIgnoredDuringExecution")))
    return any(term.get("topologyKey") == HOST_LABEL and _is_meant(term, labels) for term in terms)


def _is_meant(term: Mapping[str, Any], labels: Mapping[str, object]) -> bool:
    """Whether a term chooses pods with these labels; one without a selector chooses none."""
    selector, is_here = term.get("labelSelector"), "namespaces" not in term and "namespaceSelector" not in term
    return is_here and isinstance(selector, Mapping) and matches(selector, labels) is True
