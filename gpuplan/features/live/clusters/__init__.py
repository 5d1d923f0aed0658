"""Read what a cluster is: its versions, its operator, its scheduler, who labels its nodes and who syncs it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic.alias_generators import to_camel

from gpuplan.compiler.base.plain import mapping, sequence, text
from gpuplan.compiler.checks.node_labels import nfd_fault
from gpuplan.compiler.planning.discovered import COUNT_LABEL, GPU_RESOURCE, NODE_POOL_LABELS, PASSING_TAINTS
from gpuplan.compiler.planning.plan import POOL_LABEL
from gpuplan.compiler.policy.models import Approval, ClusterSpec, GpuOperator, Model, NodeLabels, Platform
from gpuplan.features.live.clusters import kubernetes, operators, schedulers, tools
from gpuplan.features.live.clusters.reader import Reader, Spec, part
from gpuplan.features.live.drafts import Draft, Found
from gpuplan.features.live.dump import Dump


def name_of(dump: Dump) -> str:
    """Return the name that gpuplan's own objects have for the one cluster that they are about; else empty."""
    found = set(tools.names(dump))
    return found.pop() if len(found) == 1 else ""


def read(dump: Dump, cluster: str) -> Found:
    """Return the `Cluster` document, without values that hold anyway."""
    known = set(tools.names(dump))
    reader = Reader(dump, cluster if cluster in known else name_of(dump) or cluster)
    platform = kubernetes.platform(reader)
    version = kubernetes.version(reader)
    if not version:
        version = kubernetes.newest_version(reader) or kubernetes.newest_kubernetes()
        reader.say("unknown-kubernetes", version=version)
    labels = node_labels(reader)
    spec: Spec = {"kubernetes": version}
    if platform is not Platform.KUBERNETES:
        spec["platform"] = platform.value
    if labels is not NodeLabels.NFD:
        spec["nodeLabels"] = labels.value
    found = operators.find(reader)
    policy = part(found.policy.body, "spec") if found.policy else None
    operator = operators.place(reader, found, platform)
    is_openshift = platform is Platform.OPENSHIFT or operator["install"] == "olm"
    namespace = operator.get("namespace", "nvidia-gpu-operator" if is_openshift else "gpu-operator")
    place = {"namespace": namespace, "version": operator["version"]}
    monitoring = tools.read_monitoring(reader, platform, place, (found.values, policy))
    if monitoring is not None:
        spec["monitoring"] = monitoring
    spec["gpuOperator"] = _ordered(operator | operators.settings(reader, found, operator, spec), GpuOperator)
    more = {
        "scheduler": schedulers.read(reader, spec),
        "dra": kubernetes.dra(reader, version),
        "apis": kubernetes.apis(reader),
        **kubernetes.routes(reader),
        "taintPools": _taints_pools(reader),
        "matchBoards": _matches_boards(reader),
    }
    spec |= {field: value for field, value in more.items() if value}
    if admission := kubernetes.admission(reader, spec):
        spec["admission"] = admission
    files = reader.config_map(operators.PLUGIN_FILES)
    runs_mps = files and any("\n  mps:" in text(value) for value in mapping(files.body.get("data")).values())
    spec |= tools.read_sync(reader, platform, Approval.MANUAL if runs_mps else Approval.AUTOMATIC)
    spec = _ordered(spec, ClusterSpec)
    draft = Draft("Cluster", cluster, spec, tuple(reader.sources), reader.reports.remarks("Cluster"))
    return Found((draft,), tuple(reader.reports.diagnostics))


def _ordered(spec: Mapping[str, Any], model: type[Model]) -> Spec:
    """In the order of the policy language."""
    names = [field.alias or to_camel(name) for name, field in model.model_fields.items()]
    return {key: spec[key] for key in names if key in spec}


# --- Nodes -------------------------------------------------------------------------------------------------------


def node_labels(reader: Reader) -> NodeLabels:
    """Return who labels nodes: gpuplan in one of its ways, or else their node groups if a cloud has such."""
    if reader.rules:
        return NodeLabels.NFD
    if reader.applied_nodes:
        return NodeLabels.NODE
    if reader.node_groups:
        return NodeLabels.EXTERNAL
    if not reader.documents and any(POOL_LABEL in item.labels for item in reader.nodes):
        return NodeLabels.EXTERNAL  # the table of node groups is a file, which no cluster has
    if any(key in item.labels for item in reader.nodes for key in NODE_POOL_LABELS):
        return NodeLabels.EXTERNAL
    # NFD does not write each taint that people give nodes: an object for each node leaves their taints alone.
    gpu_nodes = (item for item in reader.nodes if COUNT_LABEL in item.labels)
    taints = [mapping(taint) for item in gpu_nodes for taint in sequence(part(item.body, "spec", "taints"))]
    keys = {key for taint in taints if not (key := text(taint.get("key"))).startswith(PASSING_TAINTS)}
    return NodeLabels.NODE if any(nfd_fault(key, ("feature",)) for key in keys) else NodeLabels.NFD


_USUAL_TAINT: Final = {"key": GPU_RESOURCE, "value": "present", "effect": "NoSchedule"}


def _taints_pools(reader: Reader) -> bool:
    """Whether some pools have the taint that each gets that has none, and none is without one that keeps pods off."""
    has_usual = any(dict(mapping(taint)) == _USUAL_TAINT for taints in reader.pool_taints for taint in taints)
    return has_usual and all(
        any(part(taint, "effect") != "PreferNoSchedule" for taint in taints) for taints in reader.pool_taints
    )


def _matches_boards(reader: Reader) -> bool:
    """Whether the rules of all pools ask for the boards of their model."""
    choices = [[rule, *map(mapping, sequence(rule.get("matchAny")))] for rule in reader.pool_rules]
    terms = [[term for choice in listed for term in sequence(choice.get("matchFeatures"))] for listed in choices]
    return bool(terms) and all(
        any(part(term, "matchExpressions", "device") is not None for term in listed) for listed in terms
    )
