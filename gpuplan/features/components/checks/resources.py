"""Checks on the resources that hand-written work, quotas and clusters of Ray name (GPU890, GPU891, GPU893, GPU895)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Final

from gpuplan.compiler.base.diagnostics import Finding, Path, Severity
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.plain import inside, mapping, parts_with, sequence, text, value_at
from gpuplan.compiler.base.wording import joined
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.manifests import parse_quantity
from gpuplan.compiler.planning.discovered import GPU_RESOURCE
from gpuplan.compiler.planning.hand_files import HandFiles
from gpuplan.features.components.checks.asking import GPU, PLACEHOLDER, Spec, asks, judged, pods, quota_specs

# --- Names and amounts -------------------------------------------------------------------------------------------

_SUBDOMAIN: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_QUALIFIED: Final = regex(rf"({_SUBDOMAIN}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{{0,61}}[A-Za-z0-9])?")
_OF_GPUS: Final = regex(r"(?i).*(gpu|nvidia|\bmig\b).*")
_DOTTED: Final = regex(r"(?i)nvidia[.]com[._-](?P<name>.+)")


@check("GPU890", "resource-refused")
def resource_refused(files: HandFiles) -> Iterator[Finding]:
    """A hand-written workload asks for a resource by a name, or in an amount, that the API server refuses.

    ## Why
    Extended resources are whole numbers (`ValidateResourceQuantityValue` in `pkg/apis/core/validation/validation.go` of
    kubernetes/kubernetes v1.34): half a GPU is refused. A name without `/` is one of Kubernetes' own
    (`validateContainerResourceName` there), and `/` stands once in a name of letters, digits, `-`, `_` and `.`. A
    Deployment or a Job with such pods is applied without an error, and has none.

    ## Instead
    Ask for whole numbers. A part of a GPU is a resource of its own: a MIG device such as `nvidia.com/mig-1g.10gb`, or a
    share such as `nvidia.com/gpu.shared`.
    """
    for ask in asks(files):
        is_refused = ask.is_of_container and _OF_GPUS.fullmatch(ask.resource) and not _is_taken(ask.resource)
        is_extended = "/" in ask.resource and not ask.resource.partition("/")[0].endswith("kubernetes.io")
        number = parse_quantity(str(ask.amount)) if is_extended else None
        if is_refused:
            fault, why, help_ = ", which is no name of a resource", _NAMES, f"write `{_spelt(ask.resource)}`"
        elif number is not None and (number < 0 or number != number.to_integral_value()):
            fault, why = f": {ask.amount}", "extended resources are whole numbers"
            help_ = "write a whole number; for a part of a GPU ask for a resource of MIG devices or of shares"
        else:
            continue
        yield Finding(
            ask.at,
            f"{ask.of.title} asks for `{ask.resource}`{fault}",
            label="refused by the API server",
            notes=(why,),
            help=help_,
        )


_NAMES: Final = "a name has a domain in lower case, one `/`, and letters, digits, `-`, `_` and `.`"


def _is_taken(name: str) -> bool:
    return ("/" in name and _QUALIFIED.fullmatch(name) is not None) or PLACEHOLDER.search(name) is not None


def _spelt(name: str) -> str:
    """Return how the device plugin spells the name that is meant by one which the API server refuses."""
    *above, last = name.split("/")
    dotted = _DOTTED.fullmatch(last)
    domain = next((part.lower() for part in reversed(above) if "." in part), "nvidia.com")
    return f"{domain}/{dotted['name'] if dotted else last.replace('+', '.') if above else 'gpu'}"


# --- Quotas ------------------------------------------------------------------------------------------------------

_OF_PODS: Final = frozenset(("pods", "cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"))
_STANDARD: Final = _OF_PODS | {
    *("configmaps", "ephemeral-storage", "limits.ephemeral-storage", "persistentvolumeclaims"),
    *("replicationcontrollers", "requests.ephemeral-storage", "requests.storage", "resourcequotas", "secrets"),
    *("services", "services.loadbalancers", "services.nodeports"),
}
_SCOPES: Final = ("BestEffort", "CrossNamespacePodAffinity", "NotBestEffort", "NotTerminating", "PriorityClass")
_SCOPES_OF_PODS: Final = frozenset((*_SCOPES, "Terminating"))
_OPPOSITES: Final = (("BestEffort", "NotBestEffort"), ("NotTerminating", "Terminating"))


@check("GPU891", "quota-refused")
def quota_refused(files: HandFiles) -> Iterator[Finding]:
    """A hand-written ResourceQuota has a key or a scope that the API server refuses.

    ## Why
    A quota with such a key is refused as a whole (`ValidateResourceQuotaSpec` in `pkg/apis/core/validation` of
    kubernetes/kubernetes v1.34): a name has one `/`, and without any it is one of Kubernetes' own. `count/` stands
    before kinds such as `count/deployments.apps`, not before resources. Under a scope of pods, such as `PriorityClass`,
    of Kubernetes' own names only `pods`, CPU and memory may stand (`IsResourceQuotaScopeValidForResource`). Extended
    resources are not looked at there. `BestEffort` is a warning beside them: it counts pods without CPU and memory.

    ## Instead
    Write `requests.<resource>`. Put what no scope can count, such as `services`, into a ResourceQuota of its own.
    """
    for spec in quota_specs(files):
        for key in mapping(spec.body.get("hard")):
            bare = key.removeprefix("count/").removeprefix("requests.")
            if key not in _STANDARD and not _is_taken(key) and not bare.startswith("hugepages-"):
                yield Finding(
                    spec.of.place(*spec.route, "hard", key).key,
                    f"`{key}` in {spec.of.title} is no resource that a quota counts",
                    label="refused by the API server",
                    help=f"write `requests.{_spelt(bare)}`"
                    if _OF_GPUS.fullmatch(key)
                    else "remove it, or correct the name",
                )
        yield from _scope_faults(spec)


def _scope_faults(spec: Spec) -> Iterator[Finding]:
    scopes: dict[str, Path] = {}
    for index, scope in enumerate(sequence(spec.body.get("scopes"))):
        scopes.setdefault(text(scope), ("scopes", index))
    above = ("scopeSelector", "matchExpressions")
    for index, item in enumerate(sequence(value_at(spec.body, above))):
        scopes.setdefault(text(mapping(item).get("scopeName")), (*above, index, "scopeName"))
    hard = mapping(spec.body.get("hard"))
    for scope, route in scopes.items():
        uncounted = _STANDARD - ({"pods"} if scope == "BestEffort" else _OF_PODS)
        refused = [key for key in hard if key in uncounted]
        if refused and scope in _SCOPES_OF_PODS:
            yield Finding(
                spec.of.place(*spec.route, "hard", refused[0]).key,
                f"scope `{scope}` of {spec.of.title} cannot count {joined([f'`{key}`' for key in refused])}",
                label="refused by the API server",
                help="move it to a ResourceQuota without this scope",
            )
        gpus = [key for key in hard if "/" in key and _OF_GPUS.fullmatch(key)]
        if gpus and scope == "BestEffort":
            yield Finding(
                spec.of.place(*spec.route, *route),
                f"`BestEffort` of {spec.of.title} leaves out pods that ask for CPU or memory",
                label="counts few pods with GPUs",
                notes=(f"`{gpus[0]}` counts those alone that ask for neither",),
                help="remove the scope",
                severity=Severity.WARNING,
            )
    for pair in _OPPOSITES:
        if scopes.keys() >= set(pair):
            yield Finding(
                spec.of.place(*spec.route, *scopes[pair[1]]),
                f"{spec.of.title} has the scopes {joined([f'`{scope}`' for scope in pair])}",
                label="refused by the API server",
                help="write a ResourceQuota for each",
            )


# --- Parts of GPUs for KAI-Scheduler -----------------------------------------------------------------------------

_FRACTION, _MEMORY, _DEVICES = "gpu-fraction", "gpu-memory", "gpu-fraction-num-devices"
_WHOLE: Final = regex(r"\+?0*[1-9][0-9]*")
_BELOW_ONE: Final = regex(r"\+?0*\.(?=0*[1-9])[0-9]+|[1-9](?:\.[0-9]+)?[eE]-[0-9]+")


@check("GPU893", "gpu-part-refused")
def gpu_part_refused(files: HandFiles) -> Iterator[Finding]:
    """A hand-written pod asks KAI-Scheduler for a part of a GPU in a way that its webhook refuses.

    ## Why
    `gpu-fraction` is above 0 and below 1, and `gpu-memory` a whole number of MiB without a unit. One of the two may
    stand, not beside a limit on `nvidia.com/gpu`, and `gpu-fraction-num-devices` beside one of them only
    (`ValidateGpuRequests` in `pkg/binder/plugins/gpusharing/gpu-request` of NVIDIA/KAI-Scheduler v0.12.0). All are
    annotations of pods; as labels nobody reads them.

    ## Instead
    Ask for a whole GPU in `limits`, or for a part by one annotation.
    """
    for pod in pods(files):
        annotations = inside(pod.body, "metadata", "annotations")
        for key, message, instead in _part_faults(annotations, mapping(pod.body.get("spec"))):
            yield Finding(
                pod.of.place(*pod.route, "metadata", "annotations", key),
                f"`{key}: {annotations[key]}` of {pod.of.title} {message}",
                label="refused by KAI-Scheduler's webhook",
                help=instead,
            )
        for key in (_FRACTION, _MEMORY):
            if key in inside(pod.body, "metadata", "labels") and key not in annotations:
                yield Finding(
                    pod.of.place(*pod.route, "metadata", "labels", key).key,
                    f"`{key}` of {pod.of.title} is a label",
                    label="read as an annotation only",
                    help="move it to `annotations`",
                    severity=Severity.WARNING,
                )


def _part_faults(annotations: Mapping[str, object], spec: Mapping[str, object]) -> Iterator[tuple[str, str, str]]:
    parts = [key for key in (_FRACTION, _MEMORY) if key in annotations]
    containers = (*sequence(spec.get("containers")), *sequence(spec.get("initContainers")))
    has_whole = any(GPU_RESOURCE in mapping(value_at(item, ("resources", "limits"))) for item in containers)
    for key in parts if has_whole else parts[1:]:
        beside = "a limit on `nvidia.com/gpu`" if has_whole else f"`{_FRACTION}`"
        yield key, f"stands beside {beside}", "keep one of the two"
    if _DEVICES in annotations and not parts:
        yield _DEVICES, "is of no part", f"add `{_FRACTION}` or `{_MEMORY}`"
    for key in (*parts, *((_DEVICES,) if _DEVICES in annotations else ())):
        value = text(annotations[key])
        if not value or PLACEHOLDER.search(value):
            continue
        if key == _FRACTION and not _BELOW_ONE.fullmatch(value):
            yield key, "is no number between 0 and 1", 'write a part of one GPU, such as `"0.5"`, or ask for whole ones'
        elif key != _FRACTION and not _WHOLE.fullmatch(value):
            of = "MiB, such as `4096` for `4Gi`" if key == _MEMORY else "GPUs"
            yield key, "is no whole number above 0", f"write a number of {of}"


# --- Ray ---------------------------------------------------------------------------------------------------------


@check("GPU895", "ray-gpus-beyond-limit", Severity.WARNING)
def ray_gpus_beyond_limit(files: HandFiles) -> Iterator[Finding]:
    """A hand-written group of a RayCluster tells Ray of more GPUs than its container gets.

    ## Why
    KubeRay takes the number of GPUs from the container's limits, and a `num-gpus` in `rayStartParams` wins over it
    (`addWellKnownAcceleratorResources` in `ray-operator/controllers/ray/common/pod.go` of ray-project/kuberay v1.7.0).
    Ray then places tasks on GPUs that are not there, and they share those that are.

    ## Instead
    Leave `num-gpus` out, or write the number of the limit. A smaller one keeps work off, such as `"0"` on a head.
    """
    for found in judged(files):
        for route, group in parts_with(found.body, "rayStartParams"):
            stated = text(value_at(group, ("rayStartParams", "num-gpus")))
            containers = sequence(value_at(group, ("template", "spec", "containers")))
            limits = mapping(value_at(next(iter(containers), None), ("resources", "limits")))
            gpus = [parse_quantity(str(amount)) for key, amount in limits.items() if GPU.fullmatch(key)]
            number = parse_quantity(stated)
            limit = sum((amount for amount in gpus if amount is not None), start=Decimal(0))
            if number is not None and limit and number > limit:
                yield Finding(
                    found.place(*route, "rayStartParams", "num-gpus"),
                    f"`num-gpus: {stated}` of {found.title} is more than the limit of {limit:f}",
                    label="Ray counts GPUs that are not there",
                    help="remove it: KubeRay takes the number from the limit",
                )
